//! An isolated environment for each test, which keeps the test away from all other files on the machine.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A scripted agent. Words in its prompts control what it does.
pub(crate) const FAKE_AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A temporary home folder in which the built binary runs.
pub(crate) struct CliEnv {
    pub(crate) root: PathBuf,
    /// Environment variables for every command.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// The output and exit code of a command. Text that differs from run to run is replaced with placeholders.
#[must_use]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl CliEnv {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("brigade-cli-{}-{number}", std::process::id());
        // Resolve symbolic links, because the temporary directory is a link on some systems.
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(root.join("work")).unwrap();
        Self { root, variables: Vec::new() }
    }

    /// Creates an environment with a team `demo` of `team-lead`, `alice` and `bob`.
    pub(crate) fn with_team() -> Self {
        let cli = Self::new();
        cli.create_team();
        cli
    }

    pub(crate) fn create_team(&self) {
        self.run_ok(&["team", "create", "demo", "--description", "Ship the parser"]);
        self.run_ok(&["team", "join", "alice"]);
        self.run_ok(&["team", "join", "bob", "--agent-type", "codex"]);
    }

    /// Creates an environment with a team `theirs` that Claude Code created.
    pub(crate) fn with_native_team() -> Self {
        let cli = Self::new();
        let config = r#"{
  "name": "theirs",
  "description": "Made by Claude Code",
  "createdAt": 1763180000000,
  "leadAgentId": "team-lead@theirs",
  "leadSessionId": "s",
  "members": [
    {"agentId": "team-lead@theirs", "name": "team-lead", "agentType": "team-lead",
     "model": "opus", "joinedAt": 1763180000000, "tmuxPaneId": "", "cwd": "/", "subscriptions": []},
    {"agentId": "bob@theirs", "name": "bob", "agentType": "general-purpose",
     "model": "opus", "joinedAt": 1763180000000, "tmuxPaneId": "", "cwd": "/", "subscriptions": []}
  ]
}"#;
        cli.write("claude/teams/theirs/config.json", config);
        cli
    }

    /// Creates an environment with a team that Claude Code 2.1.240 created for its session.
    pub(crate) fn with_session_team() -> Self {
        let cli = Self::new();
        let config = r#"{
  "name": "session-e0c67a80",
  "createdAt": 1763180000000,
  "leadAgentId": "team-lead@session-e0c67a80",
  "leadSessionId": "e0c67a80-0000-4000-8000-000000000000",
  "members": [
    {"agentId": "team-lead@session-e0c67a80", "name": "team-lead", "agentType": "team-lead",
     "joinedAt": 1763180000000, "tmuxPaneId": "", "cwd": "/", "subscriptions": [], "backendType": "in-process"},
    {"agentId": "carol@session-e0c67a80", "name": "carol", "color": "blue", "joinedAt": 1763180000000,
     "tmuxPaneId": "", "subscriptions": [], "agentType": "codex", "model": "gpt", "prompt": "", "planModeRequired": false,
     "cwd": "/", "backendType": "process", "isActive": false}
  ]
}"#;
        cli.write("claude/teams/session-e0c67a80/config.json", config);
        cli
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a message into an inbox of the team `demo`, as another program would.
    pub(crate) fn write_inbox(&self, of: &str, from: &str, text: &str) {
        let timestamp = "2026-11-15T12:00:00.000Z";
        let entry = serde_json::json!([{ "from": from, "text": text, "timestamp": timestamp, "read": false }]);
        self.write(&format!("claude/teams/demo/inboxes/{of}.json"), &entry.to_string());
    }

    /// Returns a command that runs the binary with only this environment's variables.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_brigade")), args)
    }

    /// Like [`command`](Self::command), but runs the binary at another path.
    pub(crate) fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .env("TZ", "UTC")
            // Tests write team files by hand. `trust.rs` and `hostile_repository.rs` test what happens without this variable.
            .env("BRIGADE_TRUST", "all")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.outcome(&self.command(args).output().unwrap())
    }

    pub(crate) fn run_with_env(&self, args: &[&str], env: &[(&str, &str)]) -> Outcome {
        self.outcome(&self.command(args).envs(env.iter().copied()).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Ignore the error: writing fails if the command exits before it has read all input.
        let _refused = child.stdin.take().unwrap().write_all(input);
        self.outcome(&child.wait_with_output().unwrap())
    }

    /// Runs a command that must succeed and returns its output unchanged.
    pub(crate) fn run_ok(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Answers a request of a member that is not running, so that no process confirms the answer.
    pub(crate) fn answer_unconfirmed(&self, args: &[&str]) {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(5), "{args:?}: {outcome}");
        assert!(outcome.stdout.starts_with("sent, not yet confirmed"), "{outcome}");
    }

    /// Runs a command with `--json` and parses its output.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.run_ok(&[args, &["--json"]].concat())).unwrap()
    }

    /// Returns what `brigade status` reports about the first team.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.json(&["status"])[0].clone()
    }

    /// Returns what `brigade status` reports about a member of the first team.
    pub(crate) fn member(&self, name: &str) -> serde_json::Value {
        let status = self.status();
        status["members"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned().unwrap()
    }

    pub(crate) fn outcome(&self, output: &Output) -> Outcome {
        let text = |bytes: &[u8]| redact(&String::from_utf8_lossy(bytes), &self.root);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Outcome { stdout, stderr, code: output.status.code() }
    }
}

impl Drop for CliEnv {
    fn drop(&mut self) {
        let _ignored = std::fs::remove_dir_all(&self.root);
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        match self.code {
            Some(0) => Ok(()),
            Some(code) => write!(f, "--- exit {code}"),
            None => f.write_str("--- killed"),
        }
    }
}

/// Maps patterns to placeholders. In a pattern, `9` stands for a digit and `h` for a hexadecimal digit.
const CHANGING: &[(&str, &str)] = &[
    ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "<id>"),
    ("9999-99-99T99:99:99.999Z", "<timestamp>"),
    ("9999-99-99 99:99:99", "<date and time>"),
    ("9999-99-99", "<date>"),
    ("99:99:99", "<time>"),
    ("9999999999999", "<ms>"),
];

/// Replaces text that differs from run to run with placeholders.
pub(crate) fn redact(text: &str, root: &Path) -> String {
    let text = text.replace(root.to_str().unwrap(), "<root>");
    let mut redacted = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let found = CHANGING.iter().find(|(shape, _)| has_shape(rest, shape));
        match found {
            Some((shape, name)) => {
                redacted.push_str(name);
                rest = rest.get(shape.len()..).unwrap();
            }
            None => {
                let _infallible = write!(redacted, "{first}");
                rest = rest.get(first.len_utf8()..).unwrap();
            }
        }
    }
    redacted
}

fn has_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'9' => byte.is_ascii_digit(),
            b'h' => byte.is_ascii_hexdigit(),
            literal => byte == literal,
        })
}
