//! Permission requests of every vendor, and the check that a text shows the whole of a request.
//!
//! `fixtures/agents/requests.jsonl` contains what brigade's drivers report for requests that the vendors' programs
//! wrote. A test of brigade-agents checks that the drivers still report the same.

use brigade_core::text;
use serde_json::{Value, json};

/// The requests, one per line.
pub const RECORDED: &str = include_str!("../../../fixtures/agents/requests.jsonl");

/// A permission request as a driver reports it.
#[derive(Clone, Debug)]
pub struct VendorRequest {
    /// The vendor's agent.
    pub agent: String,
    /// The agent's name for the tool.
    pub tool: String,
    /// The purpose of the tool use.
    pub description: String,
    /// The input of the tool.
    pub input: Value,
    /// The other fields of the request.
    pub request: Value,
}

/// Returns the recorded requests.
pub fn recorded() -> Vec<VendorRequest> {
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let string = |name: &str| line[name].as_str().unwrap().to_owned();
        VendorRequest {
            agent: string("agent"),
            tool: string("tool"),
            description: string("description"),
            input: line["input"].clone(),
            request: line["request"].clone(),
        }
    };
    RECORDED.lines().map(read).collect()
}

impl VendorRequest {
    /// Returns the message that asks for this permission, as bob's member process writes it.
    pub fn message(&self, id: &str) -> Value {
        json!({
            "type": "permission_request", "request_id": id, "agent_id": "bob", "tool_name": "Bash",
            "tool_use_id": "t", "description": self.description,
            "input": { "command": "true", "description": self.description },
            "permission_suggestions": [],
            "brigade": {
                "tool": self.tool, "input": self.input, "cwd": "/home/dev/project",
                "request": self.request,
            },
        })
    }

    /// Panics unless a text shows the tool, the working directory, and every key and every scalar of the request.
    pub fn assert_shown_in(&self, shown: &str, what: &str) {
        let mut wanted = vec![text::exact(&self.tool), "/home/dev/project".to_owned()];
        for value in [&self.input, &self.request] {
            keys_and_scalars(value, &mut wanted);
        }
        for wanted in wanted {
            assert!(shown.contains(&wanted), "{what}, {}: no {wanted:?} in\n{shown}", self.agent);
        }
    }
}

/// Lists the keys and the scalars of a value, a string as the lines that show it.
fn keys_and_scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push(name.clone());
                keys_and_scalars(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys_and_scalars(item, found)),
        Value::String(string) => found.extend(string.split('\n').map(text::exact)),
        Value::Null => {}
        other => found.push(other.to_string()),
    }
}
