//! Tasks from files: `task add --from`, `task export`, `task import`.

use insta::assert_snapshot;

use crate::env::CliEnv;

const PLAN: &str = "\
# Release 0.4

- [ ] Publish @alice !high
  Ask Carol before.

  ```
  - [ ] not an item
  ```
  - [ ] Write the changelog #docs
    - [x] Collect the changes
  - [ ] Fix issue #12
- a plain item

1. [ ] Design @bob
2. [ ] Build
3. [X] Think
";

#[test]
fn a_checklist_becomes_tasks_with_dependencies() {
    let cli = CliEnv::with_team();
    cli.write("work/plan.md", PLAN);
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @"
    added task 3: Publish
    added task 1: Write the changelog
    added task 2: Fix issue #12
    added task 4: Design
    added task 5: Build
    --- stderr
    note: skipped 2 checked items
    note: notified alice, bob
    ");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE         OWNER  PRIORITY  LABELS  SUBJECT
    1   ○ ready       -      normal    docs    Write the changelog
    2   ○ ready       -      normal    -       Fix issue #12
    3   ⊘ after 1, 2  alice  high      -       Publish
    4   ○ assigned    bob    normal    -       Design
    5   ⊘ after 4     -      normal    -       Build
    ");
    let publish = cli.run_ok(&["task", "show", "3"]);
    assert!(publish.contains("Ask Carol before.\n\n```\n- [ ] not an item\n```"), "{publish}");
    // The same file again adds only what is new.
    cli.write("work/plan.md", &format!("{PLAN}4. [ ] Rest\n"));
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @"
    added task 6: Rest
    --- stderr
    note: already on the board: 3, 1, 2, 4, 5
    note: skipped 2 checked items
    ");
    // After a task is done, the list can be used again.
    cli.run_ok(&["task", "done", "1"]);
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md", "--json"]), @r#"{"added":["7"],"existing":["3","2","4","5","6"],"notified":[],"skipped_done":2}"#);
}

/// A command that was killed before it notified the owners is completed by running it again.
#[test]
fn a_second_run_notifies_owners_that_the_first_did_not() {
    let cli = CliEnv::with_team();
    cli.write("work/plan.md", "- [ ] Design @bob\n");
    // The board after a kill: the task exists, and no message was sent.
    cli.run_ok(&["task", "add", "other"]);
    let task = r#"{"id": "2", "subject": "Design", "description": "", "owner": "bob", "status": "pending",
        "blocks": [], "blockedBy": [], "metadata": {"source": "plan.md/Design"}}"#;
    cli.write("claude/tasks/demo/2.json", task);
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @"
    --- stderr
    note: already on the board: 2
    note: notified bob
    ");
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @"
    --- stderr
    note: already on the board: 2
    ");
}

#[test]
fn mistakes_in_a_checklist_are_shown_and_nothing_is_added() {
    let cli = CliEnv::with_team();
    let text = "- [ ] Good\n- [?] Odd\n- [ ] @bob\n- [ ] Who @carl\n- [ ] Soon !urgent\n";
    cli.write("work/plan.md", text);
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @r#"
    --- stderr
    error: plan.md has 2 mistakes; no task was added
      line 2: [?] is not a checkbox; write [ ], or [x] for a done item
      line 5: unknown priority "urgent"; use high, normal or low
    --- exit 1
    "#);
    cli.write("work/plan.md", "- [ ] Good\n- [ ] @bob\n- [ ] Who @carl\n");
    assert_snapshot!(cli.run(&["task", "add", "--from", "plan.md"]), @r#"
    --- stderr
    error: plan.md has 2 mistakes; no task was added
      line 2: the subject is empty
      line 3: no member named "carl"; members: team-lead, alice, bob
    --- exit 1
    "#);
    assert_eq!(cli.run(&["task", "list"]).code, Some(4));
    let empty = cli.run_with_input(&["task", "add", "--from", "-"], b"no list\n");
    assert_snapshot!(empty, @"
    --- stderr
    error: - has 1 mistake; no task was added
      line 1: there is no checklist item; write each task as `- [ ] subject`
    --- exit 1
    ");
}

/// A team with three tasks in every status.
fn board() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Design, \"all\" of it", "-d", "=1+1\nsecond line"]);
    cli.run_ok(&[
        "task",
        "add",
        "Build",
        "--blocked-by",
        "1",
        "--label",
        "api",
        "--priority",
        "high",
    ]);
    cli.run_ok(&["task", "add", "Rest"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    cli.run_ok(&["task", "done", "1"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "2"]);
    cli.run_ok(&["team", "create", "other"]);
    cli
}

const OTHER: [&str; 2] = ["--team", "other"];

fn in_other<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&OTHER, args].concat()
}

fn demo<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["--team", "demo"], args].concat()
}

#[test]
fn tasks_are_moved_to_another_team_as_json_and_not_doubled() {
    let cli = board();
    let json = cli.run_ok(&demo(&["task", "export"]));
    cli.write("work/tasks.json", &json);
    assert_snapshot!(cli.run(&in_other(&["task", "import", "tasks.json"])), @r#"
    --- stderr
    error: tasks.json has 2 mistakes; no task was added
      task 1: no member named "bob"; members: team-lead
      task 2: no member named "bob"; members: team-lead
    --- exit 1
    "#);
    cli.run_ok(&in_other(&["task", "add", "first"]));
    assert_snapshot!(cli.run(&in_other(&["task", "import", "tasks.json", "--no-owners"])), @r#"
    added task 2: Design, "all" of it
    added task 3: Build
    added task 4: Rest
    "#);
    assert_snapshot!(cli.run(&in_other(&["task", "list"])), @r#"
    ID  STATE    OWNER  PRIORITY  LABELS  SUBJECT
    1   ○ ready  -      normal    -       first
    2   ● done   -      normal    -       Design, "all" of it
    3   ○ ready  -      high      api     Build
    4   ○ ready  -      normal    -       Rest
    "#);
    assert_snapshot!(cli.run(&in_other(&["task", "import", "tasks.json", "--no-owners"])), @"
    --- stderr
    note: already on the board: 2, 3, 4
    ");
    // A team's own export adds nothing to it, also after a detour through another team.
    let back = cli.run_ok(&in_other(&["task", "export"]));
    cli.write("work/back.json", &back);
    assert_snapshot!(cli.run(&demo(&["task", "import", "back.json"])), @"
    added task 4: first
    --- stderr
    note: already on the board: 1, 2, 3
    ");
}

#[test]
fn csv_round_trip_keeps_texts_and_dependencies() {
    let cli = board();
    let csv = cli.run_ok(&demo(&["task", "export", "--format", "csv"]));
    assert!(
        csv.starts_with(
            "id,subject,description,status,owner,blocked_by,labels,priority,source\r\n"
        )
    );
    assert!(
        csv.contains(
            "1,\"Design, \"\"all\"\" of it\",\"'=1+1\nsecond line\",completed,bob,,,normal,demo/"
        ),
        "{csv}"
    );
    cli.write("work/tasks.csv", &csv);
    cli.run_ok(&in_other(&["team", "join", "bob"]));
    cli.run_ok(&in_other(&["task", "import", "tasks.csv"]));
    let before = cli.run_ok(&in_other(&["inbox", "bob"]));
    // Only the unfinished task was announced.
    assert_eq!(before.matches("assigns you").count(), 1, "{before}");
    assert_snapshot!(cli.run(&in_other(&["task", "import", "tasks.csv"])), @"
    --- stderr
    note: already on the board: 1, 2, 3
    ");
    let tasks = cli.run_ok(&in_other(&["task", "list", "--json"]));
    assert!(tasks.contains(r#""description": "=1+1\nsecond line""#), "{tasks}");
}

#[test]
fn mistakes_in_a_csv_file_name_their_lines() {
    let cli = board();
    let text = "ID,Subject,Blocked_by,Status\n1,one,2,\n2,two,1,odd\n3,,9,\n";
    cli.write("work/tasks.csv", text);
    assert_snapshot!(cli.run(&demo(&["task", "import", "tasks.csv"])), @r#"
    --- stderr
    error: tasks.csv has 2 mistakes; no task was added
      line 3: "odd": not a task status; use pending, in_progress or completed
      line 4: waits for task "9", which is not in the file
    --- exit 1
    "#);
    cli.write("work/tasks.csv", "id,subject,blocked_by\n1,one,2\n2,two,1\n");
    assert_snapshot!(cli.run(&demo(&["task", "import", "tasks.csv"])), @"
    --- stderr
    error: tasks.csv has 2 mistakes; no task was added
      line 2: the task waits for itself, directly or through other tasks
      line 3: the task waits for itself, directly or through other tasks
    --- exit 1
    ");
    cli.write("work/tasks.csv", "title,notes\none,\n");
    let refused = cli.run(&demo(&["task", "import", "tasks.csv"]));
    assert!(
        refused.stderr.contains("line 1: there is no column \"subject\""),
        "{}",
        refused.stderr
    );
    cli.write("work/tasks.json", "{\"team\": \"x\",\n \"tasks\": [}");
    let refused = cli.run(&demo(&["task", "import", "tasks.json"]));
    assert!(refused.stderr.contains("line 2: this is not JSON"), "{}", refused.stderr);
}
