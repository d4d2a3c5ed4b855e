//! Cuts a long text around the part that was searched for.

use brigade_core::search_text::SearchText;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A part of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptPart {
    /// The text.
    pub text: String,
    /// Whether it was searched for.
    pub is_match: bool,
}

/// Returns the part of a one-line text around its first match, at most this many columns wide, with marks where it was cut.
pub fn excerpt(text: &str, wanted: &SearchText, width: usize) -> Vec<ExcerptPart> {
    let matches = wanted.find_in(text);
    let first = matches.first().map_or(0, |range| range.start);
    let is_long = text.width() > width;
    // The text before the match gets a third of the width.
    let start = if is_long { start_before(text, first, width / 3) } else { 0 };
    let room = width.saturating_sub(usize::from(start > 0));
    let end = match end_within(text, start, room) {
        end if end < text.len() => end_within(text, start, room.saturating_sub(1)),
        end => end,
    };
    let mut parts = Vec::new();
    let mut push = |from: usize, upto: usize, is_match: bool| {
        let text = text.get(from.max(start)..upto.min(end)).unwrap_or_default();
        if !text.is_empty() {
            parts.push(ExcerptPart { text: text.to_owned(), is_match });
        }
    };
    let mut at = start;
    for range in matches {
        push(at, range.start, false);
        push(range.start, range.end, true);
        at = at.max(range.end);
    }
    push(at, text.len(), false);
    let mark = || ExcerptPart { text: "…".to_owned(), is_match: false };
    if start > 0 {
        parts.insert(0, mark());
    }
    if end < text.len() {
        parts.push(mark());
    }
    parts
}

/// Returns where an excerpt begins that shows up to this many columns before an offset, if possible at the beginning of a word.
fn start_before(text: &str, offset: usize, width: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    let mut taken = 0;
    let mut start = offset;
    for (at, c) in before.char_indices().rev() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            if c == ' ' {
                return start;
            }
            let word = text.get(start..offset).and_then(|shown| shown.find(' '));
            return word.map_or(start, |space| start + space + 1);
        }
        start = at;
    }
    0
}

/// Returns the end of the text from `start` that fits into this many columns.
fn end_within(text: &str, start: usize, width: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let mut taken = 0;
    for (at, c) in rest.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            return start + at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, wanted: &str, width: usize) -> String {
        let wanted = SearchText::parse(wanted).unwrap();
        let parts = excerpt(text, &wanted, width).into_iter();
        let show = |part: ExcerptPart| match part.is_match {
            true => format!("[{}]", part.text),
            false => part.text,
        };
        parts.map(show).collect()
    }

    #[test]
    fn an_excerpt_shows_the_first_match() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(shown("fix the parser", "parse", 40), "fix the [parse]r");
        assert_eq!(shown(text, "seven", 20), "…six [seven] eight ni…");
        assert_eq!(shown(text, "one", 10), "[one] two t…");
        assert_eq!(shown(text, "ten nine", 20), "…eight [nine] [ten]");
        assert_eq!(shown("修复解析器的错误", "解析", 9), "…复[解析]…");
    }
}
