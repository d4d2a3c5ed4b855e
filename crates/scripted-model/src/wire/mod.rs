//! The vendors' wire formats. Each file converts a request to a [`Conversation`], and a [`ModelAnswer`] to a
//! response in the same format. The response is streamed if the request asks for that.

pub mod chat;
pub mod gemini;
pub mod messages;
pub mod responses;

use serde_json::Value;

use crate::conversation::{Conversation, ModelAnswer};

/// The token usage that every response reports. The numbers are small, so that no agent program considers its
/// conversation too long.
const INPUT_TOKENS: u32 = 1000;
const OUTPUT_TOKENS: u32 = 10;

/// A request to the model, in one wire format.
pub trait WireRequest {
    /// Converts the request to a conversation.
    fn conversation(&self) -> Conversation;

    /// Converts the answer to a response. The ids in the response are derived from `id`, which is unique.
    fn write(&self, answer: &ModelAnswer, id: &str) -> ResponseBody;
}

/// The body of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseBody {
    /// One JSON document.
    Json(Value),
    /// Server-sent events.
    Stream(Vec<ServerEvent>),
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerEvent {
    name: Option<&'static str>,
    data: String,
}

impl ServerEvent {
    fn plain(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// Returns the text of the event. The data contains no line breaks, because it is JSON or one word.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

/// Creates an event whose name is in the `event:` line and in the data, as two of the formats require.
fn event(name: &'static str, mut data: Value) -> ServerEvent {
    set(&mut data, "type", name.into());
    ServerEvent { name: Some(name), data: data.to_string() }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.into(), value);
    }
}

/// Returns the text of an answer; `None` for a tool call.
fn answer_text(answer: &ModelAnswer) -> Option<&str> {
    match answer {
        ModelAnswer::Say(text) | ModelAnswer::Aside(text) | ModelAnswer::ScriptError(text) => {
            Some(text)
        }
        ModelAnswer::Call { .. } => None,
    }
}

/// Splits a text into the parts to stream. Returns at least one part.
fn chunks(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![""] } else { text.split_inclusive(' ').collect() }
}

/// Returns the text of a message's content, which may be a string, a list of parts, or one part.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().map(plain_text).collect();
            texts.join("\n")
        }
        Value::Object(part) => {
            let inner = part.get("text").or_else(|| part.get("content"));
            inner.map(plain_text).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Returns the elements of the array in a field; no elements if the field is not an array.
fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the string in a field; an empty string if the field is not a string.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field exists and is true.
fn is_set(object: &Value, field: &str) -> bool {
    object.get(field).and_then(Value::as_bool).unwrap_or_default()
}
