//! Text helpers for every front end: make text safe for a terminal, limit its width, format counts.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Formats a number with its noun: `1 task`, `2 tasks`.
pub fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// In untrusted text, escapes characters that could control the terminal or hide content: control characters,
/// text direction marks and invisible characters. Keeps line breaks, tabs, and the joiners that some scripts
/// and emoji need.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let changes_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let hides = matches!(
            c,
            '\u{ad}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{2060}'..='\u{2064}'
                | '\u{206a}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{e0000}'..='\u{e007f}'
        );
        if changes_direction || hides || (c.is_control() && c != '\n' && c != '\t') {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Like [`plain`], but on one line: each sequence of white space becomes one space.
pub fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Removes the escape sequences with which a program styles its output or moves the cursor.
pub fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            kept.push(c);
            continue;
        }
        match chars.next() {
            // A control sequence ends with a letter or one of a few other characters.
            Some('[') => drop(chars.find(|c| matches!(c, '\u{40}'..='\u{7e}'))),
            // A command for the terminal ends with BEL, or with ESC and a backslash.
            Some(']') => {
                let is_end = |c: &char| matches!(c, '\u{7}' | '\u{1b}');
                let end = chars.find(is_end);
                end.filter(|end| *end == '\u{1b}').and_then(|_| chars.next());
            }
            _ => {}
        }
    }
    kept
}

/// Cuts text to `width` terminal columns and marks the cut with `…`.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let columns = c.width().unwrap_or_default();
        if columns > room {
            break;
        }
        room -= columns;
        cut.push(c);
    }
    cut.truncate(cut.trim_end().len());
    cut + "…"
}

/// Breaks a line between words so that no part is wider than `width` columns. Does not break long words.
pub fn wrap(line: &str, width: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while rest.width() > width {
        let mut taken = 0;
        let fits = |(at, c): (usize, char)| {
            taken += c.width().unwrap_or_default();
            (taken <= width + 1).then_some((at, c))
        };
        let blanks = rest.char_indices().map_while(fits).filter(|&(at, c)| at > 0 && c == ' ');
        let blank = blanks.last().map(|(at, _)| at);
        let blank = blank
            .or_else(|| rest.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(at, _)| at));
        let Some((part, tail)) = blank.and_then(|at| rest.split_at_checked(at)) else { break };
        parts.push(part);
        rest = tail.trim_start();
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_counts_columns_not_characters() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello world", 7), "hello…");
        assert_eq!(cut("日本語です", 5), "日本…");
    }

    #[test]
    fn wrap_breaks_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 40), ["one two three"]);
        assert_eq!(
            wrap("https://a.very.long/address here", 10),
            ["https://a.very.long/address", "here"]
        );
        assert_eq!(wrap("日本 語", 4), ["日本", "語"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn b23_escape_sequences_are_removed() {
        assert_eq!(
            without_escapes("\u{1b}[2m12:00\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m"),
            "12:00 ERROR"
        );
        assert_eq!(
            without_escapes("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c\u{1b}=d\u{1b}"),
            "abcd"
        );
        assert_eq!(without_escapes("a\u{1b}[2"), "a");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}]0;x\u{7}b\nc"), "a\\u{1b}]0;x\\u{7}b\nc");
        assert_eq!(one_line("a\n\tb \u{202e}c"), "a b \\u{202e}c");
    }
}
