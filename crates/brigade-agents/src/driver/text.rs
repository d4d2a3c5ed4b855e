//! Helpers to shorten texts and to read JSON values.

use serde_json::Value;

/// Longest line, in characters.
const WIDTH: usize = 160;

/// Shortens a text to one line.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > WIDTH {
            let mut short: String = line.chars().take(WIDTH - 1).collect();
            short.push('…');
            return short;
        }
    }
    line
}

/// Shortens a tool's input to one line: a string as it is, anything else as JSON.
pub(super) fn input_line(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => one_line(&other.to_string()),
    }
}

/// The string at `pointer`, or an empty one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at `pointer`, or zero.
pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}
