//! `brigade send`, `broadcast`, `inbox` and `log` in a NATS store.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::NatsHost;

fn texts(client: &NatsHost, args: &[&str]) -> Vec<String> {
    let inbox = client.json(args);
    let text = |message: &serde_json::Value| message["text"].as_str().unwrap().to_owned();
    inbox.as_array().unwrap().iter().map(text).collect()
}

#[test]
fn messages_reach_another_host_once_and_in_order() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    for number in 0..10 {
        a.run_ok(&["--as", "alice", "send", "bob", &format!("number {number}")]);
    }
    let all: Vec<String> = (0..10).map(|number| format!("number {number}")).collect();
    assert_eq!(texts(&b, &["--as", "bob", "inbox"]), all);
    assert_eq!(texts(&b, &["--as", "bob", "inbox", "--unread", "--mark-read"]), all);
    assert_eq!(b.run(&["--as", "bob", "inbox", "--unread"]).code, Some(4));
    assert_eq!(a.json(&["inbox", "bob"])[0]["read"], true);
    assert_eq!(a.json(&["inbox", "bob"])[0]["from"], "alice");
}

#[test]
fn a_broadcast_skips_its_sender() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["broadcast", "main is frozen"]);
    for name in ["alice", "bob"] {
        assert_eq!(texts(&client, &["inbox", name]), ["main is frozen"]);
    }
    assert_eq!(client.run(&["inbox", "team-lead"]).code, Some(4));
    let nobody = client.run(&["send", "zoe", "hello"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("members: team-lead, alice, bob"), "{nobody}");
}

#[test]
fn long_messages_arrive_complete() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let text = "line of a long message\n".repeat(20_000);
    let sent = client.run_with_input(&["send", "bob", "-"], text.as_bytes());
    assert_eq!(sent.code, Some(0), "{sent}");
    assert_eq!(texts(&client, &["inbox", "bob"]), [text.trim_end_matches('\n')]);
}

#[test]
fn the_log_shows_past_and_new_events() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    a.run_ok(&["send", "bob", "please review"]);
    a.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    let log = a.run_ok(&["log"]);
    for word in ["alice", "bob", "please review", "read"] {
        assert!(log.contains(word), "{word}: {log}");
    }
    let b = a.another("b");
    let mut follow =
        b.command(&["log", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    // `log --follow` prints past events first. Once they are printed, it also prints new ones.
    let first = lines.by_ref().map(Result::unwrap).find(|line| line.contains("please review"));
    assert!(first.is_some());
    a.run_ok(&["--as", "bob", "send", "alice", "done with it"]);
    let next = lines.map(Result::unwrap).find(|line| line.contains("done with it"));
    assert!(next.is_some());
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn the_overview_shows_unread_mail() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["send", "bob", "hello"]);
    let overview = client.run_ok(&[]);
    assert!(overview.contains("demo") && overview.contains("bob"), "{overview}");
}
