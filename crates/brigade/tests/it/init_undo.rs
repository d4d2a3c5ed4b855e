//! `brigade init --undo` after later edits and interrupted runs.

use insta::assert_snapshot;
use serde_json::json;

use crate::init::{CLAUDE, CODEX, GEMINI, SETTINGS, TestMachine};

#[test]
fn undo_keeps_later_edits() {
    let machine = TestMachine::full();
    machine.write(CLAUDE, SETTINGS);
    machine.write(CODEX, "model = \"x\"\n");
    machine.run_ok(&["init", "--yes"]);
    // The user changes one of brigade's settings, adds a setting, and removes one of their own.
    let settings = machine.read(CLAUDE);
    let settings = settings
        .replace("\"tmux\"", "\"in-process\"")
        .replace("\"MINE\": \"1\"", "\"YOURS\": \"2\"");
    machine.write(CLAUDE, &settings);
    let config = machine.read(CODEX);
    machine.write(CODEX, &format!("{config}\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"));
    machine.write("claude/agents/codex.md", "mine");
    let gemini = machine.read(GEMINI).replacen('{', "{\n  \"theme\": \"x\",", 1);
    machine.write(GEMINI, &gemini);

    assert_snapshot!(machine.run_ok(&["init", "--undo"]), @"
    removed brigade's settings from <root>/home/.gemini/settings.json; other edits are kept
    removed brigade's settings from <root>/home/.codex/config.toml; other edits are kept
    removed <root>/claude/agents/qwen.md
    removed <root>/claude/agents/copilot.md
    removed <root>/claude/agents/opencode.md
    removed <root>/claude/agents/gemini.md
    kept <root>/claude/agents/codex.md, because it was edited since
    removed brigade's settings from <root>/claude/settings.json; other edits are kept
    ");
    let expected = SETTINGS.replace("\"MINE\": \"1\"", "\"YOURS\": \"2\"");
    let expected = expected.replace("1.50e1\n", "1.50e1,\n   \"teammateMode\": \"in-process\"\n");
    assert_eq!(machine.read(CLAUDE), expected);
    assert_eq!(
        machine.read(CODEX),
        "model = \"x\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"
    );
    assert_eq!(machine.json(GEMINI), json!({ "theme": "x" }));
    assert_eq!(machine.read("claude/agents/codex.md"), "mine");
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(4));
}

#[test]
fn undo_restores_previous_values() {
    let machine = TestMachine::new(&["claude", "tmux"]);
    let before =
        r#"{"teammateMode": "auto", "env": {"CLAUDE_CODE_TEAMMATE_COMMAND": "/their/own"}}"#;
    machine.write(CLAUDE, before);
    machine.run_ok(&["init", "--yes"]);
    let after = machine.read(CLAUDE);
    assert!(!after.contains("/their/own"), "{after}");
    machine.write(CLAUDE, &format!("{after}\n"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.read(CLAUDE), format!("{before}\n"));
}

/// When Claude Code 2.1.325 migrates a setting at startup, it writes all settings in another order.
#[test]
fn undo_works_after_settings_were_reordered() {
    let machine = TestMachine::new(&["claude", "tmux"]);
    machine.write(CLAUDE, r#"{"skipDangerousModePermissionPrompt": true}"#);
    machine.run_ok(&["init", "--yes"]);
    let mut anew = machine.json(CLAUDE);
    anew["env"]["DISABLE_AUTOUPDATER"] = json!("1");
    machine.write(CLAUDE, &serde_json::to_string_pretty(&anew).unwrap());
    machine.run_ok(&["init", "--undo"]);
    let rest = json!({
        "env": { "DISABLE_AUTOUPDATER": "1" }, "skipDangerousModePermissionPrompt": true
    });
    assert_eq!(machine.json(CLAUDE), rest);
}

#[test]
fn init_after_later_edits_can_be_undone() {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    machine.write(CLAUDE, SETTINGS);
    machine.write(CODEX, "model = \"x\"\n");
    machine.run_ok(&["init", "--yes"]);
    let edit = |path: &str, from: &str, to: &str| {
        let text = machine.read(path);
        assert!(text.contains(from), "{text}");
        machine.write(path, &text.replace(from, to));
    };
    edit(CLAUDE, "opus", "sonnet");
    edit(CODEX, "\"x\"", "\"y\"");
    // Move the brigade binary to another path.
    let moved = machine.cli.path("bin/moved");
    std::fs::rename(machine.cli.path("bin/brigade"), &moved).unwrap();
    let command = |args: &[&str]| {
        let mut command = machine.cli.command_of(&moved, args);
        machine.cli.outcome(&command.env("PATH", machine.cli.path("bin")).output().unwrap())
    };
    assert_eq!(command(&["init", "--yes"]).code, Some(0));
    for path in [CLAUDE, CODEX] {
        let text = machine.read(path);
        assert!(text.contains("bin/moved") && !text.contains("bin/brigade"), "{text}");
    }
    assert_eq!(command(&["init"]).to_string(), "nothing to change: brigade is already set up\n");
    assert_eq!(command(&["init", "--undo"]).code, Some(0));
    assert_eq!(machine.read(CLAUDE), SETTINGS.replace("opus", "sonnet"));
    assert_eq!(machine.read(CODEX), "model = \"y\"\n");
}

/// `init` writes the record for `--undo` before all changes, so a killed `init` can be undone.
#[test]
fn an_interrupted_init_can_be_undone() {
    let machine = TestMachine::full();
    machine.write(CLAUDE, SETTINGS);
    machine.write(CODEX, "model = \"x\"\n");
    let before = machine.everything();
    machine.run_ok(&["init", "--yes"]);
    // Simulate that `init` was killed while it wrote Codex's file: this change and later ones are missing.
    machine.write(CODEX, "model = \"x\"\n");
    machine.write("home/.codex/.config.toml.brigade", "half");
    std::fs::remove_file(machine.cli.path(GEMINI)).unwrap();
    std::fs::remove_dir(machine.cli.path("home/.gemini")).unwrap();
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);

    // Simulate that `init` is killed halfway. Then run it again.
    machine.run_ok(&["init", "--yes"]);
    machine.write(CODEX, "model = \"x\"\n");
    machine.run_ok(&["init", "--yes"]);
    assert!(machine.read(CODEX).contains("[mcp_servers.team]"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);
}

#[test]
fn failed_undos_stay_in_the_record() {
    let machine = TestMachine::full();
    machine.write(CLAUDE, SETTINGS);
    let before = machine.everything();
    machine.run_ok(&["init", "--yes"]);
    let after = machine.read(CLAUDE);
    machine.write(CLAUDE, &after.replacen('{', "{ // mine\n", 1));
    let outcome = machine.run(&["init", "--undo"]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains("settings.json is not valid"), "{outcome}");
    assert!(!machine.cli.path("claude/agents").exists());
    machine.write(CLAUDE, &after);
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);
}

#[test]
fn rewritten_settings_are_reported() {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    machine.write(CODEX, "model = \"x\"\n");
    let before = machine.everything();
    machine.run_ok(&["init", "--yes"]);
    let after = machine.read(CODEX);
    machine.write(CODEX, &after.replace("[\"mcp\"]", "[ \"mcp\" ]"));
    assert_snapshot!(machine.run(&["init", "--undo"]), @"
    removed <root>/claude/agents/codex.md
    removed <root>/claude/settings.json
    --- stderr
    error: brigade's settings in <root>/home/.codex/config.toml were rewritten in another form
    hint: remove mcp_servers.team by hand, then run `brigade init --undo` again
    --- exit 1
    ");
    machine.write(CODEX, "model = \"x\"\n");
    assert_eq!(
        machine.run_ok(&["init", "--undo"]),
        "nothing to undo in <root>/home/.codex/config.toml\n"
    );
    assert_eq!(machine.everything(), before);
}

/// Finding 32: a line that a person added below brigade's table belongs to that table. Without the table, it would
/// belong to another one.
#[test]
fn finding_32_a_line_below_our_table_does_not_move_into_another_table() {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    machine.write(CODEX, "model = \"x\"\n\n[profiles.fast]\nmodel = \"y\"\n");
    machine.run_ok(&["init", "--yes"]);
    let with_line = format!("{}startup_timeout_sec = 20\n", machine.read(CODEX));
    machine.write(CODEX, &with_line);
    let undone = machine.run(&["init", "--undo"]);
    assert_eq!(undone.code, Some(1), "{undone}");
    assert!(undone.stderr.contains("startup_timeout_sec was added to brigade's table"), "{undone}");
    assert_eq!(machine.read(CODEX), with_line);
    // After the person has moved the line, undo succeeds.
    let moved = with_line.replace("startup_timeout_sec = 20\n", "");
    machine.write(CODEX, &format!("startup_timeout_sec = 20\n{moved}"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(
        machine.read(CODEX),
        "startup_timeout_sec = 20\nmodel = \"x\"\n\n[profiles.fast]\nmodel = \"y\"\n"
    );
}

#[test]
fn finding_32_a_table_below_ours_stays() {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    machine.write(CODEX, "model = \"x\"\n");
    machine.run_ok(&["init", "--yes"]);
    let text = machine.read(CODEX);
    machine.write(CODEX, &format!("{text}\n[mcp_servers.mine]\ncommand = \"m\"\n"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.read(CODEX), "model = \"x\"\n\n[mcp_servers.mine]\ncommand = \"m\"\n");
}

/// Finding 42: `--undo` reverts the setup of one Claude Code folder, not of every folder.
#[test]
fn finding_42_undo_is_limited_to_one_configuration_folder() {
    let machine = TestMachine::new(&["claude", "codex", "tmux"]);
    let other = machine.cli.path("other-claude");
    let other = ["--claude-dir", other.to_str().unwrap()];
    machine.run_ok(&["init", "--yes"]);
    let (first, codex_of_first) = (machine.read(CLAUDE), machine.read(CODEX));
    machine.run_ok(&[&other[..], &["init", "--yes"]].concat());
    let codex_of_other = machine.read(CODEX);
    assert_ne!(codex_of_first, codex_of_other);
    let undone = machine.run(&["init", "--undo"]);
    assert_eq!(undone.code, Some(0), "{undone}");
    assert!(undone.stderr.contains("brigade is still set up for <root>/other-claude"), "{undone}");
    assert!(!machine.cli.path(CLAUDE).exists());
    assert!(machine.cli.path("other-claude/settings.json").exists());
    assert_eq!(machine.read(CODEX), codex_of_other);
    let again = machine.run(&["init", "--undo"]);
    assert_eq!(again.code, Some(4), "{again}");
    assert!(again.stderr.contains("other-claude init --undo"), "{again}");
    machine.run_ok(&[&other[..], &["init", "--undo"]].concat());
    assert!(!machine.cli.path("other-claude").exists());
    assert!(!machine.cli.path(CODEX).exists());
    machine.run_ok(&["init", "--yes"]);
    assert_eq!(machine.read(CLAUDE), first);
}
