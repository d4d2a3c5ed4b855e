//! What stands in the way, and what to do about it.

use std::time::Duration;

use insta::assert_snapshot;

use crate::env::{House, Outcome};

/// Whether a wait of just about a second is told of depends on the machine.
fn without_waiting(mut outcome: Outcome) -> Outcome {
    let lines = outcome.stderr.lines().filter(|line| !line.starts_with("waiting: "));
    outcome.stderr = lines.map(|line| format!("{line}\n")).collect();
    outcome
}

#[test]
fn a_message_that_waits_is_sent_all_the_same() {
    let house = House::with_team();
    house.write("claude/teams/demo/inboxes/bob.json.lock", "");
    assert_snapshot!(without_waiting(house.run(&["send", "bob", "one"])), @"
    sent to bob (<id>)
    --- stderr
    note: acknowledged; not in bob's inbox yet: <house>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file
    ");
    assert_snapshot!(without_waiting(house.run(&["send", "bob", "two", "--json"])), @r#"
    {"message_id":"<id>","to":["bob"],"waits":"<house>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file"}
    --- stderr
    note: acknowledged; not in bob's inbox yet: <house>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file
    "#);
    std::fs::remove_file(house.path("claude/teams/demo/inboxes/bob.json.lock")).unwrap();
    let inbox = house.json(&["inbox", "bob"]);
    let texts: Vec<&str> =
        inbox.as_array().unwrap().iter().map(|entry| entry["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[test]
fn waiting_for_a_lock_is_told_of_once() {
    let house = House::with_team();
    let lock = house.path("claude/teams/demo/inboxes/bob.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1600));
        std::fs::remove_dir(lock).unwrap();
    });
    assert_snapshot!(house.run(&["send", "bob", "hi"]), @"
    sent to bob (<id>)
    --- stderr
    waiting: another program holds a lock (for up to 12 s)
    ");
    release.join().unwrap();
}

#[test]
fn a_lock_that_no_program_can_take_is_named() {
    let house = House::with_team();
    house.write("claude/tasks/demo/.lock.lock", "");
    assert_snapshot!(without_waiting(house.run(&["task", "add", "x"])), @"
    --- stderr
    error: <house>/claude/tasks/demo/.lock.lock is a file, but a lock must be a directory; remove the file
    hint: look at it, then `rm <house>/claude/tasks/demo/.lock.lock`
    --- exit 1
    ");
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let house = House::with_team();
    house.done(&["send", "bob", "hi"]);
    let inbox = house.path("claude/teams/demo/inboxes/bob.json");
    std::fs::rename(&inbox, house.path("bob.json")).unwrap();
    std::os::unix::fs::symlink(house.path("bob.json"), &inbox).unwrap();
    assert_snapshot!(house.run(&["send", "bob", "again"]), @"
    --- stderr
    error: refusing to use <house>/claude/teams/demo/inboxes/bob.json: it is a symbolic link
    hint: brigade follows no symbolic link in a team's folders; put the real file there
    --- exit 1
    ");
}

#[test]
fn a_native_team_is_not_deleted_under_its_session() {
    let house = House::with_native_team();
    let path = house.path("claude/teams/theirs/config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.replacen('{', "{\"leadProcess\": {\"pid\": 1},", 1);
    std::fs::write(&path, config).unwrap();
    assert_snapshot!(house.run(&["--as", "team-lead", "team", "delete"]), @"
    --- stderr
    error: team theirs belongs to a running Claude Code session
    hint: Claude Code deletes it when its session ends; --force deletes it under its feet
    --- exit 1
    ");
    assert_snapshot!(house.run(&["--as", "team-lead", "team", "delete", "--force"]), @"deleted team theirs; its history stays: `brigade --team theirs log`");
}

#[test]
fn a_bad_command_line_is_code_2() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["sned", "bob", "hi"]), @"
    --- stderr
    error: unrecognized subcommand 'sned'

      tip: some similar subcommands exist: 'new', 'send'

    Usage: brigade [OPTIONS] [COMMAND]

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(house.run(&["task", "show", "07"]), @"
    --- stderr
    error: invalid value '07' for '<ID>': not a task id; expected a whole number, 1 or more

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(house.run(&["team", "create", "../x"]), @"
    --- stderr
    error: invalid value '../x' for '<NAME>': the team name must not begin with '.'; use a-z, 0-9 and '-', beginning with a letter or digit

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(house.run(&["task", "update", "1", "--status", "deleted"]), @"
    --- stderr
    error: invalid value 'deleted' for '--status <STATUS>'
      [possible values: pending, in_progress, completed]

      tip: a similar value exists: 'completed'

    For more information, try '--help'.
    --- exit 2
    ");
}

#[test]
fn the_log_of_the_program_goes_where_it_is_sent() {
    let house = House::with_team();
    let args = ["send", "bob", "hi"];
    let quiet = house.run(&args);
    assert_eq!(quiet.stderr, "");
    let loud = house.run_with_env(&args, &[("BRIGADE_LOG", "info")]);
    assert!(loud.stderr.contains("sent team=demo member=bob"), "{loud}");
    let file = house.path("brigade.log");
    let to_file = [("BRIGADE_LOG", "info"), ("BRIGADE_LOG_FILE", file.to_str().unwrap())];
    let filed = house.run_with_env(&args, &to_file);
    assert_eq!(filed.stderr, "");
    assert!(std::fs::read_to_string(file).unwrap().contains("sent team=demo member=bob"));
    assert_snapshot!(house.run_with_env(&args, &[("BRIGADE_LOG", "x=y=z")]), @"
    --- stderr
    error: BRIGADE_LOG is not valid
      caused by: invalid filter directive: too many '=' in filter directive, expected 0 or 1
    --- exit 2
    ");
}
