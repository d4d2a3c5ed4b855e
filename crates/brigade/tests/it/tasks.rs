//! `brigade task …`

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn a_task_is_added_claimed_and_completed() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["task", "list"]), @"
    --- stderr
    note: the board is empty
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["task", "add", "Design", "-d", "On one page.\nNo more."]), @"added task 1");
    assert_snapshot!(cli.run(&["task", "add", "Build", "--blocked-by", "1", "--active-form", "Building"]), @"added task 2");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE      OWNER  SUBJECT
    1   ○ ready    -      Design
    2   ⊘ after 1  -      Build
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "task", "claim", "2"]), @"
    --- stderr
    error: task 2 is blocked by 1
    hint: task 1 is ready: Design
    hint: ready to claim: 1
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "task", "claim", "1"]), @"task 1 is in progress, owned by bob");
    assert_snapshot!(cli.run(&["--as", "alice", "task", "claim", "1"]), @"
    --- stderr
    error: task 1 belongs to bob
    hint: if bob is gone, `brigade task release bob` releases its tasks
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "alice", "task", "done", "1"]), @"
    --- stderr
    error: task 1 belongs to bob
    hint: if bob is gone, `brigade task release bob` releases its tasks
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "task", "done", "1"]), @"task 1 is done");
    assert_snapshot!(cli.run(&["--as", "bob", "task", "claim", "1"]), @"
    --- stderr
    error: task 1 is already completed
    hint: ready to claim: 2
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "list", "--ready"]), @"
    ID  STATE    OWNER  SUBJECT
    2   ○ ready  -      Build
    ");
    assert_snapshot!(cli.run(&["task", "show", "1", "--brief"]), @"
    1  Design
    state      ● done
    owner      bob
    blocks     2 ○

    On one page.
    No more.
    ");
    assert_snapshot!(cli.run(&["task", "show", "2", "--brief"]), @"
    2  Build
    state      ○ ready
    after      1 ●
    shown as   Building
    ");
}

#[test]
fn a_task_is_changed_reassigned_and_deleted() {
    let cli = CliEnv::with_team();
    for subject in ["one", "two", "three"] {
        cli.run_ok(&["task", "add", subject]);
    }
    assert_snapshot!(cli.run(&["task", "update", "1"]), @"
    --- stderr
    error: nothing to change
    hint: `brigade task edit --help` shows what can be changed
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["task", "update", "1", "--owner", "bob", "--subject", "One"]), @"changed task 1");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox"]), @"
    ● team-lead  <date and time>  unread  task 1 assigned
      team-lead assigns you task 1: One
    ");
    assert_snapshot!(cli.run(&["task", "update", "1", "--owner", "carl"]), @r#"
    --- stderr
    error: cannot assign the task: no member named "carl"
    hint: members: team-lead, alice, bob
    --- exit 1
    "#);
    assert_snapshot!(cli.run(&["task", "update", "1", "--owner", "bob", "--no-owner"]), @"
    --- stderr
    error: the argument '--owner <NAME>' cannot be used with '--no-owner'

    Usage: brigade task edit --owner <NAME> <ID>...

    For more information, try `brigade task edit --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["task", "update", "2", "--blocked-by", "1", "--blocks", "3"]), @"changed task 2");
    assert_snapshot!(cli.run(&["task", "update", "1", "--blocked-by", "3"]), @"
    --- stderr
    error: task 1 cannot depend on 3: 3 already depends on 1
    hint: `brigade task graph` shows the dependencies
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "update", "3", "--status", "in_progress"]), @"changed task 3");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE          OWNER  SUBJECT
    1   ○ assigned     bob    One
    2   ⊘ after 1      -      two
    3   ◐ in progress  -      three
    ");
    assert_snapshot!(cli.run(&["task", "release", "bob"]), @"unassigned bob's unfinished tasks: 1");
    assert_snapshot!(cli.run(&["task", "release", "bob"]), @"
    --- stderr
    note: bob has no unfinished tasks
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["task", "delete", "2"]), @"deleted task 2");
    assert_snapshot!(cli.run(&["task", "delete", "2"]), @"
    --- stderr
    error: no task 2
    hint: `brigade task list` shows the tasks
    hint: the last task is 3
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE          OWNER  SUBJECT
    1   ○ ready        -      One
    3   ◐ in progress  -      three
    ");
}

#[test]
fn json_output() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["task", "list", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["task", "add", "one", "--json"]), @r#"{"task_id":"1"}"#);
    assert_snapshot!(cli.run(&["task", "add", "two", "--blocked-by", "1", "--json"]), @r#"{"task_id":"2"}"#);
    assert_snapshot!(cli.run(&["--as", "bob", "task", "claim", "1", "--json"]), @r#"{"task_id":"1"}"#);
    assert_snapshot!(cli.run(&["task", "list", "--json"]), @r#"
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
    assert_snapshot!(cli.run(&["task", "list", "--ready", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["task", "release", "bob", "--json"]), @r#"{"released":["1"]}"#);
    assert_snapshot!(cli.run(&["task", "done", "1", "--json"]), @r#"{"task_id":"1"}"#);
    let file = std::fs::read_to_string(cli.path("claude/tasks/demo/2.json")).unwrap();
    assert_eq!(cli.run_ok(&["task", "show", "2", "--brief", "--json"]), file + "\n");
}

#[test]
fn incomplete_task_files_are_noted_and_skipped() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "one"]);
    cli.write("claude/tasks/demo/7.json", "{\"id\": \"7\"}");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE    OWNER  SUBJECT
    1   ○ ready  -      one
    --- stderr
    note: tasks not shown because their files are incomplete: 7
    ");
    assert_snapshot!(cli.run(&["task", "show", "7"]), @"
    7
    state      incomplete: a required field is missing; Claude Code does not show it
    ");
    assert_snapshot!(cli.run(&["task", "claim", "7"]), @"
    --- stderr
    error: task 7 is missing required fields; Claude Code does not show it either
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "show", "8"]), @"
    --- stderr
    error: no task 8
    hint: `brigade task list` shows the tasks
    hint: the last task is 7
    --- exit 1
    ");
}

/// A team in which bob has done a task.
fn with_history() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Publish", "-d", "Version 0.4.", "--label", "docs"]);
    cli.run_ok(&["task", "assign", "1", "bob"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    cli.run_ok(&["--as", "bob", "send", "alice", "please review task 1 first"]);
    cli.run_ok(&["send", "bob", "issue 1 is not task 10"]);
    cli.run_ok(&["--as", "bob", "task", "done", "1"]);
    cli
}

#[test]
fn show_tells_the_whole_story_of_a_task() {
    let cli = with_history();
    assert_snapshot!(cli.run(&["task", "show", "1"]), @"
    1  Publish
    state      ● done
    owner      bob
    labels     docs

    Version 0.4.

    History
      <date and time>  added  (team-lead)
      <date and time>  assigned to bob  (team-lead)
      <date and time>  claimed by bob  (bob)
      <date and time>  completed  (bob)

    Mail
      <date and time>  bob → alice  please review task 1 first
    ");
    let story = &cli.json(&["task", "show", "1"])["story"];
    assert_eq!(story["state"], "done");
    assert_eq!(story["labels"][0], "docs");
    assert_eq!(story["history"][2]["change"], "claimed by bob");
    assert_eq!(story["history"][2]["by"], "bob");
    assert_eq!(story["mail"].as_array().unwrap().len(), 1);
    for key in ["turns", "tokens", "cost", "worktree", "priority", "cancelled"] {
        assert!(story.get(key).is_some(), "{key}");
    }
}
