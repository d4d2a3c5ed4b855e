//! Writes JSON values so that the text determines the value, and so that no value can look like another field.

use serde_json::Value;

use crate::text;

/// An array of scalars is written on one line up to this length, in characters.
const MAX_INLINE: usize = 160;

/// One value of a request, with the path to it.
pub(super) struct Leaf<'a> {
    /// The names of the fields that lead to the value, for example `rules[0].toolName`.
    pub(super) path: String,
    pub(super) text: LeafText<'a>,
}

/// The text of a value.
pub(super) enum LeafText<'a> {
    /// A value that fits on the line of its label.
    Inline(String),
    /// A string that is written on lines of its own.
    Block(&'a str),
}

/// Lists the values in a JSON value, in the order of their paths.
pub(super) fn leaves<'a>(path: String, value: &'a Value, found: &mut Vec<Leaf<'a>>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = field_name(name);
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                leaves(path, value, found);
            }
        }
        Value::Array(items) if !items.is_empty() => match inline_scalars(items) {
            Some(text) => found.push(Leaf { path, text: LeafText::Inline(text) }),
            None => {
                for (index, value) in items.iter().enumerate() {
                    leaves(format!("{path}[{index}]"), value, found);
                }
            }
        },
        Value::String(string) if string.contains(['\n', '"', '\\']) => {
            found.push(Leaf { path, text: LeafText::Block(string) });
        }
        Value::String(string) => {
            let text = format!("\"{}\"", text::exact(string));
            found.push(Leaf { path, text: LeafText::Inline(text) });
        }
        other => found.push(Leaf { path, text: LeafText::Inline(other.to_string()) }),
    }
}

/// Writes the name of a field. A name that could be taken for a path or for other text is quoted.
pub(super) fn field_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_plain) { name.to_owned() } else { quoted(name) }
}

/// Writes strings as an array on one line.
pub(super) fn inline_array<'s>(strings: impl Iterator<Item = &'s str>) -> String {
    format!("[{}]", strings.map(quoted).collect::<Vec<_>>().join(", "))
}

fn inline_scalars(items: &[Value]) -> Option<String> {
    let scalar = |item: &Value| match item {
        Value::Object(_) | Value::Array(_) => None,
        Value::String(string) if string.contains('\n') => None,
        Value::String(string) => Some(quoted(string)),
        other => Some(other.to_string()),
    };
    let items: Option<Vec<String>> = items.iter().map(scalar).collect();
    let text = format!("[{}]", items?.join(", "));
    (text.chars().count() <= MAX_INLINE).then_some(text)
}

/// Writes a string in quotes, with `\` before a quote or a backslash.
pub(super) fn quoted(string: &str) -> String {
    let mut quoted = String::from("\"");
    for part in string.split_inclusive(['"', '\\']) {
        let special = part.chars().next_back().filter(|c| matches!(c, '"' | '\\'));
        let plain = part.trim_end_matches(['"', '\\']);
        quoted.push_str(&text::exact(plain));
        if let Some(special) = special {
            quoted.extend(['\\', special]);
        }
    }
    quoted.push('"');
    quoted
}
