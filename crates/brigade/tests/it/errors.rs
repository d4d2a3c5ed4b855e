//! Errors and their hints.

use std::time::Duration;

use insta::assert_snapshot;

use crate::env::{CliEnv, Outcome};

/// Removes the lines `waiting: …`, which a command prints only if an operation is slow.
fn without_waiting(mut outcome: Outcome) -> Outcome {
    let lines = outcome.stderr.lines().filter(|line| !line.starts_with("waiting: "));
    outcome.stderr = lines.map(|line| format!("{line}\n")).collect();
    outcome
}

#[test]
fn a_message_is_accepted_while_the_inbox_is_locked() {
    let cli = CliEnv::with_team();
    cli.write("claude/teams/demo/inboxes/bob.json.lock", "");
    assert_snapshot!(without_waiting(cli.run(&["send", "bob", "one"])), @"
    sent to bob (<id>)
    --- stderr
    note: stored; not in bob's inbox yet: <root>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file
    ");
    assert_snapshot!(without_waiting(cli.run(&["send", "bob", "two", "--json"])), @r#"
    {"message_id":"<id>","to":["bob"],"waits":"<root>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file"}
    --- stderr
    note: stored; not in bob's inbox yet: <root>/claude/teams/demo/inboxes/bob.json.lock is a file, but a lock must be a directory; remove the file
    "#);
    std::fs::remove_file(cli.path("claude/teams/demo/inboxes/bob.json.lock")).unwrap();
    let inbox = cli.json(&["inbox", "bob"]);
    let texts: Vec<&str> =
        inbox.as_array().unwrap().iter().map(|entry| entry["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[test]
fn waiting_for_a_lock_prints_one_notice() {
    let cli = CliEnv::with_team();
    let lock = cli.path("claude/teams/demo/inboxes/bob.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1600));
        std::fs::remove_dir(lock).unwrap();
    });
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    sent to bob (<id>)
    --- stderr
    waiting: another program holds a lock (for up to 12 s)
    ");
    release.join().unwrap();
}

#[test]
fn an_unusable_lock_is_reported_with_its_path() {
    let cli = CliEnv::with_team();
    cli.write("claude/tasks/demo/.lock.lock", "");
    assert_snapshot!(without_waiting(cli.run(&["task", "add", "x"])), @"
    --- stderr
    error: <root>/claude/tasks/demo/.lock.lock is a file, but a lock must be a directory; remove the file
    hint: check the file, then remove it with `rm <root>/claude/tasks/demo/.lock.lock`
    --- exit 1
    ");
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "hi"]);
    let inbox = cli.path("claude/teams/demo/inboxes/bob.json");
    std::fs::rename(&inbox, cli.path("bob.json")).unwrap();
    std::os::unix::fs::symlink(cli.path("bob.json"), &inbox).unwrap();
    assert_snapshot!(cli.run(&["send", "bob", "again"]), @"
    --- stderr
    error: refusing to use <root>/claude/teams/demo/inboxes/bob.json: it is a symbolic link
    hint: brigade does not follow symbolic links in a team's folders; replace the link with the real file
    --- exit 1
    ");
}

#[test]
fn a_claude_code_team_is_only_deleted_with_force() {
    let cli = CliEnv::with_native_team();
    let path = cli.path("claude/teams/theirs/config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.replacen('{', "{\"leadProcess\": {\"pid\": 1},", 1);
    std::fs::write(&path, config).unwrap();
    assert_snapshot!(cli.run(&["--as", "team-lead", "team", "delete"]), @"
    --- stderr
    error: team theirs belongs to a running Claude Code session
    hint: Claude Code deletes the team when its session ends; --force deletes the team while the session runs
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "team-lead", "team", "delete", "--force"]), @"deleted team theirs; its history: `brigade --team theirs log`");
}

#[test]
fn invalid_command_lines_exit_with_code_2() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["sned", "bob", "hi"]), @"
    --- stderr
    error: unrecognized subcommand 'sned'

      tip: some similar subcommands exist: 'new', 'use', 'send'

    Usage: brigade [OPTIONS] [COMMAND]

    For more information, try `brigade --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["task", "show", "07"]), @"
    --- stderr
    error: invalid value '07' for '<ID>': not a task id; expected a whole number, 1 or more

    For more information, try `brigade task show --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["team", "create", "../x"]), @"
    --- stderr
    error: invalid value '../x' for '<NAME>': the team name must not begin with '.'; use a-z, 0-9 and '-', beginning with a letter or digit

    For more information, try `brigade team create --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["task", "update", "1", "--status", "deleted"]), @"
    --- stderr
    error: invalid value 'deleted' for '--status <STATUS>'
      [possible values: pending, in_progress, completed]

      tip: a similar value exists: 'completed'

    For more information, try `brigade task edit --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["task", "show"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <ID>

    Usage: brigade task show <ID>

    For more information, try `brigade task show --help`.
    --- exit 2
    ");
    // A similar option is suggested. The advice to write `-- --unraed` would be wrong.
    assert_snapshot!(cli.run(&["--team", "task", "inbox", "--unraed"]), @"
    --- stderr
    error: unexpected argument '--unraed' found

      tip: a similar argument exists: '--unread'

    Usage: brigade inbox --unread [NAME]

    For more information, try `brigade inbox --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["inbox", "--colour"]), @"
    --- stderr
    error: unexpected argument '--colour' found

    Usage: brigade inbox [OPTIONS] [NAME]

    For more information, try `brigade inbox --help`.
    --- exit 2
    ");
}

#[test]
fn logging_writes_to_stderr_or_a_file() {
    let cli = CliEnv::with_team();
    let args = ["send", "bob", "hi"];
    let quiet = cli.run(&args);
    assert_eq!(quiet.stderr, "");
    let loud = cli.run_with_env(&args, &[("BRIGADE_LOG", "info")]);
    assert!(loud.stderr.contains("sent message team=demo member=bob"), "{loud}");
    let file = cli.path("brigade.log");
    let to_file = [("BRIGADE_LOG", "info"), ("BRIGADE_LOG_FILE", file.to_str().unwrap())];
    let filed = cli.run_with_env(&args, &to_file);
    assert_eq!(filed.stderr, "");
    assert!(std::fs::read_to_string(file).unwrap().contains("sent message team=demo member=bob"));
    assert_snapshot!(cli.run_with_env(&args, &[("BRIGADE_LOG", "x=y=z")]), @"
    --- stderr
    error: BRIGADE_LOG is not valid
      caused by: invalid filter directive: too many '=' in filter directive, expected 0 or 1
    --- exit 2
    ");
}

/// B26: with `--json`, an error is one JSON object on standard error, and standard output stays empty.
#[test]
fn b26_errors_are_json_with_json() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["send", "nobody", "hi", "--json"]), @r#"
    --- stderr
    {"error":{"message":"no member named \"nobody\" in team \"demo\"","hint":"members: team-lead, alice, bob","code":1}}
    --- exit 1
    "#);
    // An error in the command line itself.
    assert_snapshot!(cli.run(&["--json", "sned", "bob", "hi"]), @r#"
    --- stderr
    {"error":{"message":"unrecognized subcommand 'sned'","hint":"tip: some similar subcommands exist: 'new', 'use', 'send'\n\nUsage: brigade [OPTIONS] [COMMAND]\n\nFor more information, try `brigade --help`.","code":2}}
    --- exit 2
    "#);
    // `--json` after `--` is an argument.
    assert_snapshot!(cli.run(&["send", "nobody", "--", "--json"]), @r#"
    --- stderr
    error: no member named "nobody" in team "demo"
    hint: members: team-lead, alice, bob
    --- exit 1
    "#);
}

/// B17: a word that is no folder is more likely a command.
#[test]
fn b17_man_does_not_create_a_folder_for_a_word() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["man", "nope"]), @"
    --- stderr
    error: there is no folder nope
    hint: to write the manual pages into a new folder: `brigade man ./nope`
    hint: `brigade help COMMAND` prints the help of a command
    --- exit 2
    ");
    assert!(!cli.path("work/nope").exists());
    cli.run_ok(&["man", "./pages"]);
    assert!(cli.path("work/pages/brigade-send.1").exists());
}

#[test]
fn an_option_of_another_length_is_not_suggested() {
    let cli = CliEnv::with_team();
    let outcome = cli.run(&["up", "--scale", "bob=2"]);
    assert_eq!(outcome.code, Some(2));
    assert!(!outcome.stderr.contains("similar argument"), "{outcome}");
}

#[test]
fn similar_names_are_suggested() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "one"]);
    for (args, hint) in [
        (&["snd", "bob", "hi"][..], "similar subcommand exists: 'send'"),
        (&["send", "bob", "hi", "--sumary", "x"], "similar argument exists: '--summary'"),
        (&["send", "alcie", "hi"], "did you mean alice? members: team-lead, alice, bob"),
        (&["task", "add", "x", "--owner", "bobb"], "did you mean bob? members"),
        (&["wait", "--idle", "alic"], "did you mean alice? members"),
        (&["team", "leave", "alic"], "did you mean alice? members"),
        (&["--as", "alic", "send", "bob", "hi"], "did you mean alice? members"),
        (&["--team", "dmo", "task", "list"], "did you mean demo? teams: demo"),
        (&["spawn", "x", "--agent", "codx"], "did you mean codex? supported agents"),
        (&["new", "--template", "reviw"], "similar value exists: 'review'"),
        (&["task", "done", "9"], "the last task is 1"),
        (&["task", "show", "9"], "the last task is 1"),
        (&["approve", "7"], "no request is waiting"),
    ] {
        let outcome = cli.run(args);
        assert_ne!(outcome.code, Some(0), "{args:?}");
        assert!(outcome.stderr.contains(hint), "{args:?}: {outcome}");
    }
    // The short forms are similar to too many words.
    let outcome = cli.run(&["statsu"]);
    assert!(outcome.stderr.contains("subcommands exist: 'tasks', 'status'"), "{outcome}");
}

#[test]
fn command_names_of_other_programs_lead_to_the_right_command() {
    let cli = CliEnv::new();
    let exec = cli.run(&["exec", "bob"]);
    assert_eq!(exec.code, Some(2), "{exec}");
    assert!(
        exec.stderr.contains("tip: `brigade ask MEMBER TEXT` prints a member's reply"),
        "{exec}"
    );
    assert_eq!(exec.stderr.matches("tip:").count(), 1, "{exec}");
    let unknown = cli.run(&["top"]);
    assert!(!unknown.stderr.contains("'stop'"), "{unknown}");
    let unknown = cli.run(&["add"]);
    assert!(!unknown.stderr.contains("tip:"), "{unknown}");
    // An option that does not exist is not the subject of a task.
    assert_eq!(CliEnv::with_team().run(&["task", "add", "-f"]).code, Some(2));
}
