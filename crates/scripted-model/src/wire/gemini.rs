//! Google's generateContent API, as used by Gemini CLI.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    INPUT_TOKENS, OUTPUT_TOKENS, ResponseBody, ServerEvent, WireRequest, answer_text, chunks,
    items, text,
};
use crate::conversation::{Conversation, InputEvent, ModelAnswer, Tool, ToolResult};

/// A request `POST …:generateContent` or `POST …:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    /// The body of the request.
    pub body: Value,
    /// Whether to stream the answer. In this format, the path of the request determines that.
    pub stream: bool,
}

impl WireRequest for Gemini {
    fn conversation(&self) -> Conversation {
        let mut events = Vec::new();
        // A resumed session repeats some tool results with the same ids. The repeated results are skipped.
        let mut seen = HashSet::new();
        for content in items(&self.body, "contents") {
            let from_user = content.get("role").is_none_or(|role| role == "user");
            for part in items(content, "parts") {
                if let Some(response) = part.pointer("/functionResponse/response") {
                    let id = part.pointer("/functionResponse/id").and_then(Value::as_str);
                    if id.is_none_or(|id| seen.insert(id)) {
                        events.push(InputEvent::ToolResult(tool_result(response)));
                    }
                } else if let Some(text) = part.get("text").and_then(Value::as_str)
                    && from_user
                {
                    events.push(InputEvent::UserText(text.to_owned()));
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

    fn write(&self, answer: &ModelAnswer, id: &str) -> ResponseBody {
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
            ModelAnswer::Call { tool, args, .. } => {
                let call = json!({ "id": format!("call_{id}"), "name": tool, "args": args });
                vec![json!({ "functionCall": call })]
            }
            _ if self.stream => {
                let texts = chunks(answer_text(answer).unwrap_or_default()).into_iter();
                texts.map(|text| json!({ "text": text })).collect()
            }
            _ => vec![json!({ "text": answer_text(answer) })],
        };
        let last = parts.len().saturating_sub(1);
        let mut chunks =
            parts.into_iter().enumerate().map(|(index, part)| chunk(part, index == last));
        if self.stream {
            ResponseBody::Stream(chunks.map(|chunk| ServerEvent::plain(&chunk)).collect())
        } else {
            ResponseBody::Json(chunks.next().unwrap_or_default())
        }
    }
}

/// Extracts the text of a tool result from `output`, or from `error` if the tool failed.
fn tool_result(response: &Value) -> ToolResult {
    let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (response.get("error"), response.get("output")) {
        (Some(error), _) => ToolResult { text: as_text(error), failed: true },
        (None, Some(output)) => ToolResult { text: as_text(output), failed: false },
        (None, None) => ToolResult { text: response.to_string(), failed: false },
    }
}
