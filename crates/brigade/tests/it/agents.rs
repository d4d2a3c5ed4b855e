//! `brigade agents`: which agents there are, and which of them are here.

use std::time::{Duration, Instant};

use brigade_agents::driver::AGENTS;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::Guest;

#[test]
fn what_is_here_and_how_to_get_the_rest() {
    let guest = Guest::new(&[]);
    guest.install("codex", "echo codex-cli 0.166.0");
    guest.install("gemini", "exit 1");
    assert_snapshot!(guest.done(&["agents"]));
    let agents = guest.answer(&["agents"]);
    assert_eq!(agents.as_array().unwrap().len(), AGENTS.len());
    assert_eq!(
        agents[0],
        json!({
            "name": "codex",
            "title": "Codex",
            "installed": true,
            "path": "<house>/bin/codex",
            "version": "0.166.0",
            "can": { "mid_turn": "steered", "read_only": "sandbox", "usage": "tokens" },
            "install": "npm install -g @openai/codex",
        })
    );
}

#[test]
fn nobody_here_is_no_error() {
    let guest = Guest::new(&[]);
    let agents = guest.answer(&["agents"]);
    assert!(agents.as_array().unwrap().iter().all(|agent| agent["installed"] == json!(false)));
}

#[test]
fn a_program_is_found_where_its_variable_says() {
    let guest = Guest::new(&[]);
    guest.install("other", "echo 9.9.9");
    let path = guest.house.path("bin/other");
    let output = guest.command(&["agents", "--json"]).env("BRIGADE_CODEX", &path).output().unwrap();
    let agents: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&agents[0]["version"], &agents[0]["path"]), (&json!("9.9.9"), &json!(path)));
}

#[test]
fn one_that_hangs_keeps_nobody_waiting() {
    let guest = Guest::new(&[]);
    guest.install("codex", "/bin/sleep 300 & echo $! >\"$HOME/pid\"; wait");
    // It ends, but something it started keeps its output open.
    guest.install("gemini", "/bin/sleep 20 & echo 1.2.3");
    let began = Instant::now();
    let agents = guest.answer(&["agents"]);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    let of = |name: &str| {
        let all = agents.as_array().unwrap();
        all.iter().find(|agent| agent["name"] == name).unwrap().clone()
    };
    assert_eq!((&of("codex")["installed"], &of("codex")["version"]), (&json!(true), &Value::Null));
    assert_eq!(of("gemini")["version"], json!("1.2.3"));
    let pid: u32 = guest.read("home/pid").trim().parse().unwrap();
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    };
    while !gone() {
        assert!(began.elapsed() < Duration::from_secs(20), "what it started is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
