//! Tests what `brigade init` shows and writes, and that `--undo` removes everything.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_agents::driver::AGENTS;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{CliEnv, Outcome};

pub(crate) const CODEX: &str = "home/.codex/config.toml";
pub(crate) const GEMINI: &str = "home/.gemini/settings.json";
pub(crate) const CLAUDE: &str = "claude/settings.json";

/// Claude Code settings with unusual formatting.
pub(crate) const SETTINGS: &str = "{\n   \"model\":\"opus\",\n   \"env\": {\n      \"MINE\": \"1\"\n   },\n   \
                                   \"cleanupPeriodDays\": 1.50e1\n}\n";

/// An environment with its own PATH, on which only brigade and the chosen programs exist.
pub(crate) struct TestMachine {
    pub(crate) cli: CliEnv,
}

impl TestMachine {
    pub(crate) fn new(programs: &[&str]) -> Self {
        let cli = CliEnv::new();
        std::fs::create_dir_all(cli.path("bin")).unwrap();
        std::fs::create_dir_all(cli.path("home")).unwrap();
        std::fs::create_dir_all(cli.path("state")).unwrap();
        symlink(env!("CARGO_BIN_EXE_brigade"), cli.path("bin/brigade")).unwrap();
        let machine = Self { cli };
        for program in programs {
            machine.install(program, "echo 1.2.3");
        }
        machine
    }

    /// Creates an environment with all supported agents, Claude Code and tmux on the PATH.
    pub(crate) fn full() -> Self {
        let mut programs: Vec<&str> = AGENTS.iter().map(|agent| agent.program).collect();
        programs.extend(["claude", "tmux"]);
        Self::new(&programs)
    }

    pub(crate) fn install(&self, program: &str, script: &str) {
        let path = format!("bin/{program}");
        self.cli.write(&path, &format!("#!/bin/sh\n{script}\n"));
        self.set_mode(&path, 0o755);
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.cli.path(path), permissions).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cli.command_of(&self.cli.path("bin/brigade"), args);
        command.env("PATH", self.cli.path("bin"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.cli.outcome(&self.command(args).output().unwrap())
    }

    #[track_caller]
    fn succeeded(&self, args: &[&str]) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {outcome}");
        outcome
    }

    /// Runs a command that must succeed and returns its output.
    #[track_caller]
    pub(crate) fn run_ok(&self, args: &[&str]) -> String {
        self.succeeded(args).stdout
    }

    /// Runs a command with `--json` and parses its output.
    #[track_caller]
    pub(crate) fn answer(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run_ok(&[args, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that must succeed and returns its standard error.
    #[track_caller]
    pub(crate) fn notes(&self, args: &[&str]) -> String {
        self.succeeded(args).stderr
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.cli.path(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.cli.write(path, text);
    }

    /// Returns every file with its mode and content.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        collect(&self.cli.root, &mut all);
        all
    }
}

fn collect(dir: &Path, into: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let bytes = if metadata.is_symlink() {
            std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if metadata.is_dir() {
            collect(&path, into);
            Vec::new()
        } else {
            std::fs::read(&path).unwrap()
        };
        into.insert(path, (metadata.permissions().mode(), bytes));
    }
}

#[test]
fn changes_are_shown_and_need_confirmation() {
    let machine = TestMachine::new(&["claude", "codex", "gemini", "tmux"]);
    machine.write(CLAUDE, SETTINGS);
    let before = machine.everything();
    assert_snapshot!(machine.run(&["init"]));
    assert_eq!(machine.everything(), before);

    let outcome = machine.run(&["init", "--json"]);
    assert_eq!(outcome.code, Some(2));
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["applied"], json!(false));
    let diff = document["changes"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("\n+   \"teammateMode\": \"tmux\"\n"), "{diff}");
    assert_eq!(machine.everything(), before);
}

#[test]
fn undo_restores_everything() {
    let machine = TestMachine::full();
    machine.write(CLAUDE, SETTINGS);
    machine.set_mode(CLAUDE, 0o640);
    machine.write(CODEX, "# mine\nmodel = \"x\"");
    machine.write(GEMINI, r#"{"mcpServers":{}, "ui": {"theme": "x"}}"#);
    let before = machine.everything();
    machine.run_ok(&["init", "--yes"]);
    let after = machine.everything();
    let settings = machine.cli.path(CLAUDE);
    assert_eq!(after[&settings].0, before[&settings].0, "the file's mode changed");

    let again = machine.run_ok(&["init", "--yes"]);
    assert_eq!(again, "nothing to change: brigade is already set up\n");
    assert_eq!(machine.everything(), after);

    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);
    let again = machine.run(&["init", "--undo"]);
    assert_snapshot!(again, @"
    --- stderr
    error: there is nothing to undo
    --- exit 4
    ");
    assert_eq!(machine.everything(), before);
}

#[test]
fn undo_removes_created_folders() {
    let machine = TestMachine::full();
    let before = machine.everything();
    let document = machine.answer(&["init", "--yes"]);
    assert_eq!(document["applied"], json!(true));
    assert_eq!(machine.json(CLAUDE)["teammateMode"], json!("tmux"));
    machine.run_ok(&["init", "--undo"]);
    assert_eq!(machine.everything(), before);
}

#[test]
fn writes_settings_for_each_program() {
    let machine = TestMachine::full();
    machine.run_ok(&["init", "--yes"]);
    let bin = |name: &str| json!(machine.cli.path("bin").join(name));
    assert_eq!(
        machine.json(CLAUDE),
        json!({
            "env": {
                "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
                "CLAUDE_CODE_TEAMMATE_COMMAND": bin("brigade"),
                "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
                "BRIGADE_CLAUDE": bin("claude"),
            },
            "teammateMode": "tmux",
        })
    );
    let mut types: Vec<String> = AGENTS.iter().map(|agent| format!("{}.md", agent.name)).collect();
    types.retain(|name| name != "claude.md");
    types.sort();
    let dir = std::fs::read_dir(machine.cli.path("claude/agents")).unwrap();
    let mut found: Vec<String> =
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, types);
    assert!(
        machine
            .read("claude/agents/codex.md")
            .starts_with("---\nname: codex\ndescription: A Codex")
    );
    let server = machine.json(GEMINI)["mcpServers"]["team"].clone();
    // The test uses non-default folders, so `init` passes them to the MCP server in environment variables.
    let env = json!({
        "CLAUDE_CONFIG_DIR": machine.cli.path("claude"), "XDG_STATE_HOME": machine.cli.path("state")
    });
    let expected = json!({ "command": bin("brigade"), "args": ["mcp"], "trust": true, "env": env });
    assert_eq!(server, expected);
    let config: toml::Table = machine.read(CODEX).parse().unwrap();
    let config = serde_json::to_value(config).unwrap();
    assert_eq!(
        config["mcp_servers"]["team"],
        json!({
            "command": bin("brigade"),
            "args": ["mcp"],
            "omit_tools_from": ["code_mode", "deferred"],
            "env": env,
        })
    );
}

#[test]
fn only_installed_agents_are_set_up() {
    let machine = TestMachine::new(&[]);
    assert_snapshot!(machine.notes(&["init", "--yes"]), @"
    note: Claude Code is not on the PATH; run `brigade init` again after installing it
    note: tmux is not installed; Claude Code needs it to start teammates
    note: no agent of another vendor is installed; `brigade agents` shows how to install one
    ");
    assert!(!machine.cli.path("claude/agents").exists());
    assert!(
        !machine.cli.path("home/.codex").exists() && !machine.cli.path("home/.gemini").exists()
    );
    let env = machine.json(CLAUDE)["env"].clone();
    assert_eq!(env.get("BRIGADE_CLAUDE"), None);

    // A second `init` adds agents that were installed later; a single `--undo` removes both sets of changes.
    machine.install("codex", "echo 1");
    machine.install("claude", "echo 1");
    let told = machine.answer(&["init", "--yes"]);
    assert_eq!(told["changes"].as_array().unwrap().len(), 3, "{told}");
    machine.run_ok(&["init", "--undo"]);
    assert!(!machine.cli.path("claude").exists() && !machine.cli.path("home/.codex").exists());
}

/// A teammate's tmux pane has few of the lead's environment variables and may have another PATH.
#[test]
fn a_pane_finds_the_real_claude_code() {
    let machine = TestMachine::new(&["tmux"]);
    machine.install("claude", "echo real \"$@\"");
    machine.run_ok(&["init", "--yes"]);
    let mut command = machine.command(&["--agent-id", "a@t", "--agent-type", "general-purpose"]);
    let outcome = machine.cli.outcome(&command.env("PATH", "/nowhere").output().unwrap());
    assert_eq!(outcome.to_string(), "real --agent-id a@t --agent-type general-purpose\n");
}

#[test]
fn init_asks_on_a_terminal() {
    let machine = TestMachine::new(&["claude", "tmux"]);
    let before = machine.everything();
    let (seen, code) = run_on_terminal(machine.command(&["init"]), "n\n");
    assert!(seen.contains("apply? [y/N]") && seen.contains("nothing was changed"), "{seen}");
    assert_eq!((code, machine.everything()), (Some(1), before));
    let (seen, code) = run_on_terminal(machine.command(&["init"]), "y\n");
    assert!(
        seen.contains("\u{1b}[32m+  \"teammateMode\": \"tmux\""),
        "added line not in green: {seen}"
    );
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(machine.json(CLAUDE)["teammateMode"], json!("tmux"));
}

/// Runs a command on a terminal and types this input. Returns the screen output and the exit code.
pub(crate) fn run_on_terminal(command: Command, typed: &str) -> (String, Option<i32>) {
    // A terminal of an unknown size.
    run_on_terminal_of(command, typed, 0, 0)
}

/// Like [`run_on_terminal`], on a terminal of this size.
pub(crate) fn run_on_terminal_of(
    mut command: Command,
    typed: &str,
    columns: u16,
    lines: u16,
) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person, size).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let open = || {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).open(name.to_str().unwrap()).unwrap()
    };
    command.env("TERM", "xterm").stdin(open()).stdout(open()).stderr(open());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut person = std::fs::File::from(person);
    person.write_all(typed.as_bytes()).unwrap();
    let mut seen = Vec::new();
    // Reading fails when the other end of the terminal is closed.
    let _end = person.read_to_end(&mut seen);
    (String::from_utf8_lossy(&seen).into_owned(), child.wait().unwrap().code())
}
