//! Helpers to shorten texts and to read JSON values.

use serde_json::{Map, Value};

/// Maximum length of a shortened line, in characters.
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

/// Shortens a tool's input to one line. A string is used without quotes; any other value is printed as JSON.
pub(super) fn input_line(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => one_line(&other.to_string()),
    }
}

/// Returns the string at the JSON pointer, or an empty string if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the fields of an object without the named ones and without null fields; null if no field is left.
pub(super) fn other_fields(object: &Value, without: &[&str]) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let fields =
        fields.filter(|(name, value)| !value.is_null() && !without.contains(&name.as_str()));
    let fields: Map<String, Value> =
        fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    if fields.is_empty() { Value::Null } else { Value::Object(fields) }
}

/// Returns the number at the JSON pointer, or zero if there is none.
pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}
