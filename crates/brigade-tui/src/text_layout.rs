//! Text layout: wraps styled text into lines, and formats ages and numbers in few characters.

use brigade_core::projection::Millis;
use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tui_input::Input;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use brigade_core::text::{is_hidden, plain};

/// A character and its style.
type StyledChar = (char, Style);

/// Wraps styled text at spaces so that no line is wider than `width`. A word wider than `width` is split, so
/// that no text is lost.
pub(crate) fn wrap(spans: &[Span<'_>], width: usize) -> Vec<Line<'static>> {
    let styled_chars = |span: &Span<'_>| {
        let style = span.style;
        span.content.chars().map(|character| (character, style)).collect::<Vec<StyledChar>>()
    };
    let chars: Vec<StyledChar> = spans.iter().flat_map(styled_chars).collect();
    let mut rest = chars.as_slice();
    let mut lines = Vec::new();
    loop {
        let (end, next) = end_of_line(rest, width.max(1));
        lines.push(line(rest.get(..end).unwrap_or_default()));
        rest = rest.get(next..).unwrap_or_default();
        if rest.is_empty() {
            return lines;
        }
    }
}

/// Wraps untrusted text in one style. Control characters are made visible.
pub(crate) fn wrap_plain(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let text = plain(text);
    text.trim_end().lines().flat_map(|line| wrap(&[Span::styled(line, style)], width)).collect()
}

/// Inserts text at the cursor in one step. Inserting a long text character by character would be slow.
pub(crate) fn insert_at_cursor(input: &Input, text: impl Iterator<Item = char>) -> Input {
    let (value, cursor) = (input.value(), input.cursor());
    let text: String = text.collect();
    let cursor_after = cursor + text.chars().count();
    let before: String = value.chars().take(cursor).collect();
    let after: String = value.chars().skip(cursor).collect();
    Input::new(before + &text + &after).with_cursor(cursor_after)
}

/// Wraps the text that a person is editing at a fixed width. Keeps all spaces.
pub(crate) fn wrap_input(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for character in text.chars() {
        let is_break = character == '\n';
        // Pasted text may contain characters that would change how the terminal shows the rest.
        let character = if is_hidden(character) { ' ' } else { character };
        let Some(last) = lines.last_mut() else { break };
        if is_break
            || last.width() + UnicodeWidthStr::width(character.encode_utf8(&mut [0; 4]) as &str)
                > room
        {
            lines.push(if is_break { String::new() } else { character.to_string() });
        } else {
            last.push(character);
        }
    }
    lines
}

/// Returns the index where the first line ends and the index where the next line starts.
fn end_of_line(chars: &[StyledChar], width: usize) -> (usize, usize) {
    let (mut used, mut blank, mut is_in_word) = (0, None, false);
    for (index, (character, _)) in chars.iter().enumerate() {
        let char_width = character.width().unwrap_or_default();
        if *character == ' ' {
            // Spaces before the first word are indentation; do not break the line there.
            if is_in_word {
                blank = Some(index);
            }
        } else {
            if used + char_width > width {
                let hard = index.max(1);
                return blank.map_or((hard, hard), |blank| (blank, blank + 1));
            }
            is_in_word = true;
        }
        used += char_width;
    }
    (chars.len(), chars.len())
}

fn line(chars: &[StyledChar]) -> Line<'static> {
    let same = chars.chunk_by(|one, other| one.1 == other.1);
    let span = |chunk: &[StyledChar]| {
        let style = chunk.first().map(|styled| styled.1).unwrap_or_default();
        Span::styled(chunk.iter().map(|styled| styled.0).collect::<String>(), style)
    };
    Line::from(same.map(span).collect::<Vec<_>>())
}

/// Prepends spans to a line.
pub(crate) fn prepend(before: Vec<Span<'static>>, line: Line<'static>) -> Line<'static> {
    let mut spans = before;
    spans.extend(line.spans);
    Line::from(spans)
}

/// Puts a label before the first line and indents the other lines by the width of the label.
pub(crate) fn with_label(
    label: &str,
    width: usize,
    style: Style,
    lines: Vec<Line<'static>>,
) -> Vec<Line<'static>> {
    let label = |index| format!("{:width$}", if index == 0 { label } else { "" });
    let line = |(index, line)| prepend(vec![Span::styled(label(index), style)], line);
    lines.into_iter().enumerate().map(line).collect()
}

/// Returns the time from `then` to `now` as text, in seconds, minutes, hours or days.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Like [`age`], but takes `then` in milliseconds.
pub(crate) fn since(now: Timestamp, then: Millis) -> String {
    age(now, then.timestamp())
}

/// Formats a number in at most four characters: 950, 12k, 1.2M.
pub(crate) fn abbreviate(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => tenths(number, 1_000, 'k'),
        9_950..999_500 => format!("{}k", (number + 500) / 1_000),
        999_500..9_950_000 => tenths(number, 1_000_000, 'M'),
        _ => format!("{}M", (number + 500_000) / 1_000_000),
    }
}

fn tenths(number: u64, unit: u64, suffix: char) -> String {
    let tenths = (number * 10 + unit / 2) / unit;
    format!("{}.{}{suffix}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_spaces_and_long_words_are_split() {
        let check = |text: &'static str, width, lines: &[&str]| {
            let wrapped = wrap(&[Span::raw(text)], width);
            let wrapped: Vec<String> = wrapped.iter().map(ToString::to_string).collect();
            assert_eq!(wrapped, lines, "{text:?} at {width}");
        };
        check("", 5, &[""]);
        check("one two", 7, &["one two"]);
        check("one two", 6, &["one", "two"]);
        check("one two three", 8, &["one two", "three"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("ab cdefgh", 4, &["ab", "cdef", "gh"]);
        check("    set in", 8, &["    set", "in"]);
        check("字字字", 4, &["字字", "字"]);
        check("字", 1, &["字"]);
        check("abc", 0, &["a", "b", "c"]);
    }

    #[test]
    fn styles_survive_a_line_break() {
        let bold = Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let lines = wrap(&[Span::raw("a "), Span::styled("b c", bold), Span::raw(" d")], 3);
        let spans: Vec<Vec<(String, Style)>> = lines
            .iter()
            .map(|line| line.spans.iter().map(|s| (s.content.to_string(), s.style)).collect())
            .collect();
        let plain = Style::new();
        assert_eq!(
            spans,
            [
                vec![("a ".to_owned(), plain), ("b".to_owned(), bold)],
                vec![("c".to_owned(), bold), (" d".to_owned(), plain)],
            ]
        );
    }

    #[test]
    fn numbers_are_abbreviated() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (204_600, "205k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (1_250_000, "1.3M"),
            (12_300_000, "12M"),
        ] {
            assert_eq!(abbreviate(number), text);
        }
    }
}
