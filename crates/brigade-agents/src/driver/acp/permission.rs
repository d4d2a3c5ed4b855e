//! An agent's permission requests, and the answers that each request offers as options.

use serde_json::{Value, json};

use super::super::text::{one_line, other_fields, text};
use super::super::{AgentAsk, AskId};
use super::calls::ToolCalls;
use super::quirks::Quirks;

/// Maximum length of the old or the new text of a file in the preview of a change.
const MAX_PREVIEW_BYTES: usize = 100_000;

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct AcpPermission {
    /// The JSON-RPC id that the response must carry.
    pub(super) request: Value,
    options: Vec<Value>,
}

impl AcpPermission {
    pub(super) fn new(request: Value, params: &Value) -> Self {
        let options = params.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
        Self { request, options }
    }

    /// Returns the response that allows the call once. If the agent does not offer that option, the response
    /// cancels the request.
    pub(super) fn allow(&self) -> Value {
        self.select("allow_once")
    }

    pub(super) fn deny(&self) -> Value {
        self.select("reject_once")
    }

    fn select(&self, kind: &str) -> Value {
        match self.options.iter().find(|option| text(option, "/kind") == kind) {
            Some(option) => {
                let chosen = option.get("optionId");
                json!({ "outcome": { "outcome": "selected", "optionId": chosen } })
            }
            None => cancelled(),
        }
    }
}

/// Returns the response that cancels a request.
pub(super) fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

/// Converts a tool call that needs permission to a request for the lead.
pub(super) fn ask(id: AskId, call: &Value, calls: &ToolCalls, quirks: &Quirks) -> AgentAsk {
    let tool_use_id = text(call, "/toolCallId").to_owned();
    let texts = content_texts(call);
    // To leave plan mode, an agent asks for permission to switch its mode. The request contains the plan.
    let plan = text(call, "/kind") == "switch_mode" && !texts.is_empty();
    let (tool, title) = (tool(call, calls, quirks), text(call, "/title"));
    let description = one_line(title);
    let mut shown = vec!["toolCallId", "status", "rawInput"];
    if text(call, "/kind") == tool {
        shown.push("kind");
    }
    let input = match call.get("rawInput") {
        Some(input) if !input.is_null() => {
            if title == description {
                shown.push("title");
            }
            input.clone()
        }
        _ if (quirks.title_is_command)(call) => {
            shown.push("title");
            json!({ "command": title })
        }
        _ => {
            shown.extend(["title", "content"]);
            json!({ "title": title, "content": content(call) })
        }
    };
    let mut request = other_fields(call, &shown);
    if let Value::Object(fields) = &mut request {
        if fields.contains_key("content") {
            fields.insert("content".to_owned(), preview(content(call)));
        }
        fields.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty()));
        if fields.is_empty() {
            request = Value::Null;
        }
    }
    let plan = plan.then(|| texts.join("\n"));
    AgentAsk { id, tool, tool_use_id, description, input, request, plan }
}

/// Returns the name of the tool: the kind of the call, or the name that the agent's program gives the tool. A title is
/// not a name, because the model can choose it.
fn tool(call: &Value, calls: &ToolCalls, quirks: &Quirks) -> String {
    let id = text(call, "/toolCallId");
    match calls.kind(id) {
        "" | "other" => (quirks.tool_name)(call, calls.name(id))
            .map(one_line)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "other".to_owned()),
        kind => kind.to_owned(),
    }
}

/// Returns the content of a call: texts as strings, and diffs with the path, the old and the new text.
fn content(call: &Value) -> Value {
    let parts = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let part = |part: &Value| match text(part, "/type") {
        "diff" => other_fields(part, &["type"]),
        "content" => only_text(part).map_or_else(|| part.clone(), |text| json!(text)),
        _ => part.clone(),
    };
    Value::Array(parts.map(part).collect())
}

/// Shortens the content of a call whose input is known: the input determines the change, and the content only
/// previews it. A message to the lead has a limited size.
fn preview(mut content: Value) -> Value {
    let texts = content.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    for text in texts.flat_map(|part| part.values_mut()) {
        if let Value::String(string) = text
            && string.len() > MAX_PREVIEW_BYTES
        {
            let left_out = string.chars().count();
            *string = format!("[{left_out} characters left out; the input says what changes]");
        }
    }
    content
}

/// Returns the text of a part that contains nothing else.
fn only_text(part: &Value) -> Option<&str> {
    let content = part.get("content")?;
    let has_more = !other_fields(part, &["type", "content"]).is_null()
        || !other_fields(content, &["type", "text"]).is_null();
    content.get("text")?.as_str().filter(|_| !has_more)
}

fn content_texts(call: &Value) -> Vec<&str> {
    let parts = call.get("content").and_then(Value::as_array).into_iter().flatten();
    parts.map(|part| text(part, "/content/text")).filter(|text| !text.is_empty()).collect()
}
