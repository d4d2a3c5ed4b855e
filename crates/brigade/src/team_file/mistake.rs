//! Mistakes in the file, each with its line, a caret and a hint.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::near;
use crate::output;

/// Maximum number of columns to show before and after the start of the caret.
const BEFORE: usize = 60;
const AFTER: usize = 80;

/// A mistake with its position in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mistake {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    pub(crate) message: String,
    /// How to correct it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip)]
    shown: Shown,
}

/// The line, with control characters escaped, and the marked part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    text: String,
    /// Columns before the caret.
    indent: usize,
    /// Number of carets.
    carets: usize,
}

impl fmt::Display for Mistake {
    /// Omits the position: the caller prints it with the file name.
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

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    found: Vec<Note>,
}

/// A mistake whose line and column are not computed yet.
#[derive(Debug)]
struct Note {
    span: Range<usize>,
    message: String,
    hint: Option<String>,
}

impl Mistakes {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.note(span, message.into(), None);
    }

    pub(super) fn hinted(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.note(span, message.into(), Some(hint.into()));
    }

    /// Adds a mistake for an unknown word, with the known words as a hint.
    pub(super) fn unknown<'k>(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match near::nearest(word, &known) {
            Some(near) => Some(format!("did you mean {near:?}?")),
            None if known.is_empty() => None,
            None => Some(format!("one of {}", near::list(&known))),
        };
        self.note(span, message.into(), hint);
    }

    fn note(&mut self, span: &Range<usize>, message: String, hint: Option<String>) {
        self.found.push(Note { span: span.clone(), message, hint });
    }

    /// Returns all mistakes with their positions, in the order of the file.
    pub(super) fn placed(mut self, text: &str) -> Vec<Mistake> {
        self.found.sort_by_key(|note| note.span.start);
        self.found.dedup_by(|b, a| a.span == b.span && a.message == b.message);
        let lines = Lines::of(text);
        self.found.into_iter().map(|note| lines.place(note)).collect()
    }
}

/// The start of each line of a text.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    fn place(&self, note: Note) -> Mistake {
        let Note { span, message, hint } = note;
        let line = self.starts.partition_point(|&start| start <= span.start);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let (_, text) = self.text.split_at_checked(start).unwrap_or(("", self.text));
        let text = text.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        // The parser's spans lie on character boundaries. If one does not, mark the end of the line.
        let (before, rest) = text.split_at_checked(span.start - start).unwrap_or((text, ""));
        let length = span.len().min(rest.len());
        let (marked, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let column = before.chars().count() + 1;
        let shown = Shown::new(&harmless(before), &harmless(marked), &harmless(behind));
        Mistake { line, column, message, hint, shown }
    }
}

/// Replaces tabs, whose width depends on the terminal, and escapes control characters.
fn harmless(text: &str) -> String {
    output::plain(text).replace('\t', " ")
}

impl Shown {
    fn new(before: &str, marked: &str, behind: &str) -> Self {
        let mut text = String::new();
        if before.width() > BEFORE {
            let kept: Vec<char> = before.chars().rev().take(BEFORE / 2).collect();
            text.push('…');
            text.extend(kept.into_iter().rev());
        } else {
            text.push_str(before);
        }
        let indent = text.width();
        let marked = output::cut(marked, AFTER);
        let carets = marked.width().max(1);
        text.push_str(&marked);
        text.push_str(&output::cut(behind, AFTER.saturating_sub(carets).max(1)));
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
    fn carets_are_below_the_marked_text() {
        check("a = 1\nb = two\n", 10..13, (2, 5), "    |\n  2 | b = two\n    |     ^^^");
        check("日本 = x", 9..10, (1, 6), "    |\n  1 | 日本 = x\n    |        ^");
        check("a = \"one\ntwo\"", 4..13, (1, 5), "    |\n  1 | a = \"one\n    |     ^^^^");
        check("", 0..0, (1, 1), "    |\n  1 |\n    | ^");
        check("é", 1..9, (1, 2), "    |\n  1 | é\n    |  ^");
    }

    #[test]
    fn control_characters_in_a_line_are_escaped() {
        let shown = "    |\n  1 | \\u{1b}[2J x\n    |           ^";
        check("\u{1b}[2J\tx", 5..6, (1, 6), shown);
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{} here {}", "a".repeat(500), "b".repeat(500));
        let mut mistakes = Mistakes::default();
        mistakes.add(&(501..505), "no");
        let shown = mistakes.placed(&text).first().map(ToString::to_string).unwrap_or_default();
        assert!(shown.lines().all(|line| line.width() < 130), "{shown}");
        assert!(shown.contains("aaa here bbb"), "{shown}");
    }
}
