//! `OpenAI`'s Responses, as Codex speaks it.

use serde_json::{Value, json};

use super::{Body, INPUT_TOKENS, OUTPUT_TOKENS, Request, ServerEvent};
use super::{is_set, items, pieces, plain_text, text, words};
use crate::conversation::{Answer, Conversation, Event, Returned, Tool};

/// `POST …/responses`.
#[derive(Debug)]
pub struct Responses(pub Value);

/// A tool as it is offered: its name alone does not say how to call it.
struct Offer<'a> {
    namespace: Option<&'a str>,
    name: &'a str,
    kind: &'a str,
    deferred: bool,
}

impl Offer<'_> {
    fn full_name(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

impl Responses {
    fn offers(&self) -> Vec<Offer<'_>> {
        // Newer models are told of tools by an item of the conversation, and of more by later ones.
        let announced = items(&self.0, "input")
            .filter(|item| text(item, "type") == "additional_tools")
            .flat_map(|item| items(item, "tools"));
        let mut offers = Vec::new();
        for tool in items(&self.0, "tools").chain(announced) {
            let offer = |namespace, of| Offer {
                namespace,
                // Tools of the vendor's own have a type and no name.
                name: Some(text(of, "name"))
                    .filter(|name| !name.is_empty())
                    .unwrap_or(text(of, "type")),
                kind: text(of, "type"),
                deferred: is_set(tool, "defer_loading") || is_set(of, "defer_loading"),
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

    /// The one item of the answer's output.
    fn item(&self, answer: &Answer, id: &str) -> Value {
        let Answer::Call { tool, args, .. } = answer else {
            let content = json!([{
                "type": "output_text", "text": words(answer), "annotations": [],
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
            // A custom tool takes plain text.
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

impl Request for Responses {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        if let Some(input) = self.0.get("input").and_then(Value::as_str) {
            events.push(Event::Said(input.to_owned()));
        }
        for item in items(&self.0, "input") {
            let kind = text(item, "type");
            if kind.ends_with("_output") {
                let output = item.get("output").map(plain_text).unwrap_or_default();
                events.push(Event::Returned(Returned { text: output, failed: false }));
            } else if text(item, "role") == "user" {
                events.push(Event::Said(item.get("content").map(plain_text).unwrap_or_default()));
            }
        }
        let offers = self.offers();
        let tools = offers
            .iter()
            .map(|offer| Tool { name: offer.full_name(), deferred: offer.deferred })
            .collect();
        Conversation { events, tools, schema: self.0.pointer("/text/format/schema").cloned() }
    }

    fn write(&self, answer: &Answer, id: &str) -> Body {
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
        let whole = response("completed", &[&item], &usage);
        if !is_set(&self.0, "stream") {
            return Body::Json(whole);
        }
        let begun = response("in_progress", &[], &Value::Null);
        let mut events = vec![event("response.created", json!({ "response": begun }))];
        if let Some(words) = words(answer) {
            let mut empty = item.clone();
            if let Some(fields) = empty.as_object_mut() {
                fields.insert("content".into(), json!([]));
                fields.insert("status".into(), "in_progress".into());
            }
            let added = json!({ "output_index": 0, "item": empty });
            events.push(event("response.output_item.added", added));
            events.extend(pieces(words).into_iter().map(|piece| {
                let delta = json!({
                    "item_id": format!("msg_{id}"), "output_index": 0, "content_index": 0, "delta": piece,
                });
                event("response.output_text.delta", delta)
            }));
        }
        events.push(event("response.output_item.done", json!({ "output_index": 0, "item": item })));
        events.push(event("response.completed", json!({ "response": whole })));
        Body::Stream(events)
    }
}

/// An event that says its name twice, as this format has it.
fn event(name: &'static str, mut data: Value) -> ServerEvent {
    if let Some(fields) = data.as_object_mut() {
        fields.insert("type".into(), name.into());
    }
    ServerEvent::named(name, &data)
}
