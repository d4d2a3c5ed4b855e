//! `brigade send`, `broadcast` and `inbox`

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::init::run_on_terminal_of;

#[test]
fn messages_are_sent_shown_and_marked_read() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["send", "bob", "please review"]), @"sent to bob (<id>)");
    assert_snapshot!(cli.run(&["--as", "alice", "send", "bob", "- one\n- two", "-s", "a list"]), @"sent to bob (<id>)");
    assert_snapshot!(cli.run(&["inbox", "bob"]), @"
    ● team-lead  <date and time>  unread
      please review

    ● alice  <date and time>  unread
      a list
      - one
      - two
    ");
    assert_snapshot!(cli.run(&["inbox", "bob", "--mark-read"]), @"
    --- stderr
    error: only bob can mark the messages of bob as read; you are team-lead
    hint: if you are bob, add `--as bob`
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox", "--unread", "--mark-read"]), @"
    ● team-lead  <date and time>  unread
      please review

    ● alice  <date and time>  unread
      a list
      - one
      - two
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox", "--unread"]), @"
    --- stderr
    note: no unread messages for bob
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox", "--unread", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "inbox"]), @"
    ○ team-lead  <date and time>
      please review

    ○ alice  <date and time>
      a list
      - one
      - two
    ");
    assert_snapshot!(cli.run(&["inbox"]), @"
    --- stderr
    note: no messages for team-lead
    --- exit 4
    ");
}

#[test]
fn a_broadcast_reaches_all_other_members() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["--as", "bob", "broadcast", "main is frozen"]), @"sent to team-lead, alice");
    assert_snapshot!(cli.run(&["--as", "bob", "broadcast", "thawed", "--json"]), @r#"{"message_ids":{"alice":"<id>","team-lead":"<id>"},"to":["team-lead","alice"]}"#);
    assert_snapshot!(cli.run(&["inbox", "bob"]), @"
    --- stderr
    note: no messages for bob
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["inbox", "--unread"]), @"
    ● bob  <date and time>  unread
      main is frozen

    ● bob  <date and time>  unread
      thawed
    ");
    let alone = CliEnv::new();
    alone.run_ok(&["team", "create", "alone"]);
    assert_snapshot!(alone.run(&["broadcast", "hello?"]), @"
    --- stderr
    error: team alone has no other member
    hint: add a member with `brigade team join NAME`
    --- exit 4
    ");
}

#[test]
fn a_message_can_come_from_stdin() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run_with_input(&["send", "bob", "-"], b"two\nlines\n"), @"sent to bob (<id>)");
    assert_snapshot!(cli.run_with_input(&["send", "bob", "-"], b""), @"
    --- stderr
    error: the message is empty
    --- exit 1
    ");
    assert_snapshot!(cli.run_with_input(&["send", "bob", "-"], b"\xff\xfe"), @"
    --- stderr
    error: the text on standard input is not UTF-8
    --- exit 1
    ");
    let long = vec![b'a'; (1 << 20) + 5];
    assert_snapshot!(cli.run_with_input(&["send", "bob", "-"], &long), @"
    --- stderr
    error: the message is 1048578 bytes long; the limit is 1048576
    hint: put the text into a file and send the file's name
    --- exit 1
    ");
    let inbox = cli.json(&["inbox", "bob"]);
    assert_eq!(inbox.as_array().unwrap().len(), 1);
    assert_eq!(inbox[0]["text"], "two\nlines");
}

#[test]
fn json_output_is_the_stored_entries() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["send", "bob", "hi", "--json"]), @r#"{"message_id":"<id>","to":["bob"]}"#);
    assert_snapshot!(cli.run(&["inbox", "bob", "--json"]), @r#"
    [{
        "from": "team-lead",
        "text": "hi",
        "timestamp": "<timestamp>",
        "read": false,
        "msg_id": "<id>"
      }]
    "#);
    let sent = cli.json(&["send", "bob", "again"]);
    let inbox = cli.json(&["inbox", "bob"]);
    assert_eq!(inbox[1]["msg_id"], sent["message_id"]);
}

#[test]
fn unknown_recipients_are_reported_with_the_members() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["send", "carl", "hi"]), @r#"
    --- stderr
    error: no member named "carl" in team "demo"
    hint: members: team-lead, alice, bob
    --- exit 1
    "#);
    assert_snapshot!(cli.run(&["--as", "carl", "send", "bob", "hi"]), @"
    --- stderr
    error: carl is not a member of team demo
    hint: members: team-lead, alice, bob
    hint: the lead adds it with `brigade --team demo team join carl`
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "bob", "send", "bob", "hi"]), @"
    --- stderr
    error: cannot send a message to yourself (bob)
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["inbox", "carl"]), @r#"
    --- stderr
    error: no member named "carl" in team "demo"
    hint: members: team-lead, alice, bob
    --- exit 1
    "#);
    assert_snapshot!(cli.run(&["send", "bob", ""]), @"
    --- stderr
    error: the message is empty
    --- exit 1
    ");
}

#[test]
fn unread_messages_on_a_terminal_end_with_the_command_that_marks_them() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "team-lead", "hello", "--as", "bob"]);
    let line = "`brigade inbox --unread --mark-read` marks these messages as read";
    let run = |args: &[&str]| run_on_terminal_of(cli.command(args), "", 80, 24).0;
    let unread = run(&["inbox", "--unread"]);
    assert!(unread.trim_end().ends_with(line), "{unread}");
    for args in [&["inbox"][..], &["inbox", "--unread", "--json"], &["inbox", "bob", "--unread"]] {
        let shown = run(args);
        assert!(!shown.contains(line), "{args:?}: {shown}");
    }
    assert!(!cli.run_ok(&["inbox", "--unread"]).contains(line));
    assert!(!run(&["inbox", "--unread", "--mark-read"]).contains(line));
}

#[test]
fn messages_cannot_control_the_terminal() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "\u{1b}]0;title\u{7}\u{1b}[2Jgone\u{202e}"]);
    assert_snapshot!(cli.run(&["inbox", "bob"]), @r"
    ● team-lead  <date and time>  unread
      \u{1b}]0;title\u{7}\u{1b}[2Jgone\u{202e}
    ");
    assert_snapshot!(cli.run(&["log"]), @r"
    <date>
    <time>  team-lead           team created
    <time>  alice               joined
    <time>  bob                 joined
    <time>  team-lead → bob     \u{1b}]0;title\u{7}\u{1b}[2Jgone\u{202e}  · unread
    ");
}

#[test]
fn durability_can_be_set_by_option_or_variable() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["--durability", "power", "send", "bob", "one"]);
    let by_env = cli.run_with_env(&["send", "bob", "two"], &[("BRIGADE_DURABILITY", "power")]);
    assert_eq!(by_env.code, Some(0));
    cli.run_ok(&["send", "bob", "three"]);
    let log = cli.run_ok(&["log", "--json"]);
    let safe = log.lines().filter(|line| line.contains("\"power_safe\":true")).count();
    assert_eq!(safe, 2);
    let wrong = cli.run_with_env(&["send", "bob", "x"], &[("BRIGADE_DURABILITY", "forever")]);
    assert_snapshot!(wrong, @"
    --- stderr
    error: BRIGADE_DURABILITY is not valid
      caused by: use process or power
    --- exit 2
    ");
}

/// In a team of a Claude Code session, the lead reads its inbox only while a teammate that it started is running.
#[test]
fn sending_to_a_lead_that_does_not_read_prints_a_note() {
    let cli = CliEnv::with_native_team();
    let path = cli.path("claude/teams/theirs/config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.replacen('{', "{\"leadProcess\": {\"pid\": 1},", 1);
    std::fs::write(&path, &config).unwrap();
    assert_snapshot!(cli.run(&["--as", "bob", "send", "team-lead", "hi"]), @"
    sent to team-lead (<id>)
    --- stderr
    note: stored; in team-lead's inbox, but team-lead reads it only while a teammate that it started itself is running
    ");
    // Add a teammate that the lead started itself.
    let own = config.replacen(
        "\"name\": \"bob\"",
        "\"name\": \"bob\", \"backendType\": \"in-process\"",
        1,
    );
    std::fs::write(&path, own).unwrap();
    assert_snapshot!(cli.run(&["--as", "bob", "send", "team-lead", "hi"]), @"sent to team-lead (<id>)");
}

/// Fault A: Claude Code 2.1.178 to 2.1.310 does not name its process in the team's file.
#[test]
fn a_session_that_does_not_name_its_process_gets_the_same_note_and_guard() {
    let cli = CliEnv::with_session_team();
    let sent = cli.run(&["--as", "carol", "send", "team-lead", "hi"]);
    assert!(sent.stderr.contains("team-lead reads it only while a teammate"), "{sent}");
    // Fault B.
    let deleted = cli.run(&["--as", "team-lead", "team", "delete"]);
    assert!(deleted.stderr.contains("belongs to a running Claude Code session"), "{deleted}");
}
