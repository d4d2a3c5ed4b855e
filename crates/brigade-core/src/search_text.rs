//! The text that a person searches for, and the words by which an index finds it.
//!
//! A text is divided into words: letters and digits that follow each other. A character of a script that is written without spaces,
//! such as Chinese, and a symbol outside ASCII is a word of its own. Upper and lower case do not matter.
//!
//! ```
//! use brigade_core::search_text::SearchText;
//!
//! # fn main() -> Result<(), brigade_core::search_text::NoSearchWords> {
//! assert!(SearchText::parse("parse fix")?.matches("Fix the parser"));
//! assert!(!SearchText::parse("\"parse\"")?.matches("Fix the parser"));
//! assert!(SearchText::parse("\"the parser\"")?.matches("Fix the parser"));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::ops::Range;

use thiserror::Error;

/// How many characters of a longer word an index distinguishes.
const WORD_CHARS: usize = 32;

/// The text that a person searches for: every part of it must occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchText {
    parts: Vec<SearchPart>,
}

/// A part of the text that must occur as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SearchPart {
    /// In lower case.
    text: String,
    /// Whether the last word of the part must end where the part ends. Otherwise a longer word also matches.
    is_whole: bool,
}

/// A word that a text must contain to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWord {
    /// The word, or its beginning.
    pub text: String,
    /// Whether a word that begins with the text is enough.
    pub is_prefix: bool,
}

/// The error for a search text without a letter, a digit or a symbol outside ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the text to search for has no letter or digit")]
pub struct NoSearchWords;

impl SearchText {
    /// Parses the text that a person entered. Each word must occur at the beginning of a word, in any order. A text in double
    /// quotes must occur as it is. No character is an error.
    pub fn parse(text: &str) -> Result<Self, NoSearchWords> {
        let mut parts = Vec::new();
        // Every second piece is between quotes. A quote that is not closed reaches up to the end.
        for (number, piece) in text.split('"').enumerate() {
            let is_whole = number % 2 == 1;
            let texts: Vec<&str> =
                if is_whole { vec![piece] } else { piece.split_whitespace().collect() };
            let part = |text| SearchPart { text: fold(text).trim().to_owned(), is_whole };
            parts.extend(texts.into_iter().map(part).filter(|part| !part.text.is_empty()));
        }
        let text = Self { parts };
        if text.index_words().is_empty() { Err(NoSearchWords) } else { Ok(text) }
    }

    /// Returns whether every part occurs in a text.
    pub fn matches(&self, text: &str) -> bool {
        let text = fold(text);
        self.parts.iter().all(|part| part.first_in(&text, 0).is_some())
    }

    /// Returns where the parts occur in a text, in order and without overlap.
    pub fn find_in(&self, text: &str) -> Vec<Range<usize>> {
        let (folded, origins) = fold_with_origins(text);
        let origin = |at: usize| origins.get(at).copied().unwrap_or(text.len());
        let mut found: Vec<Range<usize>> = Vec::new();
        for part in &self.parts {
            let mut from = 0;
            while let Some(at) = part.first_in(&folded, from) {
                from = at + part.text.len();
                found.push(origin(at)..origin(from));
            }
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Returns words that a text must contain to match. A text that contains them need not match.
    pub fn index_words(&self) -> Vec<SearchWord> {
        let mut found: Vec<SearchWord> = Vec::new();
        for part in &self.parts {
            for (at, word) in split(&part.text) {
                let is_end = at + word.len() == part.text.len();
                let is_prefix = is_end && !part.is_whole && is_run(word);
                let word = SearchWord { text: shortened(word).to_owned(), is_prefix };
                if !found.contains(&word) {
                    found.push(word);
                }
            }
        }
        found
    }
}

impl SearchPart {
    /// Returns where the part first occurs in a text in lower case, at this offset or later.
    fn first_in(&self, text: &str, from: usize) -> Option<usize> {
        let mut from = from;
        loop {
            let at = from + text.get(from..)?.find(&self.text)?;
            if self.fits(text, at) {
                return Some(at);
            }
            from = at + text.get(at..)?.chars().next()?.len_utf8();
        }
    }

    /// Returns whether the part, which occurs at this offset, begins and ends where words do.
    fn fits(&self, text: &str, at: usize) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| CharClass::of_char(c) == CharClass::Run);
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + self.text.len()..).and_then(|text| text.chars().next());
        let begins = !is_word(self.text.chars().next()) || !is_word(before);
        let ends = !self.is_whole || !is_word(self.text.chars().next_back()) || !is_word(after);
        begins && ends
    }
}

/// Calls `visit` with each word of a text, in the form in which an index stores it. A word may be repeated.
pub fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    for (_, word) in split(&fold(text)) {
        visit(shortened(word));
    }
}

/// The role of a character in the division into words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    /// A part of a word.
    Run,
    /// A word of its own.
    Single,
    /// Not a part of any word.
    Between,
}

impl CharClass {
    fn of_char(c: char) -> Self {
        match c {
            _ if c.is_ascii() => {
                if c.is_ascii_alphanumeric() {
                    Self::Run
                } else {
                    Self::Between
                }
            }
            _ if is_unspaced(c) => Self::Single,
            _ if c.is_alphanumeric() => Self::Run,
            _ if c.is_whitespace() || c.is_control() => Self::Between,
            _ => Self::Single,
        }
    }
}

/// Returns whether a character belongs to a script that is written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        // Thai, Lao, Burmese, Khmer
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        // Chinese and Japanese
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3040..=0x312F | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x3FFFF)
}

fn is_run(word: &str) -> bool {
    word.chars().next().is_some_and(|c| CharClass::of_char(c) == CharClass::Run)
}

/// Returns the words of a text in lower case, each with its offset.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..)?;
        let class = |(_, c): &(usize, char)| CharClass::of_char(*c);
        let first = rest.char_indices().find(|c| class(c) != CharClass::Between)?;
        let start = from + first.0;
        let end = match class(&first) {
            CharClass::Run => {
                let after = text.get(start..)?.char_indices().find(|c| class(c) != CharClass::Run);
                after.map_or(text.len(), |(at, _)| start + at)
            }
            _ => start + first.1.len_utf8(),
        };
        from = end;
        Some((start, text.get(start..end)?))
    })
}

/// Returns the part of a word that an index stores.
fn shortened(word: &str) -> &str {
    match word.char_indices().nth(WORD_CHARS) {
        Some((end, _)) => word.get(..end).unwrap_or(word),
        None => word,
    }
}

/// Returns a text in lower case. Each sequence of white space becomes one space.
fn fold(text: &str) -> Cow<'_, str> {
    let is_folded = text.bytes().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase());
    if is_folded {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    fold_each(text, |_, c| folded.push(c));
    Cow::Owned(folded)
}

/// Like [`fold`], with the offset in the text for each byte of the result.
fn fold_with_origins(text: &str) -> (String, Vec<usize>) {
    let (mut folded, mut origins) = (String::new(), Vec::new());
    fold_each(text, |at, c| {
        folded.push(c);
        origins.resize(folded.len(), at);
    });
    (folded, origins)
}

fn fold_each(text: &str, mut push: impl FnMut(usize, char)) {
    let mut is_space = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if !is_space {
                push(at, ' ');
            }
            is_space = true;
            continue;
        }
        is_space = false;
        if c.is_ascii() {
            push(at, c.to_ascii_lowercase());
        } else {
            c.to_lowercase().for_each(|c| push(at, c));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, in_text: &str) -> bool {
        SearchText::parse(text).unwrap().matches(in_text)
    }

    #[test]
    fn a_word_matches_the_beginning_of_a_word() {
        for (text, in_text) in [
            ("parse", "the parser"),
            ("PARSE", "the Parser"),
            ("the fix", "Fix all of the bugs"),
            ("src/parser.rs", "changed src/parser.rs (+1 -2)"),
            ("parser.r", "src/parser.rs"),
            ("bar", "foo_bar"),
            ("foo_b", "foo_bar"),
            ("--all", "stop --all"),
            ("straße", "Straße 3"),
            ("größe", "die GRÖSSE und die Größe"),
            ("解析", "修复解析器"),
            ("器", "修复解析器"),
            ("テスト", "単体テストを書く"),
            ("🎉", "done 🎉"),
            ("a a", "ba a a"),
        ] {
            assert!(matches(text, in_text), "{text:?} in {in_text:?}");
        }
        for (text, in_text) in [
            ("parse", "reparse"),
            ("fix parser", "fix the lexer"),
            ("parser.rs", "parsers.rs"),
            ("析解", "修复解析器"),
            ("--all", "all"),
        ] {
            assert!(!matches(text, in_text), "{text:?} in {in_text:?}");
        }
    }

    #[test]
    fn a_text_in_quotes_matches_as_it_is() {
        for (text, in_text) in [
            ("\"the parser\"", "Fix the\n  parser."),
            ("\"the parser\" fix", "Fix the parser"),
            ("\"the parser", "Fix the parser"),
            ("\"a a\"", "ba a a"),
        ] {
            assert!(matches(text, in_text), "{text:?} in {in_text:?}");
        }
        for (text, in_text) in [
            ("\"parse\"", "the parser"),
            ("\"fix parser\"", "fix the parser"),
            ("\"he parser\"", "the parser"),
        ] {
            assert!(!matches(text, in_text), "{text:?} in {in_text:?}");
        }
    }

    #[test]
    fn a_text_without_words_is_rejected() {
        for text in ["", " ", "\"\"", "--", "\" ( \"", "*"] {
            assert_eq!(SearchText::parse(text), Err(NoSearchWords), "{text:?}");
        }
    }

    #[test]
    fn matches_are_found_in_the_original_text() {
        let text = "Größe: İ and the Parser, parse";
        let found = SearchText::parse("parse größe").unwrap().find_in(text);
        let found: Vec<&str> = found.into_iter().filter_map(|range| text.get(range)).collect();
        assert_eq!(found, ["Größe", "Parse", "parse"]);
    }

    #[test]
    fn a_text_that_matches_contains_the_words() {
        let texts = ["Fix the parser.rs", "修复解析器 fix", "İstanbul", "x".repeat(99).leak()];
        for text in texts {
            let mut words = Vec::new();
            each_word(text, |word| words.push(word.to_owned()));
            for wanted in SearchText::parse(text).unwrap().index_words() {
                let fits = |word: &&String| match wanted.is_prefix {
                    true => word.starts_with(&wanted.text),
                    false => **word == wanted.text,
                };
                assert!(words.iter().any(|word| fits(&word)), "{wanted:?} in {words:?}");
            }
        }
    }
}
