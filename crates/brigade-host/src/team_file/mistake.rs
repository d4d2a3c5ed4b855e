//! Mistakes in a team file. Each is shown with its line, carets below the wrong part, and a hint.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::suggest;
use brigade_core::text::{cut, plain};

/// The maximum width of the text before the first caret, in columns.
const MAX_BEFORE: usize = 60;
/// The maximum width of the text from the first caret on, in columns.
const MAX_AFTER: usize = 80;

/// A mistake in a team file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The line number, starting at 1.
    pub line: usize,
    /// The column, counted in characters, starting at 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix the mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip)]
    shown: MarkedLine,
}

/// A line of the file without control characters, and the position of the carets below the line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MarkedLine {
    text: String,
    /// The number of columns before the first caret.
    indent: usize,
    /// The number of carets.
    carets: usize,
}

impl fmt::Display for Mistake {
    /// Shows the line, the carets and the hint. The caller prints the path and the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, shown, hint, .. } = self;
        let number = line.to_string();
        let (gutter, indent) = (number.len(), shown.indent);
        writeln!(f, "  {:gutter$} |", "")?;
        writeln!(f, "  {}", format!("{number} | {}", shown.text).trim_end())?;
        write!(f, "  {:gutter$} | {:indent$}{}", "", "", "^".repeat(shown.carets))?;
        match hint {
            Some(hint) => write!(f, " {hint}"),
            None => Ok(()),
        }
    }
}

/// The mistakes found so far in a team file.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    found: Vec<SpanMistake>,
}

/// A mistake and its byte range. The line and the column are computed later.
#[derive(Debug)]
struct SpanMistake {
    span: Range<usize>,
    message: String,
    hint: Option<String>,
}

impl Mistakes {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.push(span, message.into(), None);
    }

    pub(super) fn hinted(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(span, message.into(), Some(hint.into()));
    }

    /// Adds a mistake about an unknown name, with a suggestion or the list of known names as hint.
    pub(super) fn unknown<'k>(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match suggest::nearest(word, &known) {
            Some(near) => Some(format!("did you mean {near:?}?")),
            None if known.is_empty() => None,
            None => Some(format!("one of {}", suggest::list(&known))),
        };
        self.push(span, message.into(), hint);
    }

    fn push(&mut self, span: &Range<usize>, message: String, hint: Option<String>) {
        self.found.push(SpanMistake { span: span.clone(), message, hint });
    }

    /// Returns all mistakes with their lines and columns, sorted by position.
    pub(super) fn placed(mut self, text: &str) -> Vec<Mistake> {
        self.found.sort_by_key(|push| push.span.start);
        self.found.dedup_by(|b, a| a.span == b.span && a.message == b.message);
        let lines = LineIndex::new(text);
        self.found.into_iter().map(|mistake| lines.locate(mistake)).collect()
    }
}

/// A text and the byte offset at which each of its lines starts.
struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    fn new(text: &'t str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    fn locate(&self, mistake: SpanMistake) -> Mistake {
        let SpanMistake { span, message, hint } = mistake;
        let line = self.starts.partition_point(|&start| start <= span.start);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let (_, text) = self.text.split_at_checked(start).unwrap_or(("", self.text));
        let text = text.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        // The parser's spans should start at character boundaries. If a span does not, mark the end of the line.
        let (before, rest) = text.split_at_checked(span.start - start).unwrap_or((text, ""));
        let length = span.len().min(rest.len());
        let (marked, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let column = before.chars().count() + 1;
        let shown = MarkedLine::new(&plain(before), &plain(marked), &plain(after));
        Mistake { line, column, message, hint, shown }
    }
}

impl MarkedLine {
    fn new(before: &str, marked: &str, after: &str) -> Self {
        let mut text = String::new();
        if before.width() > MAX_BEFORE {
            let kept: Vec<char> = before.chars().rev().take(MAX_BEFORE / 2).collect();
            text.push('…');
            text.extend(kept.into_iter().rev());
        } else {
            text.push_str(before);
        }
        let indent = text.width();
        let marked = cut(marked, MAX_AFTER);
        let carets = marked.width().max(1);
        text.push_str(&marked);
        text.push_str(&cut(after, MAX_AFTER.saturating_sub(carets).max(1)));
        Self { text: text.trim_end().to_owned(), indent, carets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, span: Range<usize>, (line, column): (usize, usize), shown: &str) {
        let mut mistakes = Mistakes::default();
        mistakes.add(&span, "no");
        let placed = mistakes.placed(text);
        let [mistake] = placed.as_slice() else { panic!("{placed:?}") };
        assert_eq!((mistake.line, mistake.column), (line, column));
        assert_eq!(mistake.to_string(), shown);
    }

    #[test]
    fn the_carets_are_below_the_marked_text() {
        check("a = 1\nb = two\n", 10..13, (2, 5), "    |\n  2 | b = two\n    |     ^^^");
        check("日本 = x", 9..10, (1, 6), "    |\n  1 | 日本 = x\n    |        ^");
        check("a = \"one\ntwo\"", 4..13, (1, 5), "    |\n  1 | a = \"one\n    |     ^^^^");
        check("", 0..0, (1, 1), "    |\n  1 |\n    | ^");
        check("é", 1..9, (1, 2), "    |\n  1 | é\n    |  ^");
    }

    #[test]
    fn control_characters_of_a_line_are_escaped() {
        let shown = "    |\n  1 | \\u{1b}[2J    x\n    |              ^";
        check("\u{1b}[2J\tx", 5..6, (1, 6), shown);
    }

    #[test]
    fn a_long_line_is_shown_around_its_caret() {
        let text = format!("{} here {}", "a".repeat(500), "b".repeat(500));
        let mut mistakes = Mistakes::default();
        mistakes.add(&(501..505), "no");
        let shown = mistakes.placed(&text).first().map(ToString::to_string).unwrap_or_default();
        assert!(shown.lines().all(|line| line.width() < 130), "{shown}");
        assert!(shown.contains("aaa here bbb"), "{shown}");
    }
}
