//! `brigade init`: what it shows, what it writes, and that nothing of it stays.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_agents::driver::AGENTS;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{House, Outcome};

pub(crate) const CODEX: &str = "home/.codex/config.toml";
pub(crate) const GEMINI: &str = "home/.gemini/settings.json";
pub(crate) const CLAUDE: &str = "claude/settings.json";

/// Settings with a layout of their own.
pub(crate) const SETTINGS: &str = "{\n   \"model\":\"opus\",\n   \"env\": {\n      \"MINE\": \"1\"\n   },\n   \
                                   \"cleanupPeriodDays\": 1.50e1\n}\n";

/// A house in which these programs are installed, brigade among them.
pub(crate) struct Guest {
    pub(crate) house: House,
}

impl Guest {
    pub(crate) fn new(programs: &[&str]) -> Self {
        let house = House::new();
        std::fs::create_dir_all(house.path("bin")).unwrap();
        std::fs::create_dir_all(house.path("home")).unwrap();
        std::fs::create_dir_all(house.path("state")).unwrap();
        symlink(env!("CARGO_BIN_EXE_brigade"), house.path("bin/brigade")).unwrap();
        let guest = Self { house };
        for program in programs {
            guest.install(program, "echo 1.2.3");
        }
        guest
    }

    /// Everything there could be.
    pub(crate) fn full() -> Self {
        let mut programs: Vec<&str> = AGENTS.iter().map(|agent| agent.program).collect();
        programs.extend(["claude", "tmux"]);
        Self::new(&programs)
    }

    pub(crate) fn install(&self, program: &str, script: &str) {
        let path = format!("bin/{program}");
        self.house.write(&path, &format!("#!/bin/sh\n{script}\n"));
        self.set_mode(&path, 0o755);
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.house.path(path), permissions).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.house.command_of(&self.house.path("bin/brigade"), args);
        command.env("PATH", self.house.path("bin"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.house.outcome(&self.command(args).output().unwrap())
    }

    #[track_caller]
    fn succeeded(&self, args: &[&str]) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {outcome}");
        outcome
    }

    /// Runs what has to succeed; what it answers.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        self.succeeded(args).stdout
    }

    /// The same as JSON.
    #[track_caller]
    pub(crate) fn answer(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[args, &["--json"]].concat())).unwrap()
    }

    /// The same; what it says beside its answer.
    #[track_caller]
    pub(crate) fn notes(&self, args: &[&str]) -> String {
        self.succeeded(args).stderr
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.house.path(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.house.write(path, text);
    }

    /// Everything there is: its mode, and what it says.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        collect(&self.house.root, &mut all);
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
fn the_change_is_shown_and_needs_a_yes() {
    let guest = Guest::new(&["claude", "codex", "gemini", "tmux"]);
    guest.write(CLAUDE, SETTINGS);
    let before = guest.everything();
    assert_snapshot!(guest.run(&["init"]));
    assert_eq!(guest.everything(), before);

    let outcome = guest.run(&["init", "--json"]);
    assert_eq!(outcome.code, Some(2));
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["applied"], json!(false));
    let diff = document["changes"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("\n+   \"teammateMode\": \"tmux\"\n"), "{diff}");
    assert_eq!(guest.everything(), before);
}

#[test]
fn nothing_stays_of_it() {
    let guest = Guest::full();
    guest.write(CLAUDE, SETTINGS);
    guest.set_mode(CLAUDE, 0o640);
    guest.write(CODEX, "# mine\nmodel = \"x\"");
    guest.write(GEMINI, r#"{"mcpServers":{}, "ui": {"theme": "x"}}"#);
    let before = guest.everything();
    guest.done(&["init", "--yes"]);
    let after = guest.everything();
    let settings = guest.house.path(CLAUDE);
    assert_eq!(after[&settings].0, before[&settings].0, "the mode is kept");

    let again = guest.done(&["init", "--yes"]);
    assert_eq!(again, "nothing to change: brigade is switched on\n");
    assert_eq!(guest.everything(), after);

    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);
    let again = guest.run(&["init", "--undo"]);
    assert_snapshot!(again, @"
    --- stderr
    error: there is nothing to undo
    --- exit 4
    ");
    assert_eq!(guest.everything(), before);
}

#[test]
fn folders_that_were_made_go_too() {
    let guest = Guest::full();
    let before = guest.everything();
    let document = guest.answer(&["init", "--yes"]);
    assert_eq!(document["applied"], json!(true));
    assert_eq!(guest.json(CLAUDE)["teammateMode"], json!("tmux"));
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);
}

#[test]
fn what_is_written() {
    let guest = Guest::full();
    guest.done(&["init", "--yes"]);
    let bin = |name: &str| json!(guest.house.path("bin").join(name));
    assert_eq!(
        guest.json(CLAUDE),
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
    let dir = std::fs::read_dir(guest.house.path("claude/agents")).unwrap();
    let mut found: Vec<String> =
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, types);
    assert!(
        guest.read("claude/agents/codex.md").starts_with("---\nname: codex\ndescription: A Codex")
    );
    let server = guest.json(GEMINI)["mcpServers"]["team"].clone();
    // These folders are not where they are found without being told.
    let env = json!({
        "CLAUDE_CONFIG_DIR": guest.house.path("claude"), "XDG_STATE_HOME": guest.house.path("state")
    });
    let expected = json!({ "command": bin("brigade"), "args": ["mcp"], "trust": true, "env": env });
    assert_eq!(server, expected);
    let config: toml::Table = guest.read(CODEX).parse().unwrap();
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
fn what_is_not_installed_is_not_told() {
    let guest = Guest::new(&[]);
    assert_snapshot!(guest.notes(&["init", "--yes"]), @"
    note: Claude Code is not on the path; once it is, run `brigade init` again
    note: teammates run in tmux, which is not installed
    note: no agent of another vendor is installed; `brigade agents` tells how
    ");
    assert!(!guest.house.path("claude/agents").exists());
    assert!(
        !guest.house.path("home/.codex").exists() && !guest.house.path("home/.gemini").exists()
    );
    let env = guest.json(CLAUDE)["env"].clone();
    assert_eq!(env.get("BRIGADE_CLAUDE"), None);

    // What comes later is told then, and all of it is undone at once.
    guest.install("codex", "echo 1");
    guest.install("claude", "echo 1");
    let told = guest.answer(&["init", "--yes"]);
    assert_eq!(told["changes"].as_array().unwrap().len(), 3, "{told}");
    guest.done(&["init", "--undo"]);
    assert!(!guest.house.path("claude").exists() && !guest.house.path("home/.codex").exists());
}

/// A lead's pane has little of its settings in its environment, and maybe another path.
#[test]
fn the_real_claude_code_is_found_again_from_a_pane() {
    let guest = Guest::new(&["tmux"]);
    guest.install("claude", "echo real \"$@\"");
    guest.done(&["init", "--yes"]);
    let mut command = guest.command(&["--agent-id", "a@t", "--agent-type", "general-purpose"]);
    let outcome = guest.house.outcome(&command.env("PATH", "/nowhere").output().unwrap());
    assert_eq!(outcome.to_string(), "real --agent-id a@t --agent-type general-purpose\n");
}

#[test]
fn a_person_is_asked() {
    let guest = Guest::new(&["claude", "tmux"]);
    let before = guest.everything();
    let (seen, code) = on_a_terminal(guest.command(&["init"]), "n\n");
    assert!(seen.contains("apply? [y/N]") && seen.contains("nothing was changed"), "{seen}");
    assert_eq!((code, guest.everything()), (Some(1), before));
    let (seen, code) = on_a_terminal(guest.command(&["init"]), "y\n");
    assert!(seen.contains("\u{1b}[32m+  \"teammateMode\": \"tmux\""), "in green: {seen}");
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(guest.json(CLAUDE)["teammateMode"], json!("tmux"));
}

/// Runs a command on a terminal where somebody types this; what is seen, and how it ended.
pub(crate) fn on_a_terminal(mut command: Command, typed: &str) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
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
    // The terminal's end is an error once nobody else has it open.
    let _end = person.read_to_end(&mut seen);
    (String::from_utf8_lossy(&seen).into_owned(), child.wait().unwrap().code())
}
