//! Agents that are logged out are found before their first turn.

use std::path::Path;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::TestMachine;
use crate::process::assert_all_gone;

/// A Codex that answers like a real one and records its environment. It refuses to start a thread.
fn codex(account: &str) -> String {
    format!(
        r#"case "$*" in
    --version) echo codex-cli 0.166.0 ;;
    *app-server*)
        /usr/bin/env > "$HOME/env"
        while read -r line; do
            case $line in
                *'"initialize"'*) echo '{{"id":1,"result":{{}}}}' ;;
                *account/read*) echo '{{"id":2,"result":{account}}}' ;;
                *thread/start*) echo '{{"id":2,"error":{{"code":-32600,"message":"Not logged in"}}}}' ;;
            esac
        done
        ;;
esac"#
    )
}

const OUT: &str = r#"{"account":null,"requiresOpenaiAuth":true}"#;
const PROVIDER: &str = r#"{"account":null,"requiresOpenaiAuth":false}"#;

/// A program that speaks ACP and answers the request for a session like this.
fn acp(answer: &str) -> String {
    format!(
        r#"pwd > "$HOME/folder"
while read -r line; do
    case $line in
        *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":1,"result":{{}}}}' ;;
        *session/new*) echo '{{"jsonrpc":"2.0","id":2,{answer}}}' ;;
        *prompt*) echo prompted > "$HOME/prompted" ;;
    esac
done"#
    )
}

const NO_KEY: &str = r#""error":{"code":-32000,"message":"API key is missing"}"#;

fn logins(agents: &Value) -> Vec<(&str, &str)> {
    let agents = agents.as_array().unwrap().iter();
    agents.filter_map(|agent| Some((agent["name"].as_str()?, agent["login"].as_str()?))).collect()
}

#[test]
fn agents_tells_which_agents_are_logged_out() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", &codex(OUT));
    machine.install("claude", "echo '{\"loggedIn\": true}'");
    machine.install("gemini", &acp(NO_KEY));
    machine.install("opencode", "echo '0 credentials'");
    machine.install("copilot", "exit 1");
    machine.install("qwen", &acp(r#""result":{"sessionId":"s"}"#));
    let agents = machine.answer(&["agents"]);
    assert_eq!(
        logins(&agents),
        [
            ("codex", "logged_out"),
            ("claude", "credentials_present"),
            ("gemini", "logged_out"),
            ("opencode", "unknown"),
            ("copilot", "unknown"),
            ("qwen", "credentials_present"),
        ]
    );
    let shown = machine.run(&["agents"]);
    assert!(shown.stderr.contains("hint: codex: `codex login` logs in\n"), "{shown}");
    machine.install("codex", &codex(PROVIDER));
    assert_eq!(logins(&machine.answer(&["agents"]))[0], ("codex", "credentials_present"));
    assert!(!machine.cli.path("home/prompted").exists());
}

/// Gemini CLI deletes records of sessions in the folder in which it starts.
#[test]
fn a_session_is_not_opened_in_the_folder_of_the_project() {
    let machine = TestMachine::new(&[]);
    machine.install("gemini", &acp(NO_KEY));
    machine.run_ok(&["agents"]);
    let folder = machine.read("home/folder");
    let name = Path::new(folder.trim()).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("brigade-empty-"), "{folder}");
    // The project may have a key of its own, which the program does not see in another folder.
    machine.write("work/.env", "GEMINI_API_KEY=x\n");
    assert_eq!(logins(&machine.answer(&["agents"])), [("gemini", "unknown")]);
}

#[test]
fn the_check_gets_the_environment_of_a_member() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", &codex(OUT));
    let mut command = machine.command(&["agents"]);
    command.envs([("OPENAI_API_KEY", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("BRIGADE_TEAM", "t")]);
    assert!(command.output().unwrap().status.success());
    let env = machine.read("home/env");
    assert!(env.contains("OPENAI_API_KEY=k"), "{env}");
    assert!(!env.contains("AWS_SECRET") && !env.contains("BRIGADE_"), "{env}");
}

#[test]
fn a_program_that_does_not_answer_is_killed() {
    let machine = TestMachine::new(&[]);
    machine.install(
        "claude",
        "[ \"$1\" != auth ] || { /bin/sleep 300 & echo $! >\"$HOME/pid\"; wait; }; echo 1.2.3",
    );
    let began = Instant::now();
    assert_eq!(logins(&machine.answer(&["agents"])), [("claude", "unknown")]);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    assert_all_gone(&[machine.read("home/pid").trim().parse().unwrap()]);
}

const TEAM: &str =
    "team = \"demo\"\n[members.alice]\nagent = \"codex\"\n[members.bob]\nagent = \"codex\"\n";

#[test]
fn up_check_and_doctor_name_the_command_that_logs_in() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", &codex(OUT));
    machine.write("work/brigade.toml", TEAM);
    let checked = machine.run(&["up", "--check"]);
    assert_snapshot!(checked.stderr, @"
    warning: Codex is logged out, so alice, bob cannot work; `codex login` logs in
    ");
    assert_eq!(checked.code, Some(0));
    let logins = machine.answer(&["up", "--check"])["logins"].clone();
    assert_eq!(
        logins,
        json!([{ "agent": "codex", "members": ["alice", "bob"], "login": "logged_out",
                 "log_in": "`codex login` logs in" }])
    );
    let found = machine.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["findings"][0]["check"], "logged-out", "{found}");
    assert_eq!(report["findings"][0]["remedy"], "`codex login` logs in");
    machine.install("codex", &codex(PROVIDER));
    assert_eq!(machine.run(&["up", "--check"]).stderr, "");
    assert_eq!(machine.run(&["doctor"]).code, Some(0));
}

/// A repository must not start programs before the user trusts it, not even to ask.
#[test]
fn an_untrusted_team_file_asks_no_program() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", &codex(OUT));
    machine.write("work/brigade.toml", TEAM);
    for args in [&["up", "--check", "--json"][..], &["doctor", "--json"]] {
        machine.command(args).env_remove("BRIGADE_TRUST").output().unwrap();
        assert!(!machine.cli.path("home/env").exists(), "{args:?}");
    }
}

#[test]
fn spawn_and_up_warn_and_still_start() {
    let machine = TestMachine::new(&[]);
    machine.install("codex", &codex(OUT));
    machine.write("work/brigade.toml", TEAM);
    let up = machine.run(&["up"]);
    let warning =
        "warning: Codex is logged out, so alice, bob cannot work; `codex login` logs in\n";
    assert!(up.stderr.contains(warning), "{up}");
    let spawned = machine.run(&["spawn", "carl", "--agent", "codex", "--place", "headless"]);
    let warning = "warning: Codex is logged out, so carl cannot work; `codex login` logs in\n";
    assert!(spawned.stderr.contains(warning), "{spawned}");
    // Members that run already are not asked again.
    let again = machine.run(&["up"]);
    assert!(!again.stderr.contains("logged out, so alice"), "{again}");
    let _stopped = machine.run(&["down", "--now"]);
}
