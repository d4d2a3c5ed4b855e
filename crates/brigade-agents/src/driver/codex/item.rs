//! Parses the items of a Codex turn: user messages, the agent's messages, and tool uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::change::{ChangedPart, FileChange, parts_of_diff};
use super::super::text::{input_line, one_line, text};
use super::super::{AgentEvent, TextNumber};

/// The items of the running turn.
#[derive(Debug, Default)]
pub(super) struct Items {
    tools: BTreeMap<String, Value>,
    /// Ids of messages whose text was already reported in pieces. Their complete text is ignored.
    streamed: BTreeSet<String>,
}

/// Returns why a tool use failed: the error, or the exit code and the last line of the output.
fn failure(item: &Value) -> String {
    let error = text(item, "/error/message");
    if !error.is_empty() {
        return one_line(error);
    }
    let output = text(item, "/aggregatedOutput").lines().rfind(|line| !line.trim().is_empty());
    let code = item.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0);
    let code = code.map(|code| format!("exit code {code}"));
    let parts: Vec<String> = code.into_iter().chain(output.map(one_line)).collect();
    parts.join(": ")
}

impl Items {
    /// Translates the start or end of an item into events.
    pub(super) fn on_item(&mut self, item: &Value, ended: bool) -> Vec<AgentEvent> {
        let id = text(item, "/id").to_owned();
        if text(item, "/type") == "agentMessage" {
            let new = ended && !self.streamed.contains(&id);
            return new
                .then(|| AgentEvent::Said(text(item, "/text").to_owned()))
                .into_iter()
                .collect();
        }
        let Some(tool) = tool(item) else { return Vec::new() };
        if ended {
            self.tools.remove(&id);
            // Some kinds of items cannot fail and have no status.
            let ok = item.get("status").is_none_or(|status| status == "completed");
            let changes = if ok { changes(item) } else { Vec::new() };
            let why = if ok { String::new() } else { failure(item) };
            let ended = AgentEvent::ToolEnded { id, ok, why };
            return changes.into_iter().map(AgentEvent::Changed).chain([ended]).collect();
        }
        self.tools.insert(id.clone(), item.clone());
        vec![AgentEvent::ToolStarted { id, tool, about: one_line(&about(item)) }]
    }

    /// Remembers that Codex sent a piece of this message's text.
    pub(super) fn mark_streamed(&mut self, id: &str) {
        self.streamed.insert(id.to_owned());
    }

    /// Finds a running tool use by its id.
    pub(super) fn tool(&self, id: &str) -> Option<&Value> {
        self.tools.get(id)
    }

    /// Finds a running tool use by its MCP server and its arguments.
    pub(super) fn tool_with(&self, server: &str, arguments: &Value) -> Option<&Value> {
        let is_same = |item: &&Value| {
            text(item, "/server") == server && item.get("arguments") == Some(arguments)
        };
        self.tools.values().find(is_same)
    }
}

/// Returns Codex's name for the tool that an item uses, or `None` if the item is not a tool use.
pub(super) fn tool(item: &Value) -> Option<String> {
    match text(item, "/type") {
        "mcpToolCall" => Some(format!("{}/{}", text(item, "/server"), text(item, "/tool"))),
        "dynamicToolCall" | "collabAgentToolCall" => Some(text(item, "/tool").to_owned()),
        kind @ ("commandExecution" | "fileChange" | "webSearch" | "imageView") => {
            Some(kind.to_owned())
        }
        _ => None,
    }
}

/// Describes the purpose of a tool use.
pub(super) fn about(item: &Value) -> String {
    match text(item, "/type") {
        // If Codex also reports the command without the shell that wraps it, use that form.
        "commandExecution" => match text(item, "/commandActions/0/command") {
            "" => text(item, "/command").to_owned(),
            inner => inner.to_owned(),
        },
        "fileChange" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let paths = changes.into_iter().flatten().map(|change| text(change, "/path"));
            paths.collect::<Vec<_>>().join(" ")
        }
        "webSearch" => text(item, "/query").to_owned(),
        "imageView" => text(item, "/path").to_owned(),
        "collabAgentToolCall" => text(item, "/prompt").to_owned(),
        _ => input_line(item.get("arguments").unwrap_or(&Value::Null)),
    }
}

/// Returns the file changes that an item reports.
fn changes(item: &Value) -> Vec<FileChange> {
    let changes = item.get("changes").and_then(Value::as_array);
    let change = |change: &Value| {
        let diff = text(change, "/diff");
        // For an added or deleted file, `diff` contains the whole file.
        let parts = match text(change, "/kind/type") {
            "add" => vec![ChangedPart { before: String::new(), after: diff.to_owned() }],
            "delete" => vec![ChangedPart { before: diff.to_owned(), after: String::new() }],
            _ => parts_of_diff(diff),
        };
        let path = match text(change, "/kind/move_path") {
            "" => text(change, "/path"),
            moved => moved,
        };
        FileChange { path: path.to_owned(), parts }
    };
    changes.into_iter().flatten().map(change).collect()
}

/// Returns the input of a tool use, to be shown to the lead with a permission request.
pub(super) fn input(item: &Value) -> Value {
    match text(item, "/type") {
        "fileChange" => json!({ "changes": item.get("changes") }),
        "commandExecution" => json!({ "command": item.get("command"), "cwd": item.get("cwd") }),
        _ => item.get("arguments").cloned().unwrap_or_default(),
    }
}

/// Returns the text of a user message.
pub(super) fn user_text(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array);
    parts.into_iter().flatten().map(|part| text(part, "/text")).collect()
}

/// Returns the client id of a text that we send. The id identifies the text in the thread.
pub(super) fn client_id(note: TextNumber) -> String {
    format!("brigade-{}", note.0)
}

/// If this user message is a text that we sent, returns the sequence number that we gave the text.
pub(super) fn note(item: &Value) -> Option<TextNumber> {
    let number = text(item, "/clientId").strip_prefix("brigade-")?;
    number.parse().ok().map(TextNumber)
}
