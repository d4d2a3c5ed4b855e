//! Commands that were killed: the same command completes them. `e2e/kills` kills them at every system call; these tests
//! prepare the files that a killed command leaves.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::{kill, wait_until};

/// Returns the only folder in a folder.
fn only_child(cli: &CliEnv, path: &str) -> PathBuf {
    fs::read_dir(cli.path(path)).unwrap().next().unwrap().unwrap().path()
}

/// Ends the supervisor and a member, so that only commands change files.
fn end_processes(team: &HostedTeam, member: &str) {
    kill(team.cli.status()["supervisor"].as_u64().unwrap());
    wait_until("the supervisor to end", || team.cli.status()["supervisor"] == Value::Null);
    kill(team.pid(member));
    wait_until("the member to end", || team.cli.member(member)["pid"] == Value::Null);
}

fn members(cli: &CliEnv) -> Vec<String> {
    let team = cli.json(&["team", "show"]);
    let members = team["members"].as_array().unwrap();
    members.iter().map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn stop_completes_a_stop_that_was_killed() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    end_processes(&team, "alice");
    let folder = only_child(&team.cli, "state/brigade/host").join("demo/alice");
    let notes = only_child(&team.cli, "state/brigade/files").join("demo/kept/alice.json");
    assert!(notes.exists());
    // The killed command had marked alice, so that no supervisor starts her again.
    fs::rename(folder.join("spec.json"), folder.join("stopping.json")).unwrap();
    let stopped = team.cli.run(&["stop", "alice"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(members(&team.cli), ["team-lead", "bob"]);
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], Value::Null);
    assert!(!folder.exists() && !notes.exists());
    let again = team.cli.run(&["stop", "alice"]);
    assert!(again.stderr.contains("alice of team demo was stopped"), "{again}");
}

#[test]
fn down_completes_a_deletion_that_was_killed() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    end_processes(&team, "alice");
    team.cli.run_ok(&["stop", "alice"]);
    team.cli.run_ok(&["stop", "bob", "--now"]);
    let state = only_child(&team.cli, "state/brigade/files").join("demo");
    let id = "0e9ad0d2-5d06-4a5c-b1fd-36e4b0a1c3f2";
    let deleted = team.cli.path(&format!("claude/teams/demo.deleted-{id}"));
    fs::write(state.join("deleting"), id).unwrap();
    fs::rename(team.cli.path("claude/teams/demo"), &deleted).unwrap();
    team.cli.run_ok(&["down"]);
    assert!(!deleted.exists() && !team.cli.path("claude/tasks/demo").exists());
    assert!(!state.join("deleting").exists());
}

#[test]
fn team_delete_completes_a_deletion_that_was_killed() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "First"]);
    let state = only_child(&cli, "state/brigade/files").join("demo");
    fs::write(state.join("deleting"), "0e9ad0d2-5d06-4a5c-b1fd-36e4b0a1c3f2").unwrap();
    fs::remove_dir_all(cli.path("claude/teams/demo")).unwrap();
    let member = cli.run(&["--as", "bob", "team", "delete", "demo"]);
    assert_eq!(member.code, Some(1), "{member}");
    assert!(cli.path("claude/tasks/demo").exists());
    let deleted = cli.run_ok(&["team", "delete", "demo"]);
    assert!(deleted.contains("deleted team demo"), "{deleted}");
    assert!(!cli.path("claude/tasks/demo").exists());
    let again = cli.run(&["team", "delete", "demo"]);
    assert!(again.stderr.contains("no team named \"demo\""), "{again}");
}

/// The killed command had added and assigned the tasks, but had neither updated the blocker nor told the owner.
#[test]
fn up_completes_tasks_that_were_half_added() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    wait_until("the assignment", || team.received("a").contains("assigns you task 1"));
    let path = team.cli.path("claude/tasks/demo/1.json");
    let mut task: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(task["blocks"], serde_json::json!(["2"]));
    task["blocks"] = serde_json::json!([]);
    fs::write(&path, task.to_string()).unwrap();
    team.cli.run_ok(&["up"]);
    let task: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(task["blocks"], serde_json::json!(["2"]));
    assert_eq!(team.received("a").matches("assigns you task 1").count(), 1);
}
