//! Google's generateContent, as Gemini CLI speaks it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Body, INPUT_TOKENS, OUTPUT_TOKENS, Request, ServerEvent, items, pieces, text, words};
use crate::conversation::{Answer, Conversation, Event, Returned, Tool};

/// `POST …:generateContent` or `POST …:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    /// What was sent.
    pub body: Value,
    /// Whether the answer shall be streamed; here the path says so.
    pub stream: bool,
}

impl Request for Gemini {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        // A session that was resumed tells some results again, under the same id.
        let mut told = HashSet::new();
        for content in items(&self.body, "contents") {
            let of_user = content.get("role").is_none_or(|role| role == "user");
            for part in items(content, "parts") {
                if let Some(response) = part.pointer("/functionResponse/response") {
                    let id = part.pointer("/functionResponse/id").and_then(Value::as_str);
                    if id.is_none_or(|id| told.insert(id)) {
                        events.push(Event::Returned(returned(response)));
                    }
                } else if let Some(words) = part.get("text").and_then(Value::as_str)
                    && of_user
                {
                    events.push(Event::Said(words.to_owned()));
                }
            }
        }
        let declared =
            items(&self.body, "tools").flat_map(|tool| items(tool, "functionDeclarations"));
        let tools = declared
            .map(|function| Tool { name: text(function, "name").to_owned(), deferred: false })
            .collect();
        let config = self.body.get("generationConfig");
        let schema = config.and_then(|config| {
            config.get("responseJsonSchema").or_else(|| config.get("responseSchema"))
        });
        Conversation { events, tools, schema: schema.cloned() }
    }

    fn write(&self, answer: &Answer, id: &str) -> Body {
        let chunk = |part: Value, last: bool| {
            json!({
                "candidates": [{
                    "index": 0, "content": { "role": "model", "parts": [part] },
                    "finishReason": last.then_some("STOP"),
                }],
                "usageMetadata": {
                    "promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
                    "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
                },
                "modelVersion": "scripted", "responseId": id,
            })
        };
        let parts: Vec<_> = match answer {
            Answer::Call { tool, args, .. } => {
                let call = json!({ "id": format!("call_{id}"), "name": tool, "args": args });
                vec![json!({ "functionCall": call })]
            }
            _ if self.stream => {
                let pieces = pieces(words(answer).unwrap_or_default()).into_iter();
                pieces.map(|piece| json!({ "text": piece })).collect()
            }
            _ => vec![json!({ "text": words(answer) })],
        };
        let last = parts.len().saturating_sub(1);
        let mut chunks =
            parts.into_iter().enumerate().map(|(place, part)| chunk(part, place == last));
        if self.stream {
            Body::Stream(chunks.map(|chunk| ServerEvent::plain(&chunk)).collect())
        } else {
            Body::Json(chunks.next().unwrap_or_default())
        }
    }
}

/// A result is wrapped: its text is under `output`, or under `error` if the tool failed.
fn returned(response: &Value) -> Returned {
    let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (response.get("error"), response.get("output")) {
        (Some(error), _) => Returned { text: as_text(error), failed: true },
        (None, Some(output)) => Returned { text: as_text(output), failed: false },
        (None, None) => Returned { text: response.to_string(), failed: false },
    }
}
