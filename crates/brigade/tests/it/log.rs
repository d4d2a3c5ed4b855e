//! `brigade log`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::env::House;

fn story() -> House {
    let house = House::with_team();
    house.done(&["send", "bob", "please review the parser"]);
    house.done(&["--as", "bob", "inbox", "--mark-read"]);
    house.done(&["--as", "bob", "send", "alice", "a long\nstory", "-s", "it works"]);
    house.done(&["task", "add", "Design"]);
    house.done(&["task", "add", "Build", "--blocked-by", "1"]);
    house.done(&["--as", "bob", "task", "claim", "1"]);
    house.done(&["task", "update", "2", "--owner", "alice"]);
    house.done(&["task", "done", "1"]);
    house.done(&["team", "activity", "alice", "active"]);
    house.done(&["team", "leave", "bob"]);
    house
}

#[test]
fn the_history_is_one_line_for_each_thing() {
    assert_snapshot!(story().run(&["log"]), @"
    <date>
    <time>  team-lead           team created
    <time>  alice               joined
    <time>  bob                 joined
    <time>  team-lead → bob     please review the parser  · read <time>
    <time>  bob → alice         it works  · written
    <time>  team-lead           task 1 added: Design
    <time>  team-lead           task 2 added, after 1: Build
    <time>  bob                 task 1 in progress, owner bob: Design
    <time>  team-lead           task 2 owner alice: Build
    <time>  team-lead → alice   [task_assignment]  · written
    <time>  team-lead           task 1 completed: Design
    <time>  alice               is active
    <time>  bob                 left
    ");
}

#[test]
fn the_history_of_a_deleted_team_stays() {
    let house = story();
    house.done(&["task", "delete", "2"]);
    house.done(&["team", "delete", "--force"]);
    let log = house.done(&["--team", "demo", "log"]);
    let last: Vec<&str> = log.lines().rev().take(2).collect();
    assert!(last[0].ends_with("team deleted"), "{last:?}");
    assert!(last[1].ends_with("task 2 deleted"), "{last:?}");
    assert_snapshot!(house.run(&["--team", "never", "log"]), @r#"
    --- stderr
    error: no team named "never"
    hint: `brigade team create never` makes it
    --- exit 1
    "#);
    // In the next team of that name what went with this one is not there, which is nobody's deed.
    house.done(&["team", "create", "demo"]);
    house.done(&["team", "join", "alice"]);
    house.done(&["task", "add", "Other"]);
    let log = house.done(&["log"]);
    let (before, after) = log.split_once("team deleted\n").unwrap();
    assert!(before.contains("it works  · written"), "{log}");
    assert_eq!(after.lines().count(), 3, "{log}");
    assert!(after.contains("task 1 added: Other"), "{log}");
}

#[test]
fn for_programs_each_line_is_a_record() {
    let log = story().done(&["log", "--json"]);
    let records: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.iter().all(|record| record["at"].is_string()));
    let sent: Vec<&serde_json::Value> =
        records.iter().filter(|record| !record["event"]["sent"].is_null()).collect();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0]["by"], "team-lead");
    assert_eq!(sent[0]["event"]["sent"]["message"]["text"], "please review the parser");
}

#[test]
fn what_another_program_did_is_in_it() {
    let house = House::with_native_team();
    house.write(
        "claude/teams/theirs/inboxes/bob.json",
        r#"[{"from":"team-lead","text":"hi","timestamp":"2026-11-15T00:00:29.290Z","read":false}]"#,
    );
    assert_snapshot!(house.run(&["log"]), @"
    <date>
    <time>  team-lead → bob     hi  · written
    <time>  (native)            team created
    ");
}

#[test]
fn it_follows_what_happens() {
    let house = House::with_team();
    let mut command = house.command(&["log", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("bob                 joined")));
    house.done(&["send", "bob", "what happens next"]);
    assert!(lines.next().unwrap().ends_with("what happens next  · written"));
    house.done(&["--as", "bob", "inbox", "--mark-read"]);
    let read = lines.next().unwrap();
    assert!(read.ends_with("read team-lead's: what happens next"), "{read}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn it_ends_when_nobody_reads_any_more() {
    let house = House::with_team();
    let mut command = house.command(&["log", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().is_ok());
    drop(lines);
    // Nothing happens in the team; it ends all the same.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
