//! `brigade task graph`

use insta::assert_snapshot;

use crate::env::House;

fn board() -> House {
    let house = House::with_team();
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
        house.done(&args);
    }
    house.done(&["--as", "bob", "task", "claim", "1"]);
    house.done(&["--as", "bob", "task", "done", "1"]);
    house.done(&["--as", "bob", "task", "claim", "2"]);
    house.done(&["task", "update", "3", "--owner", "alice"]);
    house
}

#[test]
fn each_task_stands_once_below_what_it_waits_for() {
    assert_snapshot!(board().run(&["task", "graph"]), @r#"
      ● 1  Design the wire format       bob
    * ├─ ◐ 2  Write the parser          bob
    * │  └─ ⊘ 4  Integrate "all" of it  also after 3
    * │     └─ ⊘ 6  Release
      └─ ○ 3  Write the docs            alice
      ○ 5  Buy cake                     ready

    ○ not begun   ◐ in progress   ● done   ⊘ blocked   * longest chain, 3 tasks
    "#);
}

#[test]
fn the_same_for_other_programs() {
    let house = board();
    assert_snapshot!(house.run(&["task", "graph", "--format", "dot"]), @r#"
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
    assert_snapshot!(house.run(&["task", "graph", "--format", "mermaid"]), @r#"
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
    let json = house.json(&["task", "graph"]);
    assert_eq!(json["critical_path"], serde_json::json!(["2", "4", "6"]));
    assert_eq!(json["circles"], serde_json::json!([]));
    assert_eq!(json["tasks"][3]["waits_for"], serde_json::json!(["2", "3"]));
    assert_eq!(json["tasks"][1]["state"], "in_progress");
}

#[test]
fn a_circle_made_by_others_is_shown_as_one() {
    let house = House::with_team();
    house.done(&["task", "add", "Sound"]);
    for (id, after) in [(2, 3), (3, 4), (4, 2), (5, 3)] {
        let task = format!(
            r#"{{"id":"{id}","subject":"s{id}","description":"","status":"pending","blocks":[],"blockedBy":["{after}"]}}"#
        );
        house.write(&format!("claude/tasks/demo/{id}.json"), &task);
    }
    assert_snapshot!(house.run(&["task", "graph"]), @"
      ○ 1  Sound  ready
      ⊘ 2  s2     after 3, in a circle
      └─ ⊘ 4  s4  in a circle
      ⊘ 3  s3     after 4, in a circle
      └─ ⊘ 5  s5

    A circle, none of which can ever be begun; each waits for the next: 2 → 3 → 4 → 2

    ○ not begun   ◐ in progress   ● done   ⊘ blocked
    ");
    let json = house.json(&["task", "graph"]);
    assert_eq!(json["circles"], serde_json::json!([["2", "3", "4"]]));
}

#[test]
fn an_empty_board_has_nothing_to_draw() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["task", "graph"]), @"
    --- stderr
    note: the board is empty
    --- exit 4
    ");
    assert_snapshot!(house.run(&["task", "graph", "--json"]), @r#"
    {"circles":[],"critical_path":[],"tasks":[]}
    --- exit 4
    "#);
}
