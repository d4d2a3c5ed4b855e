//! Commands that change several tasks: assign, unassign, reopen, cancel, edit, done, delete.

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::init::run_on_terminal;

/// A team with the tasks 1 to 4.
fn board() -> CliEnv {
    let cli = CliEnv::with_team();
    for subject in ["one", "two", "three", "four"] {
        cli.run_ok(&["task", "add", subject]);
    }
    cli
}

#[test]
fn several_tasks_are_done_and_deleted_with_one_command() {
    let cli = board();
    assert_snapshot!(cli.run(&["task", "done", "1", "9", "2"]), @"
    task 1 is done
    task 2 is done
    --- stderr
    error: no task 9
    hint: `brigade task list` shows the tasks
    hint: the last task is 4
    --- exit 3
    ");
    assert_snapshot!(cli.run(&["task", "delete", "8", "9"]), @"
    --- stderr
    error: no task 8
    hint: `brigade task list` shows the tasks
    hint: the last task is 4
    error: no task 9
    hint: `brigade task list` shows the tasks
    hint: the last task is 4
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "rm", "3", "9", "--json"]), @r#"
    {"tasks":[{"task_id":"3"},{"error":"no task 9","task_id":"9"}]}
    --- exit 3
    "#);
    assert_snapshot!(cli.run(&["--as", "bob", "task", "claim", "1", "4"]), @"
    task 4 is in progress, owned by bob
    --- stderr
    error: task 1 is already completed
    hint: ready to claim: 4
    --- exit 3
    ");
    assert_snapshot!(cli.run(&["tasks"]), @"
    ID  STATE          OWNER  SUBJECT
    1   ● done         -      one
    2   ● done         -      two
    4   ◐ in progress  bob    four
    ");
}

#[test]
fn tasks_are_assigned_unassigned_and_reopened() {
    let cli = board();
    assert_snapshot!(cli.run(&["task", "assign", "1", "2", "bob"]), @"
    task 1 is assigned to bob
    task 2 is assigned to bob
    ");
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    assert_snapshot!(cli.run(&["task", "unassign", "1", "3"]), @"
    task 1 has no owner and is pending
    --- stderr
    error: task 3 has no owner
    hint: `brigade task list` shows the tasks
    --- exit 3
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox", "--unread"]), @"
    ● team-lead  <date and time>  unread  task 1 assigned
      team-lead assigns you task 1: one

    ● team-lead  <date and time>  unread  task 2 assigned
      team-lead assigns you task 2: two

    ● team-lead  <date and time>  unread
      Task 1 is no longer assigned to you.
    ");
    cli.run_ok(&["task", "done", "2"]);
    assert_snapshot!(cli.run(&["task", "assign", "2", "alice"]), @"
    --- stderr
    error: task 2 is already completed
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "reopen", "2", "3"]), @"
    task 2 is pending again
    --- stderr
    error: task 3 is not completed
    hint: `brigade task list` shows the tasks
    --- exit 3
    ");
    assert_snapshot!(cli.run(&["task", "list", "--owner", "bob"]), @"
    ID  STATE       OWNER  SUBJECT
    2   ○ assigned  bob    two
    ");
    assert_snapshot!(cli.run(&["--as", "alice", "task", "unassign", "2"]), @"
    --- stderr
    error: task 2 belongs to bob
    hint: if bob is gone, `brigade task release bob` releases its tasks
    --- exit 1
    ");
}

#[test]
fn a_cancelled_task_unblocks_others_and_can_be_reopened() {
    let cli = board();
    cli.run_ok(&["task", "edit", "2", "--blocked-by", "1"]);
    cli.run_ok(&["task", "assign", "1", "bob"]);
    assert_snapshot!(cli.run(&["task", "cancel", "1", "--reason", "not needed"]), @"task 1 is cancelled");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE        OWNER  SUBJECT
    1   ● cancelled  bob    one
    2   ○ ready      -      two
    3   ○ ready      -      three
    4   ○ ready      -      four
    ");
    assert_snapshot!(cli.run(&["task", "list", "--status", "cancelled", "--json"]), @r#"
    [{
      "id": "1",
      "subject": "one",
      "description": "",
      "status": "completed",
      "blocks": [
        "2"
      ],
      "blockedBy": [],
      "owner": "bob",
      "metadata": {
        "cancelled": "not needed"
      }
    }]
    "#);
    let inbox = cli.run_ok(&["--as", "bob", "inbox"]);
    assert!(inbox.contains("Task 1 was cancelled: not needed. Do not work on it."), "{inbox}");
    assert_snapshot!(cli.run(&["task", "cancel", "1"]), @"
    --- stderr
    error: task 1 is already completed
    --- exit 1
    ");
    cli.run_ok(&["task", "reopen", "1"]);
    let file = std::fs::read_to_string(cli.path("claude/tasks/demo/1.json")).unwrap();
    assert!(!file.contains("cancelled"), "{file}");
}

#[test]
fn labels_and_priorities_are_kept_in_the_metadata() {
    let cli = board();
    cli.run_ok(&["task", "add", "five", "--label", "docs,api", "--priority", "high"]);
    assert_snapshot!(cli.run(&["task", "edit", "1", "2", "--label", "docs", "--priority", "low"]), @"
    changed task 1
    changed task 2
    ");
    cli.run_ok(&["task", "update", "2", "--priority", "normal", "--remove-label", "docs"]);
    assert_snapshot!(cli.run(&["task", "ls"]), @"
    ID  STATE    OWNER  PRIORITY  LABELS     SUBJECT
    1   ○ ready  -      low       docs       one
    2   ○ ready  -      normal    -          two
    3   ○ ready  -      normal    -          three
    4   ○ ready  -      normal    -          four
    5   ○ ready  -      high      docs, api  five
    ");
    assert_snapshot!(cli.run(&["task", "list", "--label", "docs", "--label", "api"]), @"
    ID  STATE    OWNER  PRIORITY  LABELS     SUBJECT
    5   ○ ready  -      high      docs, api  five
    ");
    assert_snapshot!(cli.run(&["task", "list", "--label", "none"]), @"
    --- stderr
    note: no task matches
    --- exit 4
    ");
    let file = std::fs::read_to_string(cli.path("claude/tasks/demo/5.json")).unwrap();
    assert!(file.contains("\"priority\": \"high\""), "{file}");
    assert_snapshot!(cli.run(&["task", "edit", "5", "--label", "two words"]), @r#"
    --- stderr
    error: invalid value 'two words' for '--label <WORD>': "two words" is not a label: a label is one word of up to 50 characters, without commas

    For more information, try `brigade task edit --help`.
    --- exit 2
    "#);
}

#[test]
fn keys_of_other_programs_survive_an_edit() {
    let cli = board();
    let path = "claude/tasks/demo/1.json";
    let file = std::fs::read_to_string(cli.path(path)).unwrap();
    let theirs = file.replace("\"blocks\"", "\"theirs\": 1.50e3,\n  \"blocks\"");
    cli.write(path, &theirs);
    cli.run_ok(&["task", "edit", "1", "--label", "docs"]);
    let edited = std::fs::read_to_string(cli.path(path)).unwrap();
    assert!(edited.contains("\"theirs\": 1.50e3,"), "{edited}");
}

#[test]
fn a_dependency_is_removed() {
    let cli = board();
    cli.run_ok(&["task", "edit", "3", "--blocked-by", "1,2"]);
    assert_snapshot!(cli.run(&["task", "edit", "3", "--unblock", "1"]), @"changed task 3");
    assert_snapshot!(cli.run(&["task", "edit", "3", "--unblock", "1"]), @"
    --- stderr
    error: task 3 does not wait for task 1
    hint: `brigade task graph` shows the dependencies
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["task", "list", "--status", "blocked"]), @"
    ID  STATE      OWNER  SUBJECT
    3   ⊘ after 2  -      three
    ");
    let file = std::fs::read_to_string(cli.path("claude/tasks/demo/1.json")).unwrap();
    assert!(file.contains("\"blocks\": []"), "{file}");
}

fn edit_on_terminal(cli: &CliEnv, editor: &str) -> String {
    let mut command = cli.command(&["task", "edit", "1"]);
    command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1");
    run_on_terminal(command, "").0.replace('\r', "")
}

#[test]
fn a_task_is_edited_in_the_editor_of_the_person() {
    let cli = board();
    cli.write("editor.sh", "#!/bin/sh\ncat \"$1\" > \"$0.seen\"\nprintf 'Uno\\n\\n# A heading\\nMore.\\n# ------------------------ >8 ------------------------\\nignored' > \"$1\"\n");
    let editor = format!("sh {}", cli.path("editor.sh").display());
    assert!(edit_on_terminal(&cli, &editor).contains("changed task 1"));
    let seen = std::fs::read_to_string(cli.path("editor.sh.seen")).unwrap();
    assert!(seen.starts_with("one\n\n\n# ---"), "{seen}");
    let shown = cli.run_ok(&["task", "list", "--json"]);
    assert!(shown.contains(r#""subject": "Uno""#), "{shown}");
    assert!(shown.contains(r##""description": "# A heading\nMore.""##), "{shown}");
    assert!(edit_on_terminal(&cli, "true").contains("note: nothing was changed"));
    assert!(edit_on_terminal(&cli, "false").contains("the editor \"false\" failed"));
}

/// All tasks were changed, but the exit code said that none was.
#[test]
fn tasks_that_were_assigned_to_a_member_that_cannot_be_notified_count_as_changed() {
    let cli = board();
    let files = cli.path("state/brigade/files");
    let folder = std::fs::read_dir(files).unwrap().next().unwrap().unwrap().path();
    let journal = folder.join("demo/mail/bob.jsonl");
    let _created = std::fs::remove_file(&journal);
    std::fs::create_dir_all(&journal).unwrap();
    let outcome = cli.run(&["task", "assign", "1", "2", "bob"]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let told = "task 1 was assigned to bob, but the notification to bob failed";
    assert!(outcome.stderr.contains(told), "{outcome}");
    assert_eq!(cli.json(&["task", "list", "--owner", "bob"]).as_array().unwrap().len(), 2);
}
