//! Commands after the session of a Claude Code lead has ended.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{ClaudeTeam, TEAM};
use crate::env::CliEnv;
use crate::process::{wait_for, wait_until};

#[test]
fn the_team_of_an_ended_session_is_taken_over_under_another_name() {
    let mut team = ClaudeTeam::new();
    team.lead_writes("REMEMBER");
    wait_until("the end of the turn", || team.reports().contains("idle_notification"));
    assert_snapshot!(team.cli.run(&["resume", TEAM, "--take-over", "mine"]), @r"
    --- stderr
    error: a running Claude Code session leads team session-e0c67a80
    hint: end its session first, or work with its members there
    --- exit 1
    ");
    team.end_session_and_wait();
    // The model of another session could have chosen this command.
    let inside = [("CLAUDE_CODE_SESSION_ID", "another")];
    let refused = team.cli.run_with_env(&["resume", TEAM, "--take-over", "mine"], &inside);
    assert!(refused.stderr.contains("only a person may act"), "{refused}");
    assert_snapshot!(team.cli.run(&["resume", TEAM, "--take-over", "session-12345678"]), @r"
    --- stderr
    error: only Claude Code names its teams like session-12345678
    hint: choose another name
    --- exit 2
    ");
    let taken_over = team.cli.run(&["resume", TEAM, "--take-over", "mine"]);
    assert_eq!(taken_over.stdout, "team mine is up again with 1 member\n", "{taken_over}");
    wait_for("rev to end", || team.rev.try_wait().unwrap());
    wait_until("rev's agent", || team.heard().contains("loaded"));
    assert_eq!(team.heard().matches("begun").count(), 1);
    team.cli.run_ok(&["down", "mine", "--now"]);
}

/// Claude Code deletes its team at the end of its session, creates it again when the session is resumed, and keeps the board.
#[test]
fn a_take_over_keeps_the_board_of_a_session_that_was_resumed_before() {
    let team = ClaudeTeam::new();
    let added = team.run(&["--as", "team-lead", "task", "add", "build", "--owner", "rev"]);
    assert_eq!(added.code, Some(0), "{added}");
    let added = team.run(&["--as", "team-lead", "task", "add", "drop"]);
    assert_eq!(added.code, Some(0), "{added}");
    team.end_session_and_wait();
    team.resume_session(TEAM);
    wait_until("rev to join again", || team.roster().contains(&"rev".to_owned()));
    let removed = team.run(&["--as", "team-lead", "task", "delete", "2"]);
    assert_eq!(removed.code, Some(0), "{removed}");
    team.end_session_and_wait();
    let taken_over = team.cli.run(&["resume", TEAM, "--take-over", "mine"]);
    assert!(taken_over.stderr.contains("1 member, 1 task,"), "{taken_over}");
    let tasks = team.cli.run(&["--team", "mine", "task", "list"]);
    assert!(tasks.stdout.contains("build") && !tasks.stdout.contains("drop"), "{tasks}");
    team.cli.run_ok(&["down", "mine", "--now"]);
}

/// A person can stop a member that waits.
#[test]
fn a_waiting_member_can_be_stopped() {
    let mut team = ClaudeTeam::new();
    team.end_session_and_wait();
    assert_snapshot!(team.cli.run(&["--team", TEAM, "stop", "rev"]), @r"
    --- stderr
    rev: stopping
    rev: stopped
    ");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert_eq!(team.cli.run(&["status"]).code, Some(4));
    // The person has stopped the member, so it does not come back.
    let resumed = team.cli.run(&["resume", TEAM]);
    assert_eq!(resumed.code, Some(4), "{resumed}");
}

#[test]
fn a_take_over_leaves_stopped_members_out() {
    let team = ClaudeTeam::new();
    let added = team.run(&["--as", "team-lead", "task", "add", "build", "--owner", "rev"]);
    assert_eq!(added.code, Some(0), "{added}");
    team.end_session_and_wait();
    team.cli.run_ok(&["--team", TEAM, "stop", "rev"]);
    let taken_over = team.cli.run(&["resume", TEAM, "--take-over", "mine"]);
    // nat is still on the roster; Claude Code ran it.
    assert!(taken_over.stderr.contains("1 member, 1 task,"), "{taken_over}");
    let status = team.cli.run(&["status", "--json"]);
    assert!(!status.stdout.contains("\"rev\""), "{status}");
    let tasks = team.cli.run_ok(&["--team", "mine", "task", "list", "--json"]);
    assert!(tasks.contains("build") && !tasks.contains("rev"), "{tasks}");
    team.cli.run_ok(&["down", "mine", "--now"]);
}

#[test]
fn commands_without_a_team_name_the_ended_session() {
    let mut team = ClaudeTeam::new();
    team.end_session_and_wait();
    for command in [&["task", "list"][..], &["send", "rev", "hello"], &["approvals"]] {
        let refused = team.cli.run(command).to_string();
        let expected = "--- stderr\n\
            error: Claude Code's session has ended: team session-e0c67a80\n\
            hint: `claude --resume <id>` continues it, `brigade status` shows its members\n\
            --- exit 1";
        assert_eq!(refused, expected, "{command:?}");
    }
    assert_snapshot!(team.cli.run(&[]), @r"
    session-e0c67a80  Claude Code's session has ended
      `claude --resume <id>` continues it, `brigade status` shows its members
    ");
    assert_snapshot!(team.cli.run(&["resume", "nope"]), @r"
    --- stderr
    error: team nope is not up on this host
    hint: teams of ended Claude Code sessions: session-e0c67a80
    --- exit 1
    ");
    let log = team.cli.run(&["log"]);
    assert!(log.stdout.contains("team created"), "{log}");
    let stopped = team.cli.run(&["stop", "rev"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
}

/// A killed lead leaves its team and the members, which run on.
#[test]
fn resume_after_a_kill_of_the_lead_leaves_running_members_alone() {
    let team = ClaudeTeam::new();
    team.spawn_luke();
    let session = team.cli.path(&format!("claude/sessions/{}.json", std::process::id()));
    std::fs::remove_file(session).unwrap();
    let resumed = team.cli.run(&["resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let expected = "waiting for Claude Code: rev of team session-e0c67a80\n\
        team session-e0c67a80 is up again with 1 member\n";
    assert_eq!(resumed.stdout, expected, "{resumed}");
    // The resumed session deletes the team and creates it again.
    std::fs::remove_dir_all(team.cli.path(&format!("claude/teams/{TEAM}"))).unwrap();
    team.resume_session(TEAM);
    wait_until("both to join again", || {
        ["rev", "luke"].iter().all(|name| team.roster().contains(&(*name).to_owned()))
    });
    let resumed = team.cli.run(&["resume"]);
    assert_eq!((resumed.code, resumed.stderr.as_str()), (Some(0), ""), "{resumed}");
    // They join in any order.
    let line = "on the team of Claude Code again: ";
    let names = resumed.stdout.strip_prefix(line).map(str::trim);
    assert!(matches!(names, Some("luke, rev" | "rev, luke")), "{resumed}");
    team.cli.run_ok(&["down", TEAM, "--now"]);
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_names_the_command_that_continues_a_killed_session() {
    let cli = CliEnv::with_session_team();
    let config = cli.path(&format!("claude/teams/{TEAM}/config.json"));
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let space = format!("host#{}", space.display());
    roster["leadProcess"] = json!({ "pid": 4_194_999, "pidSpace": space, "procStart": "1" });
    std::fs::write(&config, roster.to_string()).unwrap();
    let found = cli.run(&["doctor"]);
    let expected =
        "`claude --resume <id>` continues it; to delete it: `brigade --as team-lead team delete";
    assert!(found.stdout.contains(expected), "{found}");
}
