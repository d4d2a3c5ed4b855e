//! Replays recorded transcripts. A transcript has one line of JSON for each line of the program's input or output.

use std::collections::VecDeque;
use std::path::PathBuf;

use brigade_agents::driver::Invocation;
use serde_json::{Value, json};

use super::play::AgentProcess;
use super::scenario::Scenario;

pub(super) fn path(scenario: &Scenario) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    root.join(scenario.agent).join(scenario.name).with_extension("jsonl")
}

/// Replays a program: returns the recorded output, and asserts that the input matches the recording.
pub(super) struct ReplayedProcess {
    remaining: VecDeque<Value>,
    path: String,
    /// The session id that the driver generated for this replay, and the session id in the recording.
    session_ids: Option<(String, String)>,
}

impl ReplayedProcess {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let path = path(scenario);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { remaining: lines, path: path.display().to_string(), session_ids: None }
    }

    fn next(&mut self) -> Value {
        self.remaining
            .pop_front()
            .unwrap_or_else(|| panic!("{}: the transcript has ended", self.path))
    }
}

impl AgentProcess for ReplayedProcess {
    fn line(&mut self) -> Vec<u8> {
        let next = self.next();
        let Some(from) = next.get("from") else {
            panic!("{}: the driver did not write {next}", self.path);
        };
        let mut line = match from {
            // The program's output was not JSON.
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        line.push('\n');
        if let Some((current, recorded)) = &self.session_ids {
            line = line.replace(recorded, current);
        }
        line.into_bytes()
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let written = without_version(self.with_recorded_ids(text).as_bytes());
        let next = self.next();
        assert_eq!(Some(&written), next.get("to"), "{}: expected {next}", self.path);
    }

    fn start(&mut self, invocation: Invocation) {
        let next = self.next();
        let started = started(&invocation);
        if let (Some(current), Some(recorded)) =
            (session_id(&started), session_id(&next["started"]))
        {
            self.session_ids = Some((current, recorded));
        }
        let text = self.with_recorded_ids(started.to_string());
        assert_eq!(text, next["started"].to_string(), "{}", self.path);
    }

    fn with_recorded_ids(&self, text: String) -> String {
        match &self.session_ids {
            Some((current, recorded)) => text.replace(current, recorded),
            None => text,
        }
    }

    fn end(&mut self) {
        assert!(
            self.remaining.is_empty(),
            "{}: {} lines were not replayed",
            self.path,
            self.remaining.len()
        );
    }
}

/// Returns a program's arguments and environment in the form in which they are recorded.
pub(super) fn started(invocation: &Invocation) -> Value {
    let env: Vec<_> =
        invocation.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({ "args": invocation.args, "env": env })
}

/// Returns the id of a new session, if the driver generated it.
fn session_id(started: &Value) -> Option<String> {
    let args = started["args"].as_array()?;
    let index = args.iter().position(|arg| arg == "--session-id")?;
    args[index + 1].as_str().map(str::to_owned)
}

/// Parses the driver's output, and replaces brigade's version number with 0.
pub(super) fn without_version(bytes: &[u8]) -> Value {
    assert_eq!(bytes.last(), Some(&b'\n'), "a driver must write whole lines");
    let mut written: Value = serde_json::from_slice(bytes).unwrap();
    if let Some(version) = written.pointer_mut("/params/clientInfo/version") {
        *version = "0".into();
    }
    written
}
