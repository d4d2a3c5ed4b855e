//! `brigade ask`, and the replies of agents in `brigade inbox`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::wait_until;

const IDLE: &str = r#"{"type":"idle_notification","from":"bob","timestamp":"2026-11-15T12:00:00.000Z","idleReason":"available"}"#;

#[test]
fn the_reply_of_an_agent_is_printed() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    // Bob ends its turn with a text.
    assert_eq!(cli.run_ok(&["ask", "bob", "TALK to me"]), "I am talking\n");
    // The text was printed, so it is read.
    assert_eq!(cli.run(&["wait", "--message", "--timeout", "0"]).code, Some(124));
    // Bob sends a message.
    assert_eq!(cli.run_ok(&["ask", "bob", "REPLY please"]), "REPLY of bob\n");
    let reply = cli.json(&["ask", "bob", "TALK again"]);
    assert_eq!(reply["outcome"], "replied");
    assert_eq!(reply["reply"], serde_json::json!({ "kind": "turn_text", "text": "I am talking" }));
    assert_snapshot!(cli.run(&["ask", "bob", "say nothing"]), @"
    --- stderr
    error: no reply: bob ended its turn without a reply
    hint: the question stays in the inbox of bob
    --- exit 1
    ");
    // The inbox shows what bob said, and hides the notices without a text.
    let inbox = cli.run(&["inbox"]);
    assert!(inbox.stdout.contains("at the end of its turn\n  I am talking\n"), "{inbox}");
    assert!(!inbox.stdout.contains("is idle"), "{inbox}");
    assert!(inbox.stderr.contains("not shown (`--all` shows them)"), "{inbox}");
}

#[test]
fn a_member_that_cannot_reply_is_reported() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    let failed = cli.run(&["ask", "alice", "FAIL now", "--timeout", "30s"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(failed.stderr.contains("turn of alice failed: not logged in"), "{failed}");
}

#[test]
fn a_person_replies_with_a_message() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["--as", "bob", "send", "team-lead", "an earlier message"]);
    let mut command = cli.command(&["ask", "bob", "is it ready?"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the question", || cli.run(&["inbox", "bob"]).stdout.contains("is it ready?"));
    cli.run_ok(&["--as", "alice", "send", "team-lead", "not from bob"]);
    cli.run_ok(&["--as", "bob", "send", "team-lead", "yes\nsince noon"]);
    let outcome = cli.outcome(&child.wait_with_output().unwrap());
    assert_eq!(outcome.stdout, "yes\nsince noon\n");
    // The reply was shown, so it is read.
    assert_snapshot!(cli.run(&["inbox", "--unread"]), @"
    ● bob  <date and time>  unread
      an earlier message

    ● alice  <date and time>  unread
      not from bob
    ");
}

#[test]
fn a_question_without_a_reply_stays_sent() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["ask", "bob", "hello?", "--timeout", "1s"]), @"
    --- stderr
    note: no reply from bob in 1 s; the question stays sent, and `brigade inbox --unread` shows a later reply
    --- exit 124
    ");
    assert!(cli.run_ok(&["inbox", "bob"]).contains("hello?"));
}

#[test]
fn the_inbox_counts_idle_notices_instead_of_showing_them() {
    let cli = CliEnv::with_team();
    cli.write_inbox("team-lead", "bob", IDLE);
    assert_snapshot!(cli.run(&["inbox"]), @"
    --- stderr
    note: 1 idle notice not shown (`--all` shows them)
    note: no messages for team-lead
    --- exit 4
    ");
    let all = cli.run_ok(&["inbox", "--all"]);
    assert!(all.contains("bob is idle"), "{all}");
    // Scripts get all entries, as before.
    assert_eq!(cli.json(&["inbox"]).as_array().unwrap().len(), 1);
    let failed = IDLE.replace("available", "failed");
    cli.write_inbox("team-lead", "bob", &failed);
    assert!(cli.run_ok(&["inbox"]).contains("bob failed and is idle"));
}

#[test]
fn following_an_inbox_prints_new_messages() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "first"]);
    for json in [false, true] {
        let args = ["--as", "bob", "inbox", "--follow", "--unread", "--mark-read"];
        let mut command = cli.command(&args);
        if json {
            command.arg("--json");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = |text: &str| assert!(lines.any(|line| line.contains(text)), "{text}");
        if !json {
            next("first");
        }
        wait_until("the watch", || {
            std::fs::read_dir(format!("/proc/{}/task", child.id())).map_or(0, Iterator::count) > 1
        });
        cli.run_ok(&["--as", "alice", "send", "bob", "second"]);
        next("second");
        wait_until("the mark", || cli.run(&["inbox", "bob", "--unread"]).code == Some(4));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
