//! The uses of tools in a turn, pieced together from what an agent tells of them bit by bit.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::Event;
use super::super::change::{FileChange, Part};
use super::super::words::{brief, text};

/// The uses of tools in the turn that is on.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<String, Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The first title, which is often the tool's name, where later ones say what it does.
    name: String,
    title: String,
    kind: String,
    /// What it does to files, as it was last told.
    changes: Vec<FileChange>,
    started: bool,
}

impl Calls {
    /// What an update of a call means. A call that only waits for its turn, often with no input yet, is
    /// not begun.
    pub(super) fn heard(&mut self, update: &Value) -> Vec<Event> {
        let id = self.learn(update);
        let ended = match text(update, "/status") {
            "pending" => return Vec::new(),
            "completed" => Some(true),
            "failed" => Some(false),
            _ => None,
        };
        let mut events: Vec<_> = self.start(&id).into_iter().collect();
        if let Some(ok) = ended
            && let Some(call) = self.open.remove(&id)
        {
            if ok {
                events.extend(call.changes.into_iter().map(Event::Changed));
            }
            events.push(Event::ToolEnded { id, ok });
        }
        events
    }

    /// Leave is asked for a call: that begins it.
    pub(super) fn asked(&mut self, call: &Value) -> Option<Event> {
        let id = self.learn(call);
        self.start(&id)
    }

    /// The turn is over, and with it what was not told the end of.
    pub(super) fn end(&mut self) -> Vec<Event> {
        let open = std::mem::take(&mut self.open).into_iter();
        let begun = open.filter(|(_, call)| call.started);
        begun.map(|(id, _)| Event::ToolEnded { id, ok: false }).collect()
    }

    /// The name under which a call was first told of.
    pub(super) fn name(&self, id: &str) -> &str {
        self.open.get(id).map(|call| call.name.as_str()).unwrap_or_default()
    }

    /// The tool of a call.
    pub(super) fn tool(&self, id: &str) -> String {
        self.open.get(id).map(Call::tool).unwrap_or_default()
    }

    fn learn(&mut self, update: &Value) -> String {
        let id = text(update, "/toolCallId").to_owned();
        let call = self.open.entry(id.clone()).or_default();
        let (title, kind) = (text(update, "/title"), text(update, "/kind"));
        if !title.is_empty() {
            title.clone_into(&mut call.title);
            if call.name.is_empty() {
                title.clone_into(&mut call.name);
            }
        }
        if !kind.is_empty() {
            kind.clone_into(&mut call.kind);
        }
        let changes = changes(update);
        if !changes.is_empty() {
            call.changes = changes;
        }
        id
    }

    fn start(&mut self, id: &str) -> Option<Event> {
        let call = self.open.get_mut(id).filter(|call| !call.started)?;
        call.started = true;
        let about = if call.title == call.name && call.tool() == call.name {
            String::new()
        } else {
            brief(&call.title)
        };
        Some(Event::ToolStarted { id: id.to_owned(), tool: call.tool(), about })
    }
}

impl Call {
    /// The protocol has kinds of tools, not names. What is of no kind has its name for a title.
    fn tool(&self) -> String {
        match self.kind.as_str() {
            "" | "other" => brief(&self.name),
            kind => kind.to_owned(),
        }
    }
}

/// What an update shows of files.
fn changes(update: &Value) -> Vec<FileChange> {
    let parts = update.get("content").and_then(Value::as_array).into_iter().flatten();
    let diffs = parts.filter(|part| text(part, "/type") == "diff");
    let change = |diff: &Value| {
        let (before, after) =
            (text(diff, "/oldText").to_owned(), text(diff, "/newText").to_owned());
        FileChange { path: text(diff, "/path").to_owned(), parts: vec![Part { before, after }] }
    };
    diffs.map(change).collect()
}
