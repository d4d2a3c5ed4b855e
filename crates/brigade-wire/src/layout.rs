//! How the text around a place is laid out, so that what is added there looks like its neighbours.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use crate::document::{Array, Document, Object, Pair, Span};

/// Claude Code's own indentation.
const NATIVE: &str = "  ";

/// The layout inside one object or array.
#[derive(Debug)]
pub(crate) struct Layout {
    /// What stands between a comma and the next part: a line break and the indentation, or a space,
    /// or nothing.
    between: String,
    /// What stands before the closing bracket.
    close: String,
    /// One step of indentation, or `None` when the container is written on one line.
    step: Option<String>,
    colon: String,
}

impl Layout {
    pub(crate) fn of_object(document: &Document<'_>, object: &Object) -> Self {
        let starts: Vec<usize> = object.members.iter().map(|pair| pair.key.start).collect();
        let mut layout = Self::of(document, object.span, &starts);
        if let Some(Pair { key, value }) = object.members.last() {
            let colon = document.text.get(key.end..value.start);
            layout.colon = colon.unwrap_or_default().to_owned();
        }
        layout
    }

    pub(crate) fn of_array(document: &Document<'_>, array: &Array) -> Self {
        let starts: Vec<usize> = array.elements.iter().map(|span| span.start).collect();
        Self::of(document, array.span, &starts)
    }

    fn of(document: &Document<'_>, container: Span, starts: &[usize]) -> Self {
        let text = document.text.as_ref();
        let indent = line_indent(text, container.start);
        let Some(&first) = starts.first() else {
            return Self::of_empty(text, container, indent);
        };
        let gap = text.get(container.start + 1..first).unwrap_or_default();
        if let Some((before, inner)) = gap.rsplit_once('\n') {
            let newline = if before.ends_with('\r') { "\r\n" } else { "\n" };
            let step = inner.strip_prefix(indent).filter(|step| !step.is_empty());
            return Self::on_lines(newline, indent, inner, step.unwrap_or(NATIVE));
        }
        let before_last = match starts {
            [.., last] if starts.len() > 1 => text.get(..*last).unwrap_or_default(),
            _ => "",
        };
        let blank = before_last.len() - before_last.trim_end().len();
        Self::on_one_line(if blank > 0 { " " } else { "" })
    }

    /// An empty container takes after the document: on lines if that is, or if it is the whole
    /// document and says nothing.
    fn of_empty(text: &str, container: Span, indent: &str) -> Self {
        let alone = text.trim().len() == container.end - container.start;
        if alone || text.trim().contains('\n') {
            let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
            let step = document_step(text);
            Self::on_lines(newline, indent, &format!("{indent}{step}"), step)
        } else {
            Self::on_one_line("")
        }
    }

    fn on_lines(newline: &str, outer: &str, inner: &str, step: &str) -> Self {
        Self {
            between: format!("{newline}{inner}"),
            close: format!("{newline}{outer}"),
            step: Some(step.to_owned()),
            colon: ": ".to_owned(),
        }
    }

    fn on_one_line(between: &str) -> Self {
        let (between, close) = (between.to_owned(), String::new());
        Self { between, close, step: None, colon: ":".to_owned() }
    }

    pub(crate) fn between(&self) -> &str {
        &self.between
    }

    pub(crate) fn colon(&self) -> &str {
        &self.colon
    }

    /// A value as it stands in this container.
    pub(crate) fn encode(&self, value: &impl Serialize) -> String {
        let Some(step) = &self.step else {
            return compact(value);
        };
        // A line break is never inside a JSON string, so each one is ours to indent.
        pretty(value, step).replace('\n', &self.between)
    }

    /// A container of nothing but `parts`.
    pub(crate) fn enclose(&self, open: char, parts: &[String], close: char) -> String {
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        let first = if self.step.is_some() { self.between() } else { "" };
        let parts = parts.join(&format!(",{}", self.between));
        format!("{open}{first}{parts}{}{close}", self.close)
    }
}

/// One step of indentation: that of the first line inside the document.
fn document_step(text: &str) -> &str {
    let inside = text.trim_start().get(1..).unwrap_or_default();
    let blank = inside.get(..inside.len() - inside.trim_start().len()).unwrap_or_default();
    match blank.rsplit_once('\n') {
        Some((_, step)) if !step.is_empty() => step,
        _ => NATIVE,
    }
}

/// The white space at the beginning of the line in which `at` stands.
fn line_indent(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..blank).unwrap_or_default()
}

/// JSON on one line, as `JSON.stringify` writes it.
pub(crate) fn compact(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    finish(value.serialize(&mut serde_json::Serializer::new(&mut out)));
    text(out)
}

/// JSON on lines, as `JSON.stringify(value, null, 2)` writes it when `step` is two spaces.
pub(crate) fn pretty(value: &impl Serialize, step: &str) -> String {
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(step.as_bytes());
    finish(value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter)));
    text(out)
}

#[expect(clippy::expect_used, reason = "our records have string keys and write to memory")]
fn finish(result: serde_json::Result<()>) {
    result.expect("a record of ours can be written as JSON");
}

#[expect(clippy::expect_used, reason = "serde_json writes whole characters only")]
fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("serde_json writes UTF-8")
}
