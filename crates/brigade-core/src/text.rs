//! Text helpers for every front end: make text safe for a terminal, limit its width, format counts.

use jiff::SignedDuration;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Formats a number with its noun: `1 task`, `2 tasks`.
pub fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// Formats how long ago something happened: `just now`, `5 min ago`.
pub fn age(age: SignedDuration) -> String {
    match age.as_secs() {
        ..10 => "just now".to_owned(),
        secs @ 10..60 => format!("{secs} s ago"),
        secs @ 60..3600 => format!("{} min ago", secs / 60),
        secs @ 3600..86400 => format!("{} h ago", secs / 3600),
        secs => format!("{} d ago", secs / 86400),
    }
}

/// Formats a number of bytes: `512 bytes`, `4.1 kB`, `25 MB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return count(usize::try_from(bytes).unwrap_or_default(), "byte");
    }
    let (mut tenths, mut unit) = (bytes / 100, "kB");
    for larger in ["MB", "GB", "TB"] {
        if tenths < 10_000 {
            break;
        }
        (tenths, unit) = (tenths / 1000, larger);
    }
    if tenths < 100 {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    } else {
        format!("{} {unit}", tenths / 10)
    }
}

/// Returns whether a terminal shows nothing for a character, or obeys it: control characters, text direction marks
/// and invisible characters. White space other than control characters is not hidden.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{16fe4}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// In untrusted text, escapes characters that could control the terminal or hide content ([`is_hidden`]). Keeps line
/// breaks, and writes a tab as four spaces. Keeps a joiner or a variation selector where scripts and emoji need it: between or after
/// characters outside ASCII.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text;
    loop {
        // Most text is printable ASCII, which needs no escapes. Copy it in one step: a mailbox may hold megabytes of it.
        let is_printable = |byte: &u8| (b' '..=b'~').contains(byte);
        let len = rest.bytes().take_while(is_printable).count();
        let Some((ascii, tail)) = rest.split_at_checked(len) else { break };
        plain.push_str(ascii);
        before = ascii.chars().next_back().or(before);
        let mut characters = tail.chars();
        let Some(c) = characters.next() else { break };
        rest = characters.as_str();
        let after_sign =
            before.is_some_and(|before: char| !before.is_ascii() && !is_hidden(before));
        let before_sign =
            rest.chars().next().is_some_and(|next| !next.is_ascii() && !is_hidden(next));
        let is_needed = match c {
            '\t' => {
                plain.push_str("    ");
                before = Some(c);
                continue;
            }
            '\n' => true,
            '\u{200c}' | '\u{200d}' => {
                // An emoji before a joiner may have a variation selector.
                let after_selector =
                    before.is_some_and(|before| matches!(before, '\u{fe0e}' | '\u{fe0f}'));
                (after_sign || after_selector) && before_sign
            }
            '\u{fe0e}' | '\u{fe0f}' => after_sign,
            _ => false,
        };
        if is_hidden(c) && !is_needed {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
        before = Some(c);
    }
    plain
}

/// The sign that [`exact`] writes for a tab.
const TAB_SIGN: char = '\u{21e5}';

/// Writes untrusted text on one line so that the line determines the text, and so that each character is seen. A
/// tab becomes `⇥`. Other control characters, invisible characters and unusual spaces become `\u{HEX}`, and so do
/// characters that could be taken for the result of an escape, or for no character at all: a character without width is
/// kept only if it is a combining mark of the letter before it.
pub fn exact(text: &str) -> String {
    let mut exact = String::with_capacity(text.len());
    let mut letter = None;
    for (at, c) in text.char_indices() {
        let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
        let is_unusual_space = c != ' ' && c.is_whitespace();
        let is_escaped = match c {
            '\t' => {
                exact.push(TAB_SIGN);
                continue;
            }
            '\\' => rest.starts_with("u{"),
            ' ' => rest.is_empty(),
            TAB_SIGN => true,
            _ if c.width() == Some(0) => {
                is_hidden(c) || !letter.is_some_and(|letter| is_mark_of(letter, c))
            }
            _ => is_hidden(c) || is_unusual_space,
        };
        if c.width() != Some(0) {
            letter = Some(c).filter(|c| c.is_alphabetic());
        }
        if is_escaped {
            exact.extend(c.escape_unicode());
        } else {
            exact.push(c);
        }
    }
    exact
}

/// Returns whether a character without width is a combining mark that is seen on this letter: a mark for letters of
/// all scripts, or one of the letter's own script, which is near it in Unicode.
fn is_mark_of(letter: char, mark: char) -> bool {
    let is_common = matches!(
        mark,
        '\u{300}'..='\u{36f}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    );
    is_common || u32::from(letter) >> 8 == u32::from(mark) >> 8
}

/// Like [`plain`], but on one line: each sequence of white space becomes one space.
pub fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the first line of a text, at most `width` columns wide, and the number of its other lines: `make all … (+2 lines)`. Like
/// [`one_line`], but does not join lines.
pub fn first_line(text: &str, width: usize) -> String {
    let mut lines = text.trim().lines();
    let first = one_line(lines.next().unwrap_or_default());
    with_line_count(&first, lines.count(), width)
}

/// Adds the number of the other lines to the first line of a text, and cuts the line so that both are at most `width` columns wide.
pub(crate) fn with_line_count(first: &str, others: usize, width: usize) -> String {
    let others = match others {
        0 => return cut(first, width),
        others => format!("(+{})", count(others, "line")),
    };
    let whole = format!("{first} … {others}");
    if whole.width() <= width {
        return whole;
    }
    cut(&format!("{} {others}", cut(first, width.saturating_sub(others.width() + 1))), width)
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
    // No character is wider than its number of bytes, so a short text need not be measured.
    while rest.len() > width && rest.width() > width {
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
    fn ages_use_a_readable_unit() {
        for (secs, expected) in [
            (-5, "just now"),
            (9, "just now"),
            (10, "10 s ago"),
            (119, "1 min ago"),
            (3600, "1 h ago"),
            (86_399, "23 h ago"),
            (200_000, "2 d ago"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(secs)), expected);
        }
    }

    #[test]
    fn a_size_has_two_or_three_digits() {
        let check = |bytes, text: &str| assert_eq!(size(bytes), text);
        check(0, "0 bytes");
        check(1, "1 byte");
        check(999, "999 bytes");
        check(1000, "1.0 kB");
        check(12_345, "12 kB");
        check(999_999, "999 kB");
        check(1_500_000, "1.5 MB");
        check(10_000_000_000, "10 GB");
        check(u64::MAX, "18446744 TB");
    }

    /// The shortcut for printable ASCII must not change the result.
    #[test]
    fn plain_escapes_between_and_after_ascii() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text), expected, "{text:?}");
        check("", "");
        check("a~ b", "a~ b");
        check("a\tb\nc\u{7f}d", "a    b\nc\\u{7f}d");
        check("a\u{200d}b", "a\\u{200d}b");
        check("é\u{200d}é", "é\u{200d}é");
        check("éa\u{200d}é", "éa\\u{200d}é");
        check("é\u{200d}", "é\\u{200d}");
        check("\u{1b}[1m", "\\u{1b}[1m");
    }

    #[test]
    fn cut_counts_columns_not_characters() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello world", 7), "hello…");
        assert_eq!(cut("日本語です", 5), "日本…");
    }

    #[test]
    fn the_other_lines_of_a_text_are_counted() {
        for (text, width, line) in [
            ("", 20, ""),
            ("one  line\n", 20, "one line"),
            ("\n first\nsecond\n\nlast\n", 40, "first … (+3 lines)"),
            ("first\r\nsecond", 40, "first … (+1 line)"),
            ("a long first line\nsecond", 20, "a long fi… (+1 line)"),
            ("0123456789\nsecond", 20, "0123456789 (+1 line)"),
            ("first\u{1b}[2J\nsecond", 40, "first\\u{1b}[2J … (+1 line)"),
            ("first\nsecond", 4, "… (…"),
        ] {
            assert_eq!(first_line(text, width), line, "{text:?}");
        }
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
    fn joiners_are_kept_only_where_scripts_and_emoji_need_them() {
        for kept in ["👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "نمی\u{200c}خواهم", "a\u{a0}b"]
        {
            assert_eq!(plain(kept), kept);
        }
        assert_eq!(plain("ap\u{200d}prove"), "ap\\u{200d}prove");
        assert_eq!(plain("x\u{fe0f}"), "x\\u{fe0f}");
        assert_eq!(plain("❤\u{fe0f}\u{fe0f}"), "❤\u{fe0f}\\u{fe0f}");
        assert_eq!(plain("❤\u{e0100}\u{2028}"), "❤\\u{e0100}\\u{2028}");
    }

    #[test]
    fn an_exact_line_shows_every_character_and_determines_the_text() {
        for (text, line) in [
            ("ls -l", "ls -l"),
            ("a\tb", "a⇥b"),
            ("a⇥b", "a\\u{21e5}b"),
            ("a\nb\r", "a\\u{a}b\\u{d}"),
            ("sed 's/\\n/x/'", "sed 's/\\n/x/'"),
            ("\\u{202e}", "\\u{5c}u{202e}"),
            ("\u{202e}", "\\u{202e}"),
            ("\\\u{202e}", "\\\\u{202e}"),
            ("ls ", "ls\\u{20}"),
            ("a\u{a0}b\u{3000}", "a\\u{a0}b\\u{3000}"),
            ("👩\u{200d}💻", "👩\\u{200d}💻"),
            ("\u{301}e\u{301}", "\\u{301}e\u{301}"),
            ("e\u{301}\u{302} \u{301}", "e\u{301}\u{302} \\u{301}"),
            ("a\u{16fe4}b", "a\\u{16fe4}b"),
            ("1\u{301}-\u{5b0}", "1\\u{301}-\\u{5b0}"),
            ("a\u{941}a\u{5b0}", "a\\u{941}a\\u{5b0}"),
            ("\u{5d0}\u{5b0}\u{915}\u{941}", "\u{5d0}\u{5b0}\u{915}\u{941}"),
        ] {
            assert_eq!(exact(text), line);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}]0;x\u{7}b\nc"), "a\\u{1b}]0;x\\u{7}b\nc");
        assert_eq!(one_line("a\n\tb \u{202e}c"), "a b \\u{202e}c");
    }
}
