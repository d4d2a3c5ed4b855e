//! `brigade history`

use insta::assert_snapshot;

use crate::env::CliEnv;

/// A team in which bob has read 40 messages of 10 kB, and not read one.
fn team_with_long_history() -> CliEnv {
    let cli = CliEnv::with_team();
    for _ in 0..40 {
        cli.run_ok(&["send", "bob", &"x".repeat(10_000)]);
    }
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    cli.run_ok(&["send", "bob", "the last message"]);
    cli
}

fn messages(cli: &CliEnv) -> usize {
    cli.run_ok(&["log", "--json"]).matches("\"sent\"").count()
}

#[test]
fn old_history_is_deleted_and_the_rest_is_kept() {
    let cli = team_with_long_history();
    let size = |cli: &CliEnv| {
        let sizes = cli.run_ok(&["history", "size", "--json"]);
        let sizes: serde_json::Value = serde_json::from_str(&sizes).unwrap();
        sizes[0]["mail_bytes"].as_u64().unwrap()
    };
    let (before, all) = (size(&cli), messages(&cli));
    let deleted = cli.run_ok(&["history", "compact", "--keep", "200kB", "--json"]);
    let deleted: serde_json::Value = serde_json::from_str(&deleted).unwrap();
    let bytes = deleted[0]["bytes"].as_u64().unwrap();
    assert!(bytes > 100_000 && size(&cli) + bytes < before + 20_000, "{deleted}");
    let left = messages(&cli);
    assert!((10..30).contains(&left), "{left} of {all}");
    let log = cli.run(&["log"]);
    assert!(log.stdout.contains("the last message"), "{log}");
    assert!(log.stderr.contains("were deleted (`brigade history`)"), "{log}");
    assert!(cli.run_ok(&["--as", "bob", "inbox", "--unread"]).contains("the last message"));
    assert_snapshot!(cli.run(&["history", "compact", "--keep", "200kB"]), @"
    nothing was deleted: no history is over the limit, or it is still needed
    --- exit 4
    ");
}

#[test]
fn an_unread_message_keeps_what_follows() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "alice", "not read"]);
    for _ in 0..40 {
        cli.run_ok(&["send", "bob", &"x".repeat(10_000)]);
    }
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    let all = messages(&cli);
    let said = cli.run(&["history", "compact", "--keep", "200kB"]);
    assert!(said.stdout.contains("demo: kept everything since"), "{said}");
    assert!(said.stdout.contains("because a message from that day is unread"), "{said}");
    assert_eq!(messages(&cli), all);
}

/// Such a team can still be resumed.
#[test]
fn a_team_that_was_just_deleted_keeps_its_history() {
    let cli = team_with_long_history();
    let all = messages(&cli);
    cli.run_ok(&["team", "delete", "--force"]);
    for keep in ["1d", "200kB"] {
        let said = cli.run(&["history", "compact", "--keep", keep]);
        assert!(said.stdout.starts_with("nothing was deleted: "), "{said}");
    }
    let log = cli.run_ok(&["--team", "demo", "log", "--json"]);
    assert_eq!(log.matches("\"sent\"").count(), all);
}

#[test]
fn the_limit_is_kept_in_the_configuration() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["history", "keep"]), @"all history is kept");
    assert_snapshot!(cli.run(&["history", "compact"]), @r"
    --- stderr
    error: all history is kept: no limit is set
    hint: use --keep 90d, or set a limit with `brigade history keep 90d`
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["history", "keep", "90d"]), @r"
    history is kept for 90 days
    --- stderr
    hint: `brigade history compact` deletes older history now
    ");
    assert_snapshot!(cli.run(&["history", "keep", "--json"]), @r#"{"keep":"90d"}"#);
    assert_snapshot!(cli.run(&["history", "compact"]), @"
    nothing was deleted: no history is over the limit, or it is still needed
    --- exit 4
    ");
    let wrong = cli.run(&["history", "keep", "soon"]);
    assert!(wrong.stderr.contains("use a number of days such as 90d"), "{wrong}");
}

#[test]
fn the_history_is_exported_to_a_new_file() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "hello"]);
    let said = cli.run_ok(&["history", "export", "log.jsonl"]);
    assert!(said.starts_with("wrote 4 records of team demo to log.jsonl"), "{said}");
    let again = cli.run(&["history", "export", "log.jsonl"]);
    assert!(again.stderr.contains("choose a file that does not exist yet"), "{again}");
}
