//! Detects the formatting of an object or array, so that added values look like their neighbours.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use crate::document::{Array, ByteSpan, JsonDocument, Object, Pair};

/// The indentation that Claude Code uses.
const DEFAULT_INDENT: &str = "  ";

/// The formatting inside a container, which is an object or an array.
#[derive(Debug)]
pub(crate) struct JsonLayout {
    /// The text between a comma and the next member or element: a line break and indentation, a space, or nothing.
    between: String,
    /// The text before the closing bracket.
    close: String,
    /// One level of indentation; `None` if the container is on one line.
    step: Option<String>,
    colon: String,
}

impl JsonLayout {
    pub(crate) fn for_object(document: &JsonDocument<'_>, object: &Object) -> Self {
        let starts: Vec<usize> = object.members.iter().map(|pair| pair.key.start).collect();
        let mut layout = Self::detect(document, object.span, &starts);
        if let Some(Pair { key, value }) = object.members.last() {
            let colon = document.text.get(key.end..value.start);
            layout.colon = colon.unwrap_or_default().to_owned();
        }
        layout
    }

    pub(crate) fn for_array(document: &JsonDocument<'_>, array: &Array) -> Self {
        let starts: Vec<usize> = array.elements.iter().map(|span| span.start).collect();
        Self::detect(document, array.span, &starts)
    }

    fn detect(document: &JsonDocument<'_>, container: ByteSpan, starts: &[usize]) -> Self {
        let text = document.text.as_ref();
        let indent = line_indent(text, container.start);
        let Some(&first) = starts.first() else {
            return Self::for_empty(text, container, indent);
        };
        let gap = text.get(container.start + 1..first).unwrap_or_default();
        if let Some((before, inner)) = gap.rsplit_once('\n') {
            let newline = if before.ends_with('\r') { "\r\n" } else { "\n" };
            let step = inner.strip_prefix(indent).filter(|step| !step.is_empty());
            return Self::multi_line(newline, indent, inner, step.unwrap_or(DEFAULT_INDENT));
        }
        let before_last = match starts {
            [.., last] if starts.len() > 1 => text.get(..*last).unwrap_or_default(),
            _ => "",
        };
        let blank = before_last.len() - before_last.trim_end().len();
        Self::single_line(if blank > 0 { " " } else { "" })
    }

    /// Returns the layout for an empty container. It uses several lines if the document has several lines, or if
    /// the container is the whole document.
    fn for_empty(text: &str, container: ByteSpan, indent: &str) -> Self {
        let is_root = text.trim().len() == container.end - container.start;
        if is_root || text.trim().contains('\n') {
            let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
            let step = document_step(text);
            Self::multi_line(newline, indent, &format!("{indent}{step}"), step)
        } else {
            Self::single_line("")
        }
    }

    fn multi_line(newline: &str, outer: &str, inner: &str, step: &str) -> Self {
        Self {
            between: format!("{newline}{inner}"),
            close: format!("{newline}{outer}"),
            step: Some(step.to_owned()),
            colon: ": ".to_owned(),
        }
    }

    fn single_line(between: &str) -> Self {
        let (between, close) = (between.to_owned(), String::new());
        Self { between, close, step: None, colon: ":".to_owned() }
    }

    pub(crate) fn between(&self) -> &str {
        &self.between
    }

    pub(crate) fn colon(&self) -> &str {
        &self.colon
    }

    /// Formats a value for use in this container.
    pub(crate) fn encode(&self, value: &impl Serialize) -> String {
        let Some(step) = &self.step else {
            return compact(value);
        };
        // A JSON string contains no line break, so every line break is formatting and can be indented.
        pretty(value, step).replace('\n', &self.between)
    }

    /// Formats a container that consists of these `parts`.
    pub(crate) fn enclose(&self, open: char, parts: &[String], close: char) -> String {
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        let first = if self.step.is_some() { self.between() } else { "" };
        let parts = parts.join(&format!(",{}", self.between));
        format!("{open}{first}{parts}{}{close}", self.close)
    }
}

/// Returns one level of indentation: the white space before the document's first member or element.
fn document_step(text: &str) -> &str {
    let inside = text.trim_start().get(1..).unwrap_or_default();
    let blank = inside.get(..inside.len() - inside.trim_start().len()).unwrap_or_default();
    match blank.rsplit_once('\n') {
        Some((_, step)) if !step.is_empty() => step,
        _ => DEFAULT_INDENT,
    }
}

/// Returns the white space at the beginning of the line that contains offset `at`.
fn line_indent(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..blank).unwrap_or_default()
}

/// Formats JSON on one line, as `JSON.stringify` does.
pub(crate) fn compact(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    check(value.serialize(&mut serde_json::Serializer::new(&mut out)));
    into_text(out)
}

/// Formats JSON on several lines, as `JSON.stringify(value, null, 2)` does if `step` is two spaces.
pub(crate) fn pretty(value: &impl Serialize, step: &str) -> String {
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(step.as_bytes());
    check(value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter)));
    into_text(out)
}

#[expect(clippy::expect_used, reason = "records have string keys and are written to memory")]
fn check(result: serde_json::Result<()>) {
    result.expect("records can be written as JSON");
}

#[expect(clippy::expect_used, reason = "serde_json writes complete characters")]
fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("serde_json writes UTF-8")
}
