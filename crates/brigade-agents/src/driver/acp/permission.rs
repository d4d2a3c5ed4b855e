//! Permission requests of an agent, and the options it offers as answers.

use serde_json::{Value, json};

use super::super::text::{one_line, text};
use super::super::{AgentAsk, AskId};
use super::calls::ToolCalls;

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct AcpPermission {
    /// The id for the response.
    pub(super) request: Value,
    options: Vec<Value>,
}

impl AcpPermission {
    pub(super) fn new(request: Value, params: &Value) -> Self {
        let options = params.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
        Self { request, options }
    }

    /// Allows the call once. If the agent offers no such option, the request is cancelled rather than
    /// allowed for longer.
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

/// The response to a request that is no longer wanted.
pub(super) fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

/// Builds the permission request for a call.
pub(super) fn ask(id: AskId, call: &Value, calls: &ToolCalls) -> AgentAsk {
    let tool_use_id = text(call, "/toolCallId").to_owned();
    let content = content(call);
    // Leaving plan mode is a mode switch, and its content is the plan.
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
