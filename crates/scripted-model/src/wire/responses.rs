//! `OpenAI`'s Responses API, as used by Codex.

use serde_json::{Value, json};

use super::{INPUT_TOKENS, OUTPUT_TOKENS, ResponseBody, WireRequest};
use super::{answer_text, chunks, event, is_set, items, plain_text, set, text};
use crate::conversation::{Conversation, InputEvent, ModelAnswer, Tool, ToolResult};

/// The body of a request `POST …/responses`.
#[derive(Debug)]
pub struct Responses(pub Value);

/// A tool that the agent program offers. The tool's kind determines how the model calls it.
struct OfferedTool<'a> {
    namespace: Option<&'a str>,
    name: &'a str,
    kind: &'a str,
    deferred: bool,
}

impl OfferedTool<'_> {
    fn full_name(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

impl Responses {
    fn offers(&self) -> Vec<OfferedTool<'_>> {
        // For newer models, Codex announces tools in items of the conversation.
        let announced = items(&self.0, "input")
            .filter(|item| text(item, "type") == "additional_tools")
            .flat_map(|item| items(item, "tools"));
        let mut offers = Vec::new();
        for tool in items(&self.0, "tools").chain(announced) {
            let offer = |namespace, tool_or_inner| OfferedTool {
                namespace,
                // Built-in tools have a type and no name.
                name: Some(text(tool_or_inner, "name"))
                    .filter(|name| !name.is_empty())
                    .unwrap_or(text(tool_or_inner, "type")),
                kind: text(tool_or_inner, "type"),
                deferred: is_set(tool, "defer_loading") || is_set(tool_or_inner, "defer_loading"),
            };
            if text(tool, "type") == "namespace" {
                let namespace = text(tool, "name");
                offers.extend(items(tool, "tools").map(|inner| offer(Some(namespace), inner)));
            } else {
                offers.push(offer(None, tool));
            }
        }
        offers
    }

    /// Returns the only item in the response's output.
    fn item(&self, answer: &ModelAnswer, id: &str) -> Value {
        let ModelAnswer::Call { tool, args, .. } = answer else {
            let content = json!([{
                "type": "output_text", "text": answer_text(answer), "annotations": [],
            }]);
            return json!({
                "type": "message", "id": format!("msg_{id}"), "role": "assistant",
                "status": "completed", "content": content,
            });
        };
        let offers = self.offers();
        let offer = offers.iter().find(|offer| offer.full_name() == *tool);
        let name = offer.map_or(tool.as_str(), |offer| offer.name);
        let mut item = if offer.is_some_and(|offer| offer.kind == "custom") {
            // A custom tool takes plain text instead of JSON arguments.
            let input = args.as_str().map_or_else(|| args.to_string(), str::to_owned);
            json!({ "type": "custom_tool_call", "id": format!("ctc_{id}"), "input": input })
        } else {
            json!({ "type": "function_call", "id": format!("fc_{id}"), "arguments": args.to_string() })
        };
        if let Some(fields) = item.as_object_mut() {
            fields.insert("call_id".into(), format!("call_{id}").into());
            fields.insert("name".into(), name.into());
            if let Some(namespace) = offer.and_then(|offer| offer.namespace) {
                fields.insert("namespace".into(), namespace.into());
            }
        }
        item
    }
}

impl WireRequest for Responses {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        if let Some(input) = self.0.get("input").and_then(Value::as_str) {
            events.push(InputEvent::UserText(input.to_owned()));
        }
        for item in items(&self.0, "input") {
            let kind = text(item, "type");
            if kind.ends_with("_output") {
                let output = item.get("output").map(plain_text).unwrap_or_default();
                events.push(InputEvent::ToolResult(ToolResult { text: output, failed: false }));
            } else if text(item, "role") == "user" {
                events.push(InputEvent::UserText(
                    item.get("content").map(plain_text).unwrap_or_default(),
                ));
            }
        }
        let offers = self.offers();
        let tools = offers
            .iter()
            .map(|offer| Tool { name: offer.full_name(), deferred: offer.deferred })
            .collect();
        Conversation { events, tools, schema: self.0.pointer("/text/format/schema").cloned() }
    }

    fn write(&self, answer: &ModelAnswer, id: &str) -> ResponseBody {
        let item = self.item(answer, id);
        let usage = json!({
            "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        });
        let response = |status: &str, output: &[&Value], usage: &Value| {
            json!({
                "id": format!("resp_{id}"), "object": "response", "model": text(&self.0, "model"),
                "status": status, "output": output, "usage": usage,
            })
        };
        let completed = response("completed", &[&item], &usage);
        if !is_set(&self.0, "stream") {
            return ResponseBody::Json(completed);
        }
        let created = response("in_progress", &[], &Value::Null);
        let mut events = vec![event("response.created", json!({ "response": created }))];
        if let Some(text) = answer_text(answer) {
            let mut empty = item.clone();
            set(&mut empty, "content", json!([]));
            set(&mut empty, "status", "in_progress".into());
            let added = json!({ "output_index": 0, "item": empty });
            events.push(event("response.output_item.added", added));
            events.extend(chunks(text).into_iter().map(|part| {
                let delta = json!({
                    "item_id": format!("msg_{id}"), "output_index": 0, "content_index": 0, "delta": part,
                });
                event("response.output_text.delta", delta)
            }));
        }
        events.push(event("response.output_item.done", json!({ "output_index": 0, "item": item })));
        events.push(event("response.completed", json!({ "response": completed })));
        ResponseBody::Stream(events)
    }
}
