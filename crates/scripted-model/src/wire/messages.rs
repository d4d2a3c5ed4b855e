//! Anthropic's Messages, as Claude Code speaks it.

use serde_json::{Value, json};

use super::{Body, INPUT_TOKENS, OUTPUT_TOKENS, Request, ServerEvent};
use super::{is_set, items, pieces, plain_text, text, words};
use crate::conversation::{Answer, Conversation, Event, Returned, Tool};

/// What Claude Code puts behind a tool's result when its user said something meanwhile.
const MEANWHILE: &str = "<system-reminder>\nThe user sent a new message while you were working:\n";

/// `POST …/messages`.
#[derive(Debug)]
pub struct Messages(pub Value);

impl Request for Messages {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        for message in items(&self.0, "messages").filter(|message| text(message, "role") == "user")
        {
            if let Some(words) = message.get("content").and_then(Value::as_str) {
                events.push(Event::Said(words.to_owned()));
            }
            for block in items(message, "content") {
                match text(block, "type") {
                    "text" => events.push(Event::Said(text(block, "text").to_owned())),
                    "tool_result" => {
                        let text = block.get("content").map(plain_text).unwrap_or_default();
                        let (gave, said) = match text.split_once(MEANWHILE) {
                            Some((gave, said)) => (gave.to_owned(), Some(said.to_owned())),
                            None => (text, None),
                        };
                        let failed = is_set(block, "is_error");
                        events.push(Event::Returned(Returned { text: gave, failed }));
                        events.extend(said.map(Event::Said));
                    }
                    _ => {}
                }
            }
        }
        let tools = items(&self.0, "tools")
            .map(|tool| Tool {
                name: text(tool, "name").to_owned(),
                deferred: is_set(tool, "defer_loading"),
            })
            .collect();
        Conversation {
            events,
            tools,
            schema: self.0.pointer("/output_config/format/schema").cloned(),
        }
    }

    fn write(&self, answer: &Answer, id: &str) -> Body {
        let block = match answer {
            Answer::Call { tool, args, .. } => {
                json!({ "type": "tool_use", "id": format!("toolu_{id}"), "name": tool, "input": args })
            }
            _ => json!({ "type": "text", "text": words(answer) }),
        };
        let end = if words(answer).is_some() { "end_turn" } else { "tool_use" };
        let message = |content: Value, end: Option<&str>| {
            json!({
                "id": format!("msg_{id}"), "type": "message", "role": "assistant",
                "model": text(&self.0, "model"), "content": content,
                "stop_reason": end, "stop_sequence": null,
                "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS },
            })
        };
        if !is_set(&self.0, "stream") {
            return Body::Json(message(json!([block]), Some(end)));
        }
        let mut events =
            vec![event("message_start", json!({ "message": message(json!([]), None) }))];
        let mut empty = block;
        let deltas: Vec<_> = match answer {
            Answer::Call { args, .. } => {
                set(&mut empty, "input", json!({}));
                vec![json!({ "type": "input_json_delta", "partial_json": args.to_string() })]
            }
            _ => {
                set(&mut empty, "text", json!(""));
                let pieces = pieces(words(answer).unwrap_or_default()).into_iter();
                pieces.map(|piece| json!({ "type": "text_delta", "text": piece })).collect()
            }
        };
        events.push(event("content_block_start", json!({ "index": 0, "content_block": empty })));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| event("content_block_delta", json!({ "index": 0, "delta": delta }))),
        );
        events.push(event("content_block_stop", json!({ "index": 0 })));
        let ending = json!({ "stop_reason": end, "stop_sequence": null });
        let usage = json!({ "output_tokens": OUTPUT_TOKENS });
        events.push(event("message_delta", json!({ "delta": ending, "usage": usage })));
        events.push(event("message_stop", json!({})));
        Body::Stream(events)
    }
}

/// An event that says its name twice, as this format has it.
fn event(name: &'static str, mut data: Value) -> ServerEvent {
    set(&mut data, "type", name.into());
    ServerEvent::named(name, &data)
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.into(), value);
    }
}
