//! Anthropic's Messages API, as used by Claude Code.

use serde_json::{Value, json};

use super::{INPUT_TOKENS, OUTPUT_TOKENS, ResponseBody, WireRequest};
use super::{answer_text, chunks, event, is_set, items, plain_text, set, text};
use crate::conversation::{Conversation, InputEvent, ModelAnswer, Tool, ToolResult};

/// The text that Claude Code inserts between a tool result and a message that the user sent while the tool ran.
const USER_MESSAGE_MARKER: &str =
    "<system-reminder>\nThe user sent a new message while you were working:\n";

/// The body of a request `POST …/messages`.
#[derive(Debug)]
pub struct Messages(pub Value);

impl WireRequest for Messages {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        for message in items(&self.0, "messages").filter(|message| text(message, "role") == "user")
        {
            if let Some(content) = message.get("content").and_then(Value::as_str) {
                events.push(InputEvent::UserText(content.to_owned()));
            }
            for block in items(message, "content") {
                match text(block, "type") {
                    "text" => events.push(InputEvent::UserText(text(block, "text").to_owned())),
                    "tool_result" => {
                        let text = block.get("content").map(plain_text).unwrap_or_default();
                        let (result, message) = match text.split_once(USER_MESSAGE_MARKER) {
                            Some((result, message)) => {
                                (result.to_owned(), Some(message.to_owned()))
                            }
                            None => (text, None),
                        };
                        let failed = is_set(block, "is_error");
                        events.push(InputEvent::ToolResult(ToolResult { text: result, failed }));
                        events.extend(message.map(InputEvent::UserText));
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

    fn write(&self, answer: &ModelAnswer, id: &str) -> ResponseBody {
        let block = match answer {
            ModelAnswer::Call { tool, args, .. } => {
                json!({ "type": "tool_use", "id": format!("toolu_{id}"), "name": tool, "input": args })
            }
            _ => json!({ "type": "text", "text": answer_text(answer) }),
        };
        let end = if answer_text(answer).is_some() { "end_turn" } else { "tool_use" };
        let message = |content: Value, end: Option<&str>| {
            json!({
                "id": format!("msg_{id}"), "type": "message", "role": "assistant",
                "model": text(&self.0, "model"), "content": content,
                "stop_reason": end, "stop_sequence": null,
                "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS },
            })
        };
        if !is_set(&self.0, "stream") {
            return ResponseBody::Json(message(json!([block]), Some(end)));
        }
        let mut events =
            vec![event("message_start", json!({ "message": message(json!([]), None) }))];
        let mut empty = block;
        let deltas: Vec<_> = match answer {
            ModelAnswer::Call { args, .. } => {
                set(&mut empty, "input", json!({}));
                vec![json!({ "type": "input_json_delta", "partial_json": args.to_string() })]
            }
            _ => {
                set(&mut empty, "text", json!(""));
                let texts = chunks(answer_text(answer).unwrap_or_default()).into_iter();
                texts.map(|text| json!({ "type": "text_delta", "text": text })).collect()
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
        ResponseBody::Stream(events)
    }
}
