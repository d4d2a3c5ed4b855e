//! `interrupt`, `pause`, `unpause`, `restart`, and commands for several members.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::differences::on_roster;
use crate::doctor_host::registry;
use crate::host::HostedTeam;
use crate::process::wait_until;

fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Returns the processes that the agent recorded after the word `sleeps`.
fn sleeping(team: &HostedTeam) -> Vec<String> {
    let heard = team.received("a");
    let line = heard.lines().rev().find_map(|line| line.strip_prefix("sleeps "));
    line.map(|pids| pids.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

fn is_idle(team: &HostedTeam, name: &str) -> bool {
    team.cli.member(name)["liveness"] == "idle"
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_ends_the_turn_and_the_commands_of_the_agent() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    wait_until("alice is idle", || is_idle(&team, "alice"));
    assert_eq!(
        team.cli.json(&["interrupt", "alice"]),
        json!([{ "name": "alice", "result": "not_in_turn" }])
    );
    team.cli.run_ok(&["send", "alice", "please SLEEP"]);
    wait_until("alice's commands run", || sleeping(&team).len() == 2);
    let commands = sleeping(&team);
    assert!(commands.iter().all(|pid| is_running(pid)), "{commands:?}");
    let agent = team.pid("alice");
    let began = Instant::now();
    let done = team.cli.json(&["interrupt", "alice"]);
    let took = began.elapsed();
    assert_eq!(done, json!([{ "name": "alice", "result": "interrupted" }]));
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(!commands.iter().any(|pid| is_running(pid)), "{commands:?}");
    assert!(team.received("a").contains("session/cancel"));
    // The agent still runs, in the same session.
    assert_eq!(team.pid("alice"), agent);
    team.cli.run_ok(&["send", "alice", "go on"]);
    wait_until("the next turn", || team.received("a").contains("go on"));
    assert_eq!(team.received("a").matches("started").count(), 1);
}

#[test]
fn the_status_of_a_working_member_says_that_it_pauses_afterwards() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    team.cli.run_ok(&["send", "alice", "please SLEEP"]);
    wait_until("alice works", || team.cli.member("alice")["liveness"] == "working");
    team.cli.json(&["pause", "alice"]);
    let status = team.cli.run_ok(&["status"]);
    assert!(status.contains("working") && status.contains(", then paused"), "{status}");
}

#[test]
fn a_paused_member_starts_no_turn_until_it_is_unpaused() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    wait_until("alice is idle", || is_idle(&team, "alice"));
    let paused = team.cli.json(&["pause", "alice", "bob"]);
    assert_eq!(paused[1], json!({ "name": "bob", "result": "paused" }));
    team.cli.run_ok(&["send", "alice", "while you pause"]);
    wait_until("the state", || team.cli.member("alice")["liveness"] == "paused");
    // A restart of the member's process keeps the pause.
    let agent = team.pid("alice");
    crate::process::kill(agent);
    wait_until("a new process", || {
        let member = team.cli.member("alice");
        member["pid"].as_u64().is_some_and(|pid| pid != agent) && member["liveness"] == "paused"
    });
    assert!(!team.received("a").contains("while you pause"));
    // A paused member without mail waits for work.
    team.cli.run_ok(&["wait", "--idle", "bob", "--timeout", "10s"]);
    assert!(team.cli.run_ok(&["status"]).contains("paused"));
    team.cli.json(&["unpause", "--all"]);
    wait_until("the message", || team.received("a").contains("while you pause"));
    wait_until("bob is idle", || is_idle(&team, "bob"));
}

#[test]
fn a_restart_resumes_the_session_and_a_fresh_one_gets_a_briefing() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    wait_until("alice is idle", || is_idle(&team, "alice"));
    let process = team.pid("alice");
    assert_eq!(
        team.cli.json(&["restart", "alice"]),
        json!([{ "name": "alice", "result": "restarted" }])
    );
    let heard = team.received("a");
    assert_eq!(
        (heard.matches("begun").count(), heard.matches("loaded").count()),
        (1, 1),
        "{heard}"
    );
    team.cli.json(&["restart", "alice", "--fresh", "--model", "other"]);
    assert_eq!(on_roster(&team, "alice")["model"], "other");
    assert_eq!(team.received("a").matches("begun").count(), 2);
    wait_until("the briefing", || team.received("a").contains("task 1 (pending): First"));
    assert!(
        team.received("a").contains("team-lead to alice: hello alice"),
        "{}",
        team.received("a")
    );
    assert_eq!(team.pid("alice"), process);
    let host = registry(&team.cli, "state");
    let spec = host.member(&"demo".parse().unwrap(), &"alice".parse().unwrap()).unwrap().unwrap();
    assert_eq!(spec.model.as_deref(), Some("other"));
}

/// The supervisor starts a member whose process is dead again.
#[test]
fn a_restart_starts_a_member_that_gave_up() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    wait_until("bob is idle", || is_idle(&team, "bob"));
    team.cli.write("work/b/dies-loading", "");
    team.cli.run_ok(&["send", "bob", "DIE"]);
    wait_until("bob failed", || team.cli.member("bob")["liveness"] == "dead");
    std::fs::remove_file(team.cli.path("work/b/dies-loading")).unwrap();
    team.cli.json(&["restart", "bob", "--fresh"]);
    wait_until("the briefing", || team.received("b").contains("You are bob."));
    assert_eq!(team.cli.member("bob")["liveness"].as_str().map(|word| word != "dead"), Some(true));
}

#[test]
fn several_members_stop_with_one_command() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let stopped = team.cli.run(&["stop", "alice", "carol", "--now"]);
    assert_eq!(stopped.code, Some(3), "{stopped}");
    team.cli.json(&["stop", "--all", "--now"]);
    assert!(team.cli.json(&["status"])[0]["members"].as_array().unwrap().is_empty());
    let none = team.cli.run(&["interrupt", "--all"]);
    assert_eq!(none.code, Some(4), "{none}");
}

/// A restart ends the tool calls of the agent. A later interrupt must not end the new process of the agent.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_after_a_restart_leaves_the_new_agent_alone() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    wait_until("alice is idle", || is_idle(&team, "alice"));
    team.cli.run_ok(&["send", "alice", "please SLEEP"]);
    wait_until("alice's commands run", || sleeping(&team).len() == 2);
    team.cli.json(&["restart", "alice"]);
    // The session of the scripted agent does not have the message, so the message is sent again.
    wait_until("the commands of the new agent", || {
        team.received("a").matches("sleeps").count() == 2
    });
    team.cli.json(&["interrupt", "alice"]);
    team.cli.run_ok(&["send", "alice", "still there?"]);
    wait_until("the answer", || team.received("a").contains("still there?"));
    assert_eq!(team.received("a").matches("started").count(), 2);
}

#[test]
fn only_the_lead_and_the_member_itself_steer_a_member() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    for command in [&["pause", "bob"][..], &["interrupt", "bob"], &["restart", "bob"]] {
        let refused = team.cli.run(&[&["--as", "alice"][..], command].concat());
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("only the lead"), "{refused}");
    }
    team.cli.json(&["--as", "bob", "pause", "bob"]);
}
