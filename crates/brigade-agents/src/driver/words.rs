//! What an agent is about, in a line.

use serde_json::Value;

/// More than this does not fit on a line.
const WIDTH: usize = 160;

/// The text as one short line.
pub(super) fn brief(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.chars().count() > WIDTH {
            let mut short: String = words.chars().take(WIDTH - 1).collect();
            short.push('…');
            return short;
        }
    }
    words
}

/// What a tool is given, in a line: a text as it stands, anything else as JSON.
pub(super) fn brief_input(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => brief(text),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => brief(&other.to_string()),
    }
}

/// The text at `pointer`, or nothing.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at `pointer`, or zero.
pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}
