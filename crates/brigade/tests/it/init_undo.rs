//! `brigade init --undo`, whatever happened in between.

use insta::assert_snapshot;
use serde_json::json;

use crate::init::{CLAUDE, CODEX, GEMINI, Guest, SETTINGS};

#[test]
fn what_was_changed_since_stays_changed() {
    let guest = Guest::full();
    guest.write(CLAUDE, SETTINGS);
    guest.write(CODEX, "model = \"x\"\n");
    guest.done(&["init", "--yes"]);
    // One setting of ours is the user's now, a new one came, and one of theirs has gone.
    let settings = guest.read(CLAUDE);
    let settings = settings
        .replace("\"tmux\"", "\"in-process\"")
        .replace("\"MINE\": \"1\"", "\"YOURS\": \"2\"");
    guest.write(CLAUDE, &settings);
    let config = guest.read(CODEX);
    guest.write(CODEX, &format!("{config}\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"));
    guest.write("claude/agents/codex.md", "mine");
    let gemini = guest.read(GEMINI).replacen('{', "{\n  \"theme\": \"x\",", 1);
    guest.write(GEMINI, &gemini);

    assert_snapshot!(guest.done(&["init", "--undo"]), @"
    took out of <house>/home/.gemini/settings.json what brigade put in; it was changed since
    took out of <house>/home/.codex/config.toml what brigade put in; it was changed since
    removed <house>/claude/agents/qwen.md
    removed <house>/claude/agents/copilot.md
    removed <house>/claude/agents/opencode.md
    removed <house>/claude/agents/gemini.md
    kept <house>/claude/agents/codex.md; it was changed since, and is yours
    took out of <house>/claude/settings.json what brigade put in; it was changed since
    ");
    let expected = SETTINGS.replace("\"MINE\": \"1\"", "\"YOURS\": \"2\"");
    let expected = expected.replace("1.50e1\n", "1.50e1,\n   \"teammateMode\": \"in-process\"\n");
    assert_eq!(guest.read(CLAUDE), expected);
    assert_eq!(
        guest.read(CODEX),
        "model = \"x\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"
    );
    assert_eq!(guest.json(GEMINI), json!({ "theme": "x" }));
    assert_eq!(guest.read("claude/agents/codex.md"), "mine");
    assert_eq!(guest.run(&["init", "--undo"]).code, Some(4));
}

#[test]
fn what_the_user_had_set_otherwise_comes_back() {
    let guest = Guest::new(&["claude", "tmux"]);
    let before =
        r#"{"teammateMode": "auto", "env": {"CLAUDE_CODE_TEAMMATE_COMMAND": "/their/own"}}"#;
    guest.write(CLAUDE, before);
    guest.done(&["init", "--yes"]);
    let after = guest.read(CLAUDE);
    assert!(!after.contains("/their/own"), "{after}");
    guest.write(CLAUDE, &format!("{after}\n"));
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.read(CLAUDE), format!("{before}\n"));
}

/// As Claude Code 2.1.325 does at its start, if it has a setting of its own to move there.
#[test]
fn settings_written_anew_in_another_order_lose_only_what_is_ours() {
    let guest = Guest::new(&["claude", "tmux"]);
    guest.write(CLAUDE, r#"{"skipDangerousModePermissionPrompt": true}"#);
    guest.done(&["init", "--yes"]);
    let mut anew = guest.json(CLAUDE);
    anew["env"]["DISABLE_AUTOUPDATER"] = json!("1");
    guest.write(CLAUDE, &serde_json::to_string_pretty(&anew).unwrap());
    guest.done(&["init", "--undo"]);
    let rest = json!({
        "env": { "DISABLE_AUTOUPDATER": "1" }, "skipDangerousModePermissionPrompt": true
    });
    assert_eq!(guest.json(CLAUDE), rest);
}

#[test]
fn changed_since_and_told_again() {
    let guest = Guest::new(&["claude", "codex", "tmux"]);
    guest.write(CLAUDE, SETTINGS);
    guest.write(CODEX, "model = \"x\"\n");
    guest.done(&["init", "--yes"]);
    let edit = |path: &str, from: &str, to: &str| {
        let text = guest.read(path);
        assert!(text.contains(from), "{text}");
        guest.write(path, &text.replace(from, to));
    };
    edit(CLAUDE, "opus", "sonnet");
    edit(CODEX, "\"x\"", "\"y\"");
    // Brigade has moved.
    let moved = guest.house.path("bin/moved");
    std::fs::rename(guest.house.path("bin/brigade"), &moved).unwrap();
    let command = |args: &[&str]| {
        let mut command = guest.house.command_of(&moved, args);
        guest.house.outcome(&command.env("PATH", guest.house.path("bin")).output().unwrap())
    };
    assert_eq!(command(&["init", "--yes"]).code, Some(0));
    for path in [CLAUDE, CODEX] {
        let text = guest.read(path);
        assert!(text.contains("bin/moved") && !text.contains("bin/brigade"), "{text}");
    }
    assert_eq!(command(&["init"]).to_string(), "nothing to change: brigade is switched on\n");
    assert_eq!(command(&["init", "--undo"]).code, Some(0));
    assert_eq!(guest.read(CLAUDE), SETTINGS.replace("opus", "sonnet"));
    assert_eq!(guest.read(CODEX), "model = \"y\"\n");
}

/// The record is written first, so the state after a kill is: the record, and any part of the rest.
#[test]
fn a_change_that_broke_off_is_undone() {
    let guest = Guest::full();
    guest.write(CLAUDE, SETTINGS);
    guest.write(CODEX, "model = \"x\"\n");
    let before = guest.everything();
    guest.done(&["init", "--yes"]);
    // As if killed while Codex's file was being written: it and what comes after it are not there yet.
    guest.write(CODEX, "model = \"x\"\n");
    guest.write("home/.codex/.config.toml.brigade", "half");
    std::fs::remove_file(guest.house.path(GEMINI)).unwrap();
    std::fs::remove_dir(guest.house.path("home/.gemini")).unwrap();
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);

    // As if killed so that half of it stands, and begun again.
    guest.done(&["init", "--yes"]);
    guest.write(CODEX, "model = \"x\"\n");
    guest.done(&["init", "--yes"]);
    assert!(guest.read(CODEX).contains("[mcp_servers.team]"));
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);
}

#[test]
fn what_cannot_be_undone_is_remembered() {
    let guest = Guest::full();
    guest.write(CLAUDE, SETTINGS);
    let before = guest.everything();
    guest.done(&["init", "--yes"]);
    let after = guest.read(CLAUDE);
    guest.write(CLAUDE, &after.replacen('{', "{ // mine\n", 1));
    let outcome = guest.run(&["init", "--undo"]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains("settings.json is not as it should be"), "{outcome}");
    assert!(!guest.house.path("claude/agents").exists());
    guest.write(CLAUDE, &after);
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);
}

#[test]
fn what_was_reworded_is_not_passed_over() {
    let guest = Guest::new(&["claude", "codex", "tmux"]);
    guest.write(CODEX, "model = \"x\"\n");
    let before = guest.everything();
    guest.done(&["init", "--yes"]);
    let after = guest.read(CODEX);
    guest.write(CODEX, &after.replace("[\"mcp\"]", "[ \"mcp\" ]"));
    assert_snapshot!(guest.run(&["init", "--undo"]), @"
    removed <house>/claude/agents/codex.md
    removed <house>/claude/settings.json
    --- stderr
    error: what brigade put into <house>/home/.codex/config.toml is written in another way now
    hint: take out mcp_servers.team by hand, then undo again
    --- exit 1
    ");
    guest.write(CODEX, "model = \"x\"\n");
    assert_eq!(
        guest.done(&["init", "--undo"]),
        "nothing to undo in <house>/home/.codex/config.toml\n"
    );
    assert_eq!(guest.everything(), before);
}
