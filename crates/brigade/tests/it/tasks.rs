//! `brigade task …`

use insta::assert_snapshot;

use crate::env::House;

#[test]
fn a_task_goes_from_added_to_done() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["task", "list"]), @"
    --- stderr
    note: the board is empty
    --- exit 4
    ");
    assert_snapshot!(house.run(&["task", "add", "Design", "-d", "On one page.\nNo more."]), @"added task 1");
    assert_snapshot!(house.run(&["task", "add", "Build", "--blocked-by", "1", "--active-form", "Building"]), @"added task 2");
    assert_snapshot!(house.run(&["task", "list"]), @"
    ID  STATE      OWNER  SUBJECT
    1   ○ ready    -      Design
    2   ⊘ after 1  -      Build
    ");
    assert_snapshot!(house.run(&["--as", "bob", "task", "claim", "2"]), @"
    --- stderr
    error: task 2 is blocked by 1
    hint: task 1 is ready: Design
    hint: ready to be claimed: 1
    --- exit 1
    ");
    assert_snapshot!(house.run(&["--as", "bob", "task", "claim", "1"]), @"task 1 is bob's, and in progress");
    assert_snapshot!(house.run(&["--as", "alice", "task", "claim", "1"]), @"
    --- stderr
    error: task 1 belongs to bob
    hint: if bob is gone, `brigade task release bob` gives its tasks back
    --- exit 1
    ");
    assert_snapshot!(house.run(&["--as", "alice", "task", "done", "1"]), @"
    --- stderr
    error: task 1 belongs to bob
    hint: if bob is gone, `brigade task release bob` gives its tasks back
    --- exit 1
    ");
    assert_snapshot!(house.run(&["--as", "bob", "task", "done", "1"]), @"task 1 is done");
    assert_snapshot!(house.run(&["--as", "bob", "task", "claim", "1"]), @"
    --- stderr
    error: task 1 is already completed
    hint: ready to be claimed: 2
    --- exit 1
    ");
    assert_snapshot!(house.run(&["task", "list", "--ready"]), @"
    ID  STATE    OWNER  SUBJECT
    2   ○ ready  -      Build
    ");
    assert_snapshot!(house.run(&["task", "show", "1"]), @"
    1  Design
    state      ● done
    owner      bob
    blocks     2 ○

    On one page.
    No more.
    ");
    assert_snapshot!(house.run(&["task", "show", "2"]), @"
    2  Build
    state      ○ ready
    after      1 ●
    shown as   Building
    ");
}

#[test]
fn a_task_is_changed_given_away_and_deleted() {
    let house = House::with_team();
    for subject in ["one", "two", "three"] {
        house.done(&["task", "add", subject]);
    }
    assert_snapshot!(house.run(&["task", "update", "1"]), @"
    --- stderr
    error: nothing to change
    hint: `brigade task update --help` shows what can be changed
    --- exit 2
    ");
    assert_snapshot!(house.run(&["task", "update", "1", "--owner", "bob", "--subject", "One"]), @"changed task 1");
    assert_snapshot!(house.run(&["--as", "bob", "inbox"]), @r#"
    ● team-lead  <date and time>  unread  task_assignment
      team-lead assigns you task 1: One
    "#);
    assert_snapshot!(house.run(&["task", "update", "1", "--owner", "carl"]), @r#"
    --- stderr
    error: cannot assign the task: no member named "carl"
    hint: members are team-lead, alice, bob
    --- exit 1
    "#);
    assert_snapshot!(house.run(&["task", "update", "1", "--owner", "bob", "--no-owner"]), @"
    --- stderr
    error: the argument '--owner <NAME>' cannot be used with '--no-owner'

    Usage: brigade task update --owner <NAME> <ID>

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(house.run(&["task", "update", "2", "--blocked-by", "1", "--blocks", "3"]), @"changed task 2");
    assert_snapshot!(house.run(&["task", "update", "1", "--blocked-by", "3"]), @"
    --- stderr
    error: task 1 cannot depend on 3: 3 already depends on 1
    hint: `brigade task graph` shows who waits for whom
    --- exit 1
    ");
    assert_snapshot!(house.run(&["task", "update", "3", "--status", "in_progress"]), @"changed task 3");
    assert_snapshot!(house.run(&["task", "list"]), @"
    ID  STATE          OWNER  SUBJECT
    1   ○ kept         bob    One
    2   ⊘ after 1      -      two
    3   ◐ in progress  -      three
    ");
    assert_snapshot!(house.run(&["task", "release", "bob"]), @"gave back bob's open tasks: 1");
    assert_snapshot!(house.run(&["task", "release", "bob"]), @"
    --- stderr
    note: bob has no open tasks
    --- exit 4
    ");
    assert_snapshot!(house.run(&["task", "delete", "2"]), @"deleted task 2");
    assert_snapshot!(house.run(&["task", "delete", "2"]), @"
    --- stderr
    error: no task 2
    hint: `brigade task list` shows the tasks there are
    --- exit 1
    ");
    assert_snapshot!(house.run(&["task", "list"]), @"
    ID  STATE          OWNER  SUBJECT
    1   ○ ready        -      One
    3   ◐ in progress  -      three
    ");
}

#[test]
fn answers_for_programs() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["task", "list", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(house.run(&["task", "add", "one", "--json"]), @r#"{"task_id":"1"}"#);
    assert_snapshot!(house.run(&["task", "add", "two", "--blocked-by", "1", "--json"]), @r#"{"task_id":"2"}"#);
    assert_snapshot!(house.run(&["--as", "bob", "task", "claim", "1", "--json"]), @r#"{"task_id":"1"}"#);
    assert_snapshot!(house.run(&["task", "list", "--json"]), @r#"
    [{
      "id": "1",
      "subject": "one",
      "description": "",
      "status": "in_progress",
      "blocks": [
        "2"
      ],
      "blockedBy": [],
      "owner": "bob"
    },
    {
      "id": "2",
      "subject": "two",
      "description": "",
      "status": "pending",
      "blocks": [],
      "blockedBy": [
        "1"
      ]
    }]
    "#);
    assert_snapshot!(house.run(&["task", "list", "--ready", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(house.run(&["task", "release", "bob", "--json"]), @r#"{"released":["1"]}"#);
    assert_snapshot!(house.run(&["task", "done", "1", "--json"]), @r#"{"task_id":"1"}"#);
    let file = std::fs::read_to_string(house.path("claude/tasks/demo/2.json")).unwrap();
    assert_eq!(house.done(&["task", "show", "2", "--json"]), file + "\n");
}

#[test]
fn a_file_that_is_no_task_is_told_of_and_passed_over() {
    let house = House::with_team();
    house.done(&["task", "add", "one"]);
    house.write("claude/tasks/demo/7.json", "{\"id\": \"7\"}");
    assert_snapshot!(house.run(&["task", "list"]), @"
    ID  STATE    OWNER  SUBJECT
    1   ○ ready  -      one
    --- stderr
    note: not shown, for these files are no whole tasks: 7
    ");
    assert_snapshot!(house.run(&["task", "show", "7"]), @"
    7
    state      is missing required fields; Claude Code does not show it
    ");
    assert_snapshot!(house.run(&["task", "claim", "7"]), @"
    --- stderr
    error: task 7 is missing required fields; Claude Code does not show it either
    --- exit 1
    ");
    assert_snapshot!(house.run(&["task", "show", "8"]), @"
    --- stderr
    error: no task 8
    hint: `brigade task list` shows the tasks there are
    --- exit 1
    ");
}
