//! Computes an action from its text. That this is possible shows that the text determines the action.

use brigade_core::action::AgentAction;
use serde_json::{Map, Value, json};

/// Computes an action from the text that `AgentAction::render` writes without a limit.
pub(super) fn decode(text: &str) -> AgentAction {
    let mut lines = text.split('\n').peekable();
    let (tool, _) = lines.next().unwrap().rsplit_once(": ").unwrap();
    let cwd = lines.next_if(|line| line.starts_with("working directory: "));
    let cwd = cwd.map(|line| unescaped(line.strip_prefix("working directory: ").unwrap()));
    let lines: Vec<&str> = lines.collect();
    let request = lines.iter().position(|line| *line == "with the request:");
    let (input, request) = lines.split_at(request.unwrap_or(lines.len()));
    let input = fields(input, "(the whole input)").unwrap_or_else(|| json!({}));
    let request: Vec<&str> =
        request.iter().skip(1).map(|line| line.strip_prefix("  ").unwrap()).collect();
    let request = fields(&request, "(the whole request)").unwrap_or_default();
    AgentAction::new(&unescaped(tool), &input, &request, cwd.as_deref())
}

/// Reads fields; `None` if there are none.
fn fields<'l>(lines: &[&'l str], whole: &str) -> Option<Value> {
    let mut root = None;
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        let (path, rest) = path(line, whole);
        let value = match rest.strip_prefix(": ") {
            Some(inline) => scalar_or_array(inline),
            None => {
                assert_eq!(rest, ":", "{line}");
                let in_block =
                    |line: &'l str| line.strip_prefix("  |").or(line.strip_prefix("  $"));
                let mut block = Vec::new();
                while let Some(line) = lines.peek().copied().and_then(in_block) {
                    lines.next();
                    block.push(unescaped(line.strip_prefix(' ').unwrap_or(line)));
                }
                Value::String(block.join("\n"))
            }
        };
        put(root.get_or_insert(Value::Null), &path, value);
    }
    root
}

enum Step {
    Field(String),
    Index(usize),
}

/// Reads the path at the beginning of a line. Returns it with the rest of the line.
fn path<'l>(line: &'l str, whole: &str) -> (Vec<Step>, &'l str) {
    let mut steps = Vec::new();
    let mut rest = match line.strip_prefix(whole) {
        Some(rest) => rest,
        None => {
            let (name, rest) = name(line);
            steps.push(Step::Field(name));
            rest
        }
    };
    loop {
        if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = name(after);
            steps.push(Step::Field(name));
            rest = after;
        } else if let Some((index, after)) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            steps.push(Step::Index(index.parse().unwrap()));
            rest = after;
        } else {
            return (steps, rest);
        }
    }
}

fn name(text: &str) -> (String, &str) {
    if let Some(rest) = text.strip_prefix('"') {
        return quoted(rest);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = text.find(|c| !is_plain(c)).unwrap();
    let (name, rest) = text.split_at(end);
    (name.to_owned(), rest)
}

/// Reads a quoted string after its opening quote. Returns it with the text after its closing quote.
fn quoted(text: &str) -> (String, &str) {
    let mut string = String::new();
    let mut rest = text;
    loop {
        let (c, after) = first(rest).unwrap();
        let (c, after) = match c {
            '"' => return (string, after),
            '\\' if after.starts_with("u{") => escape(after),
            '\\' => first(after).unwrap(),
            '⇥' => ('\t', after),
            c => (c, after),
        };
        string.push(c);
        rest = after;
    }
}

/// Splits a text after its first character.
fn first(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    Some((characters.next()?, characters.as_str()))
}

/// Reads `u{HEX}`.
fn escape(text: &str) -> (char, &str) {
    let (hex, rest) = text.strip_prefix("u{").and_then(|text| text.split_once('}')).unwrap();
    (char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap(), rest)
}

fn unescaped(text: &str) -> String {
    let mut string = String::new();
    let mut rest = text;
    while let Some((c, after)) = first(rest) {
        let (c, after) = match c {
            '\\' if after.starts_with("u{") => escape(after),
            '⇥' => ('\t', after),
            c => (c, after),
        };
        string.push(c);
        rest = after;
    }
    string
}

fn scalar_or_array(text: &str) -> Value {
    if text == "{}" {
        return json!({});
    }
    let Some(mut rest) = text.strip_prefix('[') else {
        let (value, rest) = scalar(text);
        assert_eq!(rest, "", "{text}");
        return value;
    };
    let mut items = Vec::new();
    while rest != "]" {
        rest = rest.strip_prefix(", ").unwrap_or(rest);
        let (item, after) = scalar(rest);
        items.push(item);
        rest = after;
    }
    Value::Array(items)
}

fn scalar(text: &str) -> (Value, &str) {
    if let Some(rest) = text.strip_prefix('"') {
        let (string, rest) = quoted(rest);
        return (Value::String(string), rest);
    }
    let end = text.find([',', ']']).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    (serde_json::from_str(value).unwrap(), rest)
}

fn put(place: &mut Value, path: &[Step], value: Value) {
    match path.split_first() {
        None => *place = value,
        Some((Step::Field(name), path)) => {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            put(place.as_object_mut().unwrap().entry(name).or_insert(Value::Null), path, value);
        }
        Some((Step::Index(index), path)) => {
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            let items = place.as_array_mut().unwrap();
            assert!(*index <= items.len(), "items are written in order");
            if *index == items.len() {
                items.push(Value::Null);
            }
            put(&mut items[*index], path, value);
        }
    }
}
