//! `brigade log`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use brigade_files::claude_dir_key;
use insta::assert_snapshot;

use crate::env::CliEnv;

fn team_with_history() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "please review the parser"]);
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    cli.run_ok(&["--as", "bob", "send", "alice", "a long\nstory", "-s", "it works"]);
    cli.run_ok(&["task", "add", "Design"]);
    cli.run_ok(&["task", "add", "Build", "--blocked-by", "1"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    cli.run_ok(&["task", "update", "2", "--owner", "alice"]);
    cli.run_ok(&["task", "done", "1"]);
    cli.run_ok(&["team", "activity", "alice", "active"]);
    cli.run_ok(&["team", "leave", "bob"]);
    cli
}

#[test]
fn the_log_has_one_line_per_event() {
    assert_snapshot!(team_with_history().run(&["log"]), @"
    <date>
    <time>  team-lead           team created
    <time>  alice               joined
    <time>  bob                 joined
    <time>  team-lead → bob     please review the parser  · read <time>
    <time>  bob → alice         it works  · unread
    <time>  team-lead           task 1 added: Design
    <time>  team-lead           task 2 added, after 1: Build
    <time>  bob                 task 1 in progress, owner bob: Design
    <time>  team-lead           task 2 owner alice: Build
    <time>  team-lead → alice   task 2 assigned: Build  · unread
    <time>  team-lead           task 1 completed: Design
    <time>  alice               is active
    <time>  bob                 left
    ");
}

#[test]
fn the_log_of_a_deleted_team_is_kept() {
    let cli = team_with_history();
    cli.run_ok(&["task", "delete", "2"]);
    cli.run_ok(&["team", "delete", "--force"]);
    let log = cli.run_ok(&["--team", "demo", "log"]);
    let last: Vec<&str> = log.lines().rev().take(2).collect();
    assert!(last[0].ends_with("team deleted"), "{last:?}");
    assert!(last[1].ends_with("task 2 deleted"), "{last:?}");
    assert_snapshot!(cli.run(&["--team", "never", "log"]), @r#"
    --- stderr
    error: no team named "never"
    hint: `brigade team create never` creates it
    --- exit 1
    "#);
    // The log must not say that members of the next team `demo` deleted the old team's tasks and mail.
    cli.run_ok(&["team", "create", "demo"]);
    cli.run_ok(&["team", "join", "alice"]);
    cli.run_ok(&["task", "add", "Other"]);
    let log = cli.run_ok(&["log", "--all-teams"]);
    let (before, after) = log.split_once("team deleted\n").unwrap();
    assert!(before.contains("it works  · unread"), "{log}");
    assert_eq!(after.lines().count(), 3, "{log}");
    assert!(after.contains("task 1 added: Other"), "{log}");
}

#[test]
fn json_output_has_one_record_per_line() {
    let log = team_with_history().run_ok(&["log", "--json"]);
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
fn changes_by_other_programs_are_logged() {
    let cli = CliEnv::with_native_team();
    cli.write(
        "claude/teams/theirs/inboxes/bob.json",
        r#"[{"from":"team-lead","text":"hi","timestamp":"2026-11-15T00:00:29.290Z","read":false}]"#,
    );
    assert_snapshot!(cli.run(&["log"]), @"
    <date>
    <time>  Claude Code         team created
    <time>  team-lead → bob     hi  · unread
    ");
}

#[test]
fn follow_prints_new_events() {
    let cli = CliEnv::with_team();
    let mut command = cli.command(&["log", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("bob                 joined")));
    cli.run_ok(&["send", "bob", "what happens next"]);
    assert!(lines.next().unwrap().ends_with("what happens next  · unread"));
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    let read = lines.next().unwrap();
    assert!(read.ends_with("read team-lead's message: what happens next"), "{read}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn follow_ends_when_stdout_is_closed() {
    let cli = CliEnv::with_team();
    let mut command = cli.command(&["log", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().is_ok());
    drop(lines);
    // `log --follow` notices the closed pipe and exits, although it has no new event to write.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// B22: the column of the texts moved to the right in lines of members with long names.
#[test]
fn b22_the_texts_of_a_log_form_a_column() {
    let cli = CliEnv::with_team();
    let name = "the-reviewer-of-the-parser";
    cli.run_ok(&["team", "join", name]);
    cli.run_ok(&["send", name, "hello"]);
    let log = cli.run_ok(&["log"]);
    let column = |text: &str| log.lines().find_map(|line| line.find(text)).unwrap();
    assert_eq!(column("team created"), column("joined"), "{log}");
    // The arrow is two bytes longer than it is wide.
    assert_eq!(column("hello"), column("joined") + 2, "{log}");
}

/// Finding 39: a process that dies after it has recorded another program's change, and before it has saved that it knows
/// the change, must not make the log show the change twice.
#[test]
fn finding_39_a_recorded_change_is_not_recorded_again() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "from brigade"]);
    cli.run_ok(&["log"]);
    let state = format!("state/brigade/files/{}/demo", claude_dir_key(&cli.path("claude")));
    let saved = ["mail/bob.state", "board.seen", "roster.json"].map(|name| {
        let path = cli.path(&format!("{state}/{name}"));
        (std::fs::read(&path).unwrap(), path)
    });
    // Another program adds a message, a task and a member.
    let inbox = cli.path("claude/teams/demo/inboxes/bob.json");
    let mut mail: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    let timestamp = "2026-11-15T12:00:00.000Z";
    mail.as_array_mut().unwrap().push(serde_json::json!({
        "from": "alice", "text": "from outside", "timestamp": timestamp, "read": false
    }));
    std::fs::write(&inbox, mail.to_string()).unwrap();
    cli.write(
        "claude/tasks/demo/1.json",
        r#"{"id":"1","subject":"outside","description":"","status":"pending","blocks":[],"blockedBy":[]}"#,
    );
    let config = std::fs::read_to_string(cli.path("claude/teams/demo/config.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let mut carl = config["members"][1].clone();
    carl["name"] = "carl".into();
    config["members"].as_array_mut().unwrap().push(carl);
    cli.write("claude/teams/demo/config.json", &config.to_string());
    let first = cli.run_ok(&["log"]);
    for (bytes, path) in &saved {
        std::fs::write(path, bytes).unwrap();
    }
    let second = cli.run_ok(&["log"]);
    for change in ["from outside", "task 1 added", "carl                joined", "from brigade"] {
        assert_eq!(first.matches(change).count(), 1, "{change}: {first}");
        assert_eq!(second.matches(change).count(), 1, "{change}: {second}");
    }
}

/// Finding 39: if brigade's saved state of a mailbox is lost, its own messages are not listed as another program's.
#[test]
fn finding_39_own_messages_are_known_from_the_journal() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "from brigade"]);
    let state = format!("state/brigade/files/{}/demo", claude_dir_key(&cli.path("claude")));
    std::fs::write(cli.path(&format!("{state}/mail/bob.state")), "").unwrap();
    let log = cli.run_ok(&["log"]);
    assert_eq!(log.matches("from brigade").count(), 1, "{log}");
}
