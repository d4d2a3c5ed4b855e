//! `brigade init` with files that another program wrote or is changing, or that another user owns.

use std::fs::OpenOptions;
use std::os::unix::fs::{chown, symlink};

use insta::assert_snapshot;
use serde_json::json;

use crate::init::{CLAUDE, CODEX, GEMINI, SETTINGS, TestMachine};

#[test]
fn files_of_others_are_left_alone() {
    let machine = TestMachine::new(&["claude", "codex", "gemini", "tmux"]);
    machine.write("claude/agents/codex.md", "mine");
    machine.write(CODEX, "[mcp_servers]\nteam = { command = \"theirs\" }\n");
    machine.write(GEMINI, "{\n  // mine\n  \"theme\": \"x\"\n}\n");
    assert_snapshot!(machine.notes(&["init", "--yes"]), @"
    note: left alone: <root>/claude/agents/codex.md: brigade did not write it
    note: left alone: <root>/home/.codex/config.toml: it already has another server named `team`
    note: left alone: <root>/home/.gemini/settings.json: not JSON at line 2, column 3
    ");
    assert_eq!(machine.read("claude/agents/codex.md"), "mine");
    assert_eq!(machine.read(CODEX), "[mcp_servers]\nteam = { command = \"theirs\" }\n");
    machine.write(GEMINI, r#"{"mcpServers": {"team": {"command": "theirs"}}}"#);
    let again = machine.answer(&["init"]);
    assert_eq!(again["changes"], json!([]));
    assert_eq!(again["left_alone"][2]["path"], json!("<root>/home/.gemini/settings.json"));
}

/// Runs `brigade init` with this Codex configuration. Returns the printed notes and the resulting file.
fn codex(before: &str) -> (String, String) {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    machine.write(CODEX, before);
    let output = machine.notes(&["init", "--yes"]);
    let after = machine.read(CODEX);
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.read(CODEX), before);
    (output, after)
}

#[test]
fn codex_configurations_that_cannot_be_extended_are_left_alone() {
    // A TOML inline table cannot be extended by appending to the file.
    let closed = "mcp_servers = { other = { command = \"x\" } }\n";
    let (output, after) = codex(closed);
    assert!(output.contains("does not allow appending a server `team`"), "{output}");
    assert_eq!(after, closed);
    let (output, after) = codex("model = ");
    assert!(output.contains("config.toml: not TOML: "), "{output}");
    assert_eq!(after, "model = ");
    // A configuration that enables Codex's feature `code_mode` is changed as well.
    let (output, after) = codex("[features]\ncode_mode = true\n");
    assert_eq!(output.matches("left alone").count(), 0, "{output}");
    assert!(after.contains("[mcp_servers.team]"), "{after}");
}

#[test]
fn links_are_followed_and_kept() {
    let machine = TestMachine::full();
    machine.write("dotfiles/settings.json", SETTINGS);
    machine.write("dotfiles/codex/config.toml", "model = \"x\"\n");
    std::fs::create_dir_all(machine.cli.path("claude")).unwrap();
    symlink("../dotfiles/settings.json", machine.cli.path(CLAUDE)).unwrap();
    symlink("../dotfiles/codex", machine.cli.path("home/.codex")).unwrap();
    let before = machine.everything();
    machine.run_ok(&["init", "--yes"]);
    assert!(machine.cli.path(CLAUDE).is_symlink() && machine.cli.path("home/.codex").is_symlink());
    assert_eq!(machine.json("dotfiles/settings.json")["teammateMode"], json!("tmux"));
    assert!(machine.read("dotfiles/codex/config.toml").contains("[mcp_servers.team]"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);
}

#[test]
fn links_to_files_of_other_users_are_refused() {
    let machine = TestMachine::new(&["claude", "tmux"]);
    std::fs::create_dir_all(machine.cli.path("claude")).unwrap();
    // If the test runs as root, give the file to another user; otherwise link to a file that root owns.
    machine.write("foreign.json", "{}");
    let foreign = match chown(machine.cli.path("foreign.json"), Some(12345), None) {
        Ok(()) => machine.cli.path("foreign.json"),
        Err(_) => "/etc/passwd".into(),
    };
    symlink(&foreign, machine.cli.path(CLAUDE)).unwrap();
    let before = machine.everything();
    assert_snapshot!(machine.run(&["init", "--yes"]), @"
    --- stderr
    error: <root>/claude/settings.json belongs to another user
    hint: run brigade as its owner, or change its owner with `chown`
    --- exit 1
    ");
    std::fs::remove_file(machine.cli.path(CLAUDE)).unwrap();
    symlink("nowhere.json", machine.cli.path(CLAUDE)).unwrap();
    assert_snapshot!(machine.run(&["init", "--yes"]), @"
    --- stderr
    error: <root>/claude/settings.json is a dangling link
    hint: create its target, or remove the link
    --- exit 1
    ");
    std::fs::remove_file(machine.cli.path(CLAUDE)).unwrap();
    symlink(&foreign, machine.cli.path(CLAUDE)).unwrap();
    assert_eq!(machine.everything(), before);
}

#[test]
fn unreadable_settings_are_not_changed() {
    let machine = TestMachine::full();
    let refuse = |text: &str| {
        machine.write(CLAUDE, text);
        let before = machine.everything();
        let outcome = machine.run(&["init", "--yes"]);
        assert_eq!(machine.everything(), before);
        outcome
    };
    assert_snapshot!(refuse("{\n  // mine\n  \"model\": \"opus\"\n}\n"), @"
    --- stderr
    error: <root>/claude/settings.json is not valid
      caused by: not JSON at line 2, column 3
    hint: fix it by hand; brigade only changes files it can read, and JSON does not allow comments
    --- exit 1
    ");
    assert_snapshot!(refuse(r#"{"env": ["A=1"]}"#), @"
    --- stderr
    error: <root>/claude/settings.json is not valid
      caused by: expected a section of settings, found an array
    hint: fix it by hand; brigade only changes files it can read, and JSON does not allow comments
    --- exit 1
    ");
}

#[test]
fn concurrent_inits_do_not_mix() {
    let machine = TestMachine::new(&["claude", "tmux"]);
    machine.write("state/brigade/init/lock", "");
    let path = machine.cli.path("state/brigade/init/lock");
    let lock = OpenOptions::new().write(true).open(path).unwrap();
    lock.lock().unwrap();
    assert_snapshot!(machine.run(&["init", "--yes"]), @"
    --- stderr
    error: another `brigade init` is running
    hint: answer or stop the other `brigade init` first
    --- exit 75
    ");
    drop(lock);
    machine.run_ok(&["init", "--yes"]);
}
