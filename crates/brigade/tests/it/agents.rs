//! `brigade agents`

use std::time::{Duration, Instant};

use brigade_agents::driver::AGENTS;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::TestMachine;
use crate::process::assert_all_gone;

#[test]
fn lists_installed_and_missing_agents() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", "echo codex-cli 0.166.0");
    machine.install("gemini", "exit 1");
    assert_snapshot!(machine.run_ok(&["agents"]));
    let agents = machine.answer(&["agents"]);
    assert_eq!(agents.as_array().unwrap().len(), AGENTS.len());
    assert_eq!(
        agents[0],
        json!({
            "name": "codex",
            "title": "Codex",
            "installed": true,
            "path": "<root>/bin/codex",
            "version": "0.166.0",
            "login": "unknown",
            "log_in": "`codex login` logs in",
            "can": { "mid_turn": "steered", "read_only": "sandbox", "usage": "tokens" },
            "install": "npm install -g @openai/codex",
        })
    );
}

#[test]
fn no_installed_agent_is_not_an_error() {
    let machine = TestMachine::new(&[]);
    let agents = machine.answer(&["agents"]);
    assert!(agents.as_array().unwrap().iter().all(|agent| agent["installed"] == json!(false)));
}

#[test]
fn a_variable_sets_the_program() {
    let machine = TestMachine::new(&[]);
    machine.install("other", "echo 9.9.9");
    let path = machine.cli.path("bin/other");
    let output =
        machine.command(&["agents", "--json"]).env("BRIGADE_CODEX", &path).output().unwrap();
    let agents: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&agents[0]["version"], &agents[0]["path"]), (&json!("9.9.9"), &json!(path)));
}

#[test]
fn a_hanging_agent_is_killed_after_a_timeout() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", "/bin/sleep 300 & echo $! >\"$HOME/pid\"; wait");
    // This agent program exits at once, but its child process keeps stdout open.
    machine.install("gemini", "/bin/sleep 20 & echo 1.2.3");
    let began = Instant::now();
    let agents = machine.answer(&["agents"]);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    let agent = |name: &str| {
        let all = agents.as_array().unwrap();
        all.iter().find(|agent| agent["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&agent("codex")["installed"], &agent("codex")["version"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(agent("gemini")["version"], json!("1.2.3"));
    let pid = machine.read("home/pid").trim().parse().unwrap();
    assert_all_gone(&[pid]);
}
