//! Tracks the tool calls of a turn, which an agent reports in incremental updates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::AgentEvent;
use super::super::change::{ChangedPart, FileChange};
use super::super::text::{one_line, text};

/// The open tool calls of the running turn, by id.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    open: BTreeMap<String, ToolCall>,
}

#[derive(Debug, Default)]
struct ToolCall {
    /// The first title of the call, which is often the tool's name. Later titles describe what the call does.
    name: String,
    title: String,
    kind: String,
    /// The call's file changes, as last reported.
    changes: Vec<FileChange>,
    started: bool,
}

/// Returns why a call failed.
fn failure(update: &Value) -> String {
    let places =
        ["/content/0/content/text", "/rawOutput/error", "/rawOutput/message", "/rawOutput"];
    let reasons = places.map(|place| text(update, place));
    one_line(reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_default())
}

impl ToolCalls {
    /// Translates an update of a call into events. A pending call does not count as started, because its
    /// input is often still missing.
    pub(super) fn on_update(&mut self, update: &Value) -> Vec<AgentEvent> {
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
                events.extend(call.changes.into_iter().map(AgentEvent::Changed));
            }
            let why = if ok { String::new() } else { failure(update) };
            events.push(AgentEvent::ToolEnded { id, ok, why });
        }
        events
    }

    /// Handles a permission request for a call. The request counts as the start of the call.
    pub(super) fn on_permission_request(&mut self, call: &Value) -> Option<AgentEvent> {
        let id = self.learn(call);
        self.start(&id)
    }

    /// Closes the calls that are still open at the end of the turn. Reports those that had started as failed.
    pub(super) fn end(&mut self) -> Vec<AgentEvent> {
        let open = std::mem::take(&mut self.open).into_iter();
        let started_calls = open.filter(|(_, call)| call.started);
        let ended = |id| AgentEvent::ToolEnded { id, ok: false, why: String::new() };
        started_calls.map(|(id, _)| ended(id)).collect()
    }

    /// Returns whether a call has not ended.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the first title of a call.
    pub(super) fn name(&self, id: &str) -> &str {
        self.open.get(id).map(|call| call.name.as_str()).unwrap_or_default()
    }

    /// Returns the kind of a call.
    pub(super) fn kind(&self, id: &str) -> &str {
        self.open.get(id).map(|call| call.kind.as_str()).unwrap_or_default()
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

    fn start(&mut self, id: &str) -> Option<AgentEvent> {
        let call = self.open.get_mut(id).filter(|call| !call.started)?;
        call.started = true;
        let about = if call.title == call.name && call.tool() == call.name {
            String::new()
        } else {
            one_line(&call.title)
        };
        Some(AgentEvent::ToolStarted { id: id.to_owned(), tool: call.tool(), about })
    }
}

impl ToolCall {
    /// ACP does not report tool names, so this returns the kind of the call instead. If the kind is missing or
    /// `other`, returns the call's first title, which is often the tool's name. Only for the list of the agent's
    /// tool uses: a permission request names the tool by [`Quirks::tool_name`](super::quirks::Quirks).
    fn tool(&self) -> String {
        match self.kind.as_str() {
            "" | "other" => one_line(&self.name),
            kind => kind.to_owned(),
        }
    }
}

/// Extracts the file changes from an update.
fn changes(update: &Value) -> Vec<FileChange> {
    let parts = update.get("content").and_then(Value::as_array).into_iter().flatten();
    let diffs = parts.filter(|part| text(part, "/type") == "diff");
    let change = |diff: &Value| {
        let (before, after) =
            (text(diff, "/oldText").to_owned(), text(diff, "/newText").to_owned());
        FileChange {
            path: text(diff, "/path").to_owned(),
            parts: vec![ChangedPart { before, after }],
        }
    };
    diffs.map(change).collect()
}
