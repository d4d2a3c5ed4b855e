//! `OpenAI`'s Chat Completions API, as used by opencode and many other agent programs.

use serde_json::{Value, json};

use super::{INPUT_TOKENS, OUTPUT_TOKENS, ResponseBody, ServerEvent, WireRequest};
use super::{answer_text, chunks, is_set, items, plain_text, text};
use crate::conversation::{Conversation, InputEvent, ModelAnswer, Tool, ToolResult};

/// The body of a request `POST …/chat/completions`.
#[derive(Debug)]
pub struct Chat(pub Value);

impl WireRequest for Chat {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        for message in items(&self.0, "messages") {
            let content = message.get("content").map(plain_text).unwrap_or_default();
            match text(message, "role") {
                "user" => events.push(InputEvent::UserText(content)),
                "tool" => {
                    events
                        .push(InputEvent::ToolResult(ToolResult { text: content, failed: false }));
                }
                _ => {}
            }
        }
        let functions = items(&self.0, "tools").filter_map(|tool| tool.get("function"));
        let tools = functions
            .map(|function| Tool { name: text(function, "name").to_owned(), deferred: false })
            .collect();
        let schema = self.0.pointer("/response_format/json_schema/schema").cloned();
        Conversation { events, tools, schema }
    }

    fn write(&self, answer: &ModelAnswer, id: &str) -> ResponseBody {
        let usage = json!({
            "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        });
        let completion = |object: &str, choices: Value, usage: &Value| {
            json!({
                "id": format!("chatcmpl_{id}"), "object": object, "created": 0,
                "model": text(&self.0, "model"), "choices": choices, "usage": usage,
            })
        };
        let calls = match answer {
            ModelAnswer::Call { tool, args, .. } => Some(json!([{
                "index": 0, "id": format!("call_{id}"), "type": "function",
                "function": { "name": tool, "arguments": args.to_string() },
            }])),
            _ => None,
        };
        let end = if calls.is_some() { "tool_calls" } else { "stop" };
        if !is_set(&self.0, "stream") {
            let mut message = json!({ "role": "assistant", "content": answer_text(answer) });
            if let (Some(fields), Some(calls)) = (message.as_object_mut(), calls) {
                fields.insert("tool_calls".into(), calls);
            }
            let choices = json!([{ "index": 0, "finish_reason": end, "message": message }]);
            return ResponseBody::Json(completion("chat.completion", choices, &usage));
        }
        let chunk = |delta: Value, end: Option<&str>| {
            let choices = json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
            ServerEvent::plain(&completion("chat.completion.chunk", choices, &Value::Null))
        };
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        if let Some(text) = answer_text(answer) {
            let deltas = chunks(text).into_iter();
            events.extend(deltas.map(|part| chunk(json!({ "content": part }), None)));
        }
        if let Some(calls) = calls {
            events.push(chunk(json!({ "tool_calls": calls }), None));
        }
        events.push(chunk(json!({}), Some(end)));
        events.push(ServerEvent::plain(&completion("chat.completion.chunk", json!([]), &usage)));
        events.push(ServerEvent { name: None, data: "[DONE]".into() });
        ResponseBody::Stream(events)
    }
}
