//! An agent's permission requests, and the answers that each request offers as options.

use serde_json::{Value, json};

use super::super::text::{one_line, text};
use super::super::{AgentAsk, AskId};
use super::calls::ToolCalls;

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
pub(super) fn ask(id: AskId, call: &Value, calls: &ToolCalls) -> AgentAsk {
    let tool_use_id = text(call, "/toolCallId").to_owned();
    let content = content(call);
    // To leave plan mode, an agent asks for permission to switch its mode. The request contains the plan.
    let plan = text(call, "/kind") == "switch_mode" && !content.is_empty();
    AgentAsk {
        id,
        tool: calls.tool(&tool_use_id),
        tool_use_id,
        description: one_line(text(call, "/title")),
        input: match call.get("rawInput") {
            Some(input) if !input.is_null() => input.clone(),
            _ => json!({ "title": call.get("title"), "content": content }),
        },
        plan: plan.then_some(content),
    }
}

fn content(call: &Value) -> String {
    let parts = call.get("content").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().map(|part| match text(part, "/type") {
        "diff" => format!("{}\n{}", text(part, "/path"), text(part, "/newText")),
        _ => text(part, "/content/text").to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
