//! The vendors' wire formats. Each file reads a request into a [`Conversation`] and writes an
//! [`Answer`] back in the same format, streamed or at once, as the request asks.

pub mod chat;
pub mod gemini;
pub mod messages;
pub mod responses;

use serde_json::Value;

use crate::conversation::{Answer, Conversation};

/// What a request costs, as far as anybody is told. Small and always the same, so that no program
/// thinks its conversation too long.
const INPUT_TOKENS: u32 = 1000;
const OUTPUT_TOKENS: u32 = 10;

/// A request for an answer of the model, in one wire format.
pub trait Request {
    /// What it says.
    fn conversation(&self) -> Conversation;

    /// The answer on the wire. What needs a name of its own there is named after `id`, which is used once.
    fn write(&self, answer: &Answer, id: &str) -> Body;
}

/// What is sent back.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One document.
    Json(Value),
    /// Server-sent events, one by one.
    Stream(Vec<ServerEvent>),
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerEvent {
    name: Option<&'static str>,
    data: String,
}

impl ServerEvent {
    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }

    fn plain(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// As it goes over the wire. The data is JSON or one word, and so has no line breaks.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

/// What an answer says in words; a call says nothing.
fn words(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Say(text) | Answer::Aside(text) | Answer::Stray(text) => Some(text),
        Answer::Call { .. } => None,
    }
}

/// The parts in which a text is streamed; at least one.
fn pieces(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![""] } else { text.split_inclusive(' ').collect() }
}

/// The text of a message's content, which is a string, a list of parts, or one part.
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

/// The value in a list of JSON objects that a field holds, if it is such a list.
fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// The text that a field holds; empty if it is none.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is there and true.
fn is_set(object: &Value, field: &str) -> bool {
    object.get(field).and_then(Value::as_bool).unwrap_or_default()
}
