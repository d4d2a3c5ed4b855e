//! A transcript: a line of JSON for each line of JSON that went to the program or came from it.

use std::collections::VecDeque;
use std::path::PathBuf;

use brigade_agents::driver::Invocation;
use serde_json::{Value, json};

use super::Scenario;
use super::play::Program;

pub(super) fn path(scenario: &Scenario) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    root.join(scenario.agent).join(scenario.name).with_extension("jsonl")
}

/// A program that writes what it once wrote, and wants to be written what it once was.
pub(super) struct Replayed {
    left: VecDeque<Value>,
    of: String,
    /// The session's id as the driver has made it up now, and as it did when this was recorded.
    made_up: Option<(String, String)>,
}

impl Replayed {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let path = path(scenario);
        let text = std::fs::read_to_string(&path).unwrap();
        let left = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { left, of: path.display().to_string(), made_up: None }
    }

    fn next(&mut self) -> Value {
        self.left.pop_front().unwrap_or_else(|| panic!("{}: nothing is left", self.of))
    }
}

impl Program for Replayed {
    fn line(&mut self) -> Vec<u8> {
        let next = self.next();
        let Some(from) = next.get("from") else {
            panic!("{}: the driver did not write {next}", self.of);
        };
        let mut line = match from {
            // What was no JSON.
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        line.push('\n');
        if let Some((now, then)) = &self.made_up {
            line = line.replace(then, now);
        }
        line.into_bytes()
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let written = meaning(self.familiar(text).as_bytes());
        let next = self.next();
        assert_eq!(Some(&written), next.get("to"), "{}: instead of {next}", self.of);
    }

    fn start(&mut self, invocation: Invocation) {
        let next = self.next();
        let started = started(&invocation);
        if let (Some(now), Some(then)) = (session_id(&started), session_id(&next["started"])) {
            self.made_up = Some((now, then));
        }
        let familiar = self.familiar(started.to_string());
        assert_eq!(familiar, next["started"].to_string(), "{}", self.of);
    }

    fn familiar(&self, text: String) -> String {
        match &self.made_up {
            Some((now, then)) => text.replace(now, then),
            None => text,
        }
    }

    fn end(&mut self) {
        assert!(self.left.is_empty(), "{}: {} lines are left", self.of, self.left.len());
    }
}

/// How a program was started.
pub(super) fn started(invocation: &Invocation) -> Value {
    let env: Vec<_> =
        invocation.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({ "args": invocation.args, "env": env })
}

/// The id of a new session, where a driver makes it up.
fn session_id(started: &Value) -> Option<String> {
    let args = started["args"].as_array()?;
    let place = args.iter().position(|word| word == "--session-id")?;
    args[place + 1].as_str().map(str::to_owned)
}

/// What a driver wrote, without our version.
pub(super) fn meaning(bytes: &[u8]) -> Value {
    assert_eq!(bytes.last(), Some(&b'\n'), "a driver writes whole lines");
    let mut written: Value = serde_json::from_slice(bytes).unwrap();
    if let Some(version) = written.pointer_mut("/params/clientInfo/version") {
        *version = "0".into();
    }
    written
}
