//! `brigade task graph`

use insta::assert_snapshot;

use crate::env::CliEnv;

fn board() -> CliEnv {
    let cli = CliEnv::with_team();
    let tasks = [
        ("Design the wire format", ""),
        ("Write the parser", "1"),
        ("Write the docs", "1"),
        ("Integrate \"all\" of it", "2,3"),
        ("Buy cake", ""),
        ("Release", "4"),
    ];
    for (subject, after) in tasks {
        let mut args = vec!["task", "add", subject];
        if !after.is_empty() {
            args.extend(["--blocked-by", after]);
        }
        cli.run_ok(&args);
    }
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    cli.run_ok(&["--as", "bob", "task", "done", "1"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "2"]);
    cli.run_ok(&["task", "update", "3", "--owner", "alice"]);
    cli
}

#[test]
fn each_task_is_drawn_once_below_a_blocker() {
    assert_snapshot!(board().run(&["task", "graph"]), @r#"
      ● 1  Design the wire format       bob
    * ├─ ◐ 2  Write the parser          bob
    * │  └─ ⊘ 4  Integrate "all" of it  also after 3
    * │     └─ ⊘ 6  Release
      └─ ○ 3  Write the docs            alice
      ○ 5  Buy cake                     ready

    ○ not started   ◐ in progress   ● done   ⊘ blocked   * longest chain, 3 tasks
    "#);
}

#[test]
fn dot_mermaid_and_json_output() {
    let cli = board();
    assert_snapshot!(cli.run(&["task", "graph", "--format", "dot"]), @r#"
    digraph board {
      rankdir=LR;
      node [shape=box];
      1 [label="● 1 Design the wire format (bob)", color=gray, fontcolor=gray];
      2 [label="◐ 2 * Write the parser (bob)", color=orange, penwidth=2];
      3 [label="○ 3 Write the docs (alice)"];
      4 [label="⊘ 4 * Integrate \"all\" of it", style=dashed, penwidth=2];
      5 [label="○ 5 Buy cake (ready)", color=green];
      6 [label="⊘ 6 * Release", style=dashed, penwidth=2];
      1 -> 2;
      1 -> 3;
      2 -> 4 [penwidth=2];
      3 -> 4;
      4 -> 6 [penwidth=2];
    }
    "#);
    assert_snapshot!(cli.run(&["task", "graph", "--format", "mermaid"]), @r#"
    flowchart LR
      t1["● 1 Design the wire format (bob)"]:::done
      t2["◐ 2 * Write the parser (bob)"]:::progress
      t3["○ 3 Write the docs (alice)"]
      t4["⊘ 4 * Integrate #quot;all#quot; of it"]:::blocked
      t5["○ 5 Buy cake (ready)"]:::ready
      t6["⊘ 6 * Release"]:::blocked
      t1 --> t2
      t1 --> t3
      t2 ==> t4
      t3 --> t4
      t4 ==> t6
      classDef ready stroke:green
      classDef progress stroke:orange
      classDef blocked stroke-dasharray:4
      classDef done color:gray,stroke:gray
    "#);
    let json = cli.json(&["task", "graph"]);
    assert_eq!(json["critical_path"], serde_json::json!(["2", "4", "6"]));
    assert_eq!(json["circles"], serde_json::json!([]));
    assert_eq!(json["tasks"][3]["waits_for"], serde_json::json!(["2", "3"]));
    assert_eq!(json["tasks"][1]["state"], "in_progress");
}

#[test]
fn a_dependency_cycle_is_shown() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Sound"]);
    for (id, after) in [(2, 3), (3, 4), (4, 2), (5, 3)] {
        let task = format!(
            r#"{{"id":"{id}","subject":"s{id}","description":"","status":"pending","blocks":[],"blockedBy":["{after}"]}}"#
        );
        cli.write(&format!("claude/tasks/demo/{id}.json"), &task);
    }
    assert_snapshot!(cli.run(&["task", "graph"]), @"
      ○ 1  Sound  ready
      ⊘ 2  s2     after 3, in a cycle
      └─ ⊘ 4  s4  in a cycle
      ⊘ 3  s3     after 4, in a cycle
      └─ ⊘ 5  s5

    These tasks wait for each other, so none can start: 2 → 3 → 4 → 2

    ○ not started   ◐ in progress   ● done   ⊘ blocked
    ");
    let json = cli.json(&["task", "graph"]);
    assert_eq!(json["circles"], serde_json::json!([["2", "3", "4"]]));
}

#[test]
fn an_empty_board_exits_with_code_4() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["task", "graph"]), @"
    --- stderr
    note: the board is empty
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["task", "graph", "--json"]), @r#"
    {"circles":[],"critical_path":[],"tasks":[]}
    --- exit 4
    "#);
}

#[test]
fn svg_output_has_a_box_for_each_task_and_an_arrow_for_each_dependency() {
    let svg = board().run_ok(&["task", "graph", "--format", "svg"]);
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    assert!(svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(svg.matches("<rect ").count(), 6, "{svg}");
    assert_eq!(svg.matches("marker-end=").count(), 5, "{svg}");
    assert!(svg.contains("Integrate &quot;all&quot; of it"), "{svg}");
    assert!(svg.contains("in progress · bob"), "{svg}");
    // A task is to the right of the tasks that it waits for.
    let x = |subject: &str| {
        let (_, rest) = svg.split_once(&format!("<title>{subject}</title><rect x=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse::<u32>().unwrap()
    };
    assert!(x("Design the wire format") < x("Write the parser"));
    assert!(x("Write the parser") < x("Release"));
}
