//! `brigade send`, `broadcast`, `inbox` and `log` in an engine.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::Far;

fn texts(far: &Far, args: &[&str]) -> Vec<String> {
    let inbox = far.json(args);
    let text = |message: &serde_json::Value| message["text"].as_str().unwrap().to_owned();
    inbox.as_array().unwrap().iter().map(text).collect()
}

#[test]
fn a_message_reaches_another_host_once_and_in_order() {
    let a = Far::with_team();
    let b = a.another("b");
    for number in 0..10 {
        a.done(&["--as", "alice", "send", "bob", &format!("number {number}")]);
    }
    let all: Vec<String> = (0..10).map(|number| format!("number {number}")).collect();
    assert_eq!(texts(&b, &["--as", "bob", "inbox"]), all);
    assert_eq!(texts(&b, &["--as", "bob", "inbox", "--unread", "--mark-read"]), all);
    assert_eq!(b.run(&["--as", "bob", "inbox", "--unread"]).code, Some(4));
    assert_eq!(a.json(&["inbox", "bob"])[0]["read"], true);
    assert_eq!(a.json(&["inbox", "bob"])[0]["from"], "alice");
}

#[test]
fn everybody_hears_a_broadcast_but_its_sender() {
    let far = Far::with_team();
    far.done(&["broadcast", "main is frozen"]);
    for name in ["alice", "bob"] {
        assert_eq!(texts(&far, &["inbox", name]), ["main is frozen"]);
    }
    assert_eq!(far.run(&["inbox", "team-lead"]).code, Some(4));
    let nobody = far.run(&["send", "zoe", "hello"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("members: team-lead, alice, bob"), "{nobody}");
}

#[test]
fn a_long_message_comes_whole() {
    let far = Far::with_team();
    let text = "line of a long message\n".repeat(20_000);
    let sent = far.run_with_input(&["send", "bob", "-"], text.as_bytes());
    assert_eq!(sent.code, Some(0), "{sent}");
    assert_eq!(texts(&far, &["inbox", "bob"]), [text.trim_end_matches('\n')]);
}

#[test]
fn the_log_tells_what_happened_and_what_happens() {
    let a = Far::with_team();
    a.done(&["send", "bob", "please review"]);
    a.done(&["--as", "bob", "inbox", "--mark-read"]);
    let log = a.done(&["log"]);
    for word in ["alice", "bob", "please review", "read"] {
        assert!(log.contains(word), "{word}: {log}");
    }
    let b = a.another("b");
    let mut follow =
        b.command(&["log", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    // What was comes first, so that the watch is on when it has been read.
    let first = lines.by_ref().map(Result::unwrap).find(|line| line.contains("please review"));
    assert!(first.is_some());
    a.done(&["--as", "bob", "send", "alice", "done with it"]);
    let next = lines.map(Result::unwrap).find(|line| line.contains("done with it"));
    assert!(next.is_some());
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn the_overview_shows_who_has_mail() {
    let far = Far::with_team();
    far.done(&["send", "bob", "hello"]);
    let overview = far.done(&[]);
    assert!(overview.contains("demo") && overview.contains("bob"), "{overview}");
}
