//! The items of a turn: what a user wrote, what the agent says, the tools it uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::change::{FileChange, Part, parts_of_diff};
use super::super::words::{brief, brief_input, text};
use super::super::{Event, Note};

/// The items of the turn that is on.
#[derive(Debug, Default)]
pub(super) struct Items {
    tools: BTreeMap<String, Value>,
    /// Messages of which pieces have come; their whole is known already.
    said: BTreeSet<String>,
}

impl Items {
    /// What an item that began or ended means.
    pub(super) fn heard(&mut self, item: &Value, ended: bool) -> Vec<Event> {
        let id = text(item, "/id").to_owned();
        if text(item, "/type") == "agentMessage" {
            let new = ended && !self.said.contains(&id);
            return new.then(|| Event::Said(text(item, "/text").to_owned())).into_iter().collect();
        }
        let Some(tool) = tool(item) else { return Vec::new() };
        if ended {
            self.tools.remove(&id);
            // Some kinds have no status: they cannot fail.
            let ok = item.get("status").is_none_or(|status| status == "completed");
            let changes = if ok { changes(item) } else { Vec::new() };
            let ended = Event::ToolEnded { id, ok };
            return changes.into_iter().map(Event::Changed).chain([ended]).collect();
        }
        self.tools.insert(id.clone(), item.clone());
        vec![Event::ToolStarted { id, tool, about: brief(&about(item)) }]
    }

    /// A piece of this message has come.
    pub(super) fn said(&mut self, id: &str) {
        self.said.insert(id.to_owned());
    }

    /// The use of a tool by its id.
    pub(super) fn tool(&self, id: &str) -> Option<&Value> {
        self.tools.get(id)
    }

    /// The use of a server's tool that is given this.
    pub(super) fn tool_of(&self, server: &str, arguments: &Value) -> Option<&Value> {
        let given = |item: &&Value| {
            text(item, "/server") == server && item.get("arguments") == Some(arguments)
        };
        self.tools.values().find(given)
    }
}

/// The tool of an item, as Codex names it; none if the item is no tool.
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

/// What the use of a tool is about.
pub(super) fn about(item: &Value) -> String {
    match text(item, "/type") {
        // The command without the shell around it, where Codex has it.
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
        _ => brief_input(item.get("arguments").unwrap_or(&Value::Null)),
    }
}

/// The files an item changes.
fn changes(item: &Value) -> Vec<FileChange> {
    let changes = item.get("changes").and_then(Value::as_array);
    let change = |change: &Value| {
        let diff = text(change, "/diff");
        // Of a file that comes or goes, all of it stands in place of a diff.
        let parts = match text(change, "/kind/type") {
            "add" => vec![Part { before: String::new(), after: diff.to_owned() }],
            "delete" => vec![Part { before: diff.to_owned(), after: String::new() }],
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

/// What an item would do, for somebody who is asked whether it may.
pub(super) fn input(item: &Value) -> Value {
    match text(item, "/type") {
        "fileChange" => json!({ "changes": item.get("changes") }),
        "commandExecution" => json!({ "command": item.get("command"), "cwd": item.get("cwd") }),
        _ => item.get("arguments").cloned().unwrap_or_default(),
    }
}

/// The text of a user's message.
pub(super) fn user_text(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array);
    parts.into_iter().flatten().map(|part| text(part, "/text")).collect()
}

/// The mark by which a text of ours is known again.
pub(super) fn client_id(note: Note) -> String {
    format!("brigade-{}", note.0)
}

/// Which of our texts a user's message is, if it is one.
pub(super) fn note(item: &Value) -> Option<Note> {
    let number = text(item, "/clientId").strip_prefix("brigade-")?;
    number.parse().ok().map(Note)
}
