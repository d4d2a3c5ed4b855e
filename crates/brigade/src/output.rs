//! Terminal output: text, tables and colours. All output goes through this module and `anstream`, which
//! removes the colours if there is no terminal or `NO_COLOR` is set.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Errors.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Hints.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// Names and headings.
pub(crate) const STRONG: Style = Style::new().bold();
/// Secondary details.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Ready to start.
pub(crate) const READY: Style = AnsiColor::Green.on_default();
/// In progress, or unread.
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();

/// Writes text to standard output in one write.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes bytes to standard output unchanged: stored documents must keep every byte.
pub(crate) fn print_raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes a value as JSON, on one line.
pub(crate) fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    print_raw(&line)
}

/// Writes stored documents as one JSON array, each with its bytes unchanged.
pub(crate) fn print_array<'d>(documents: impl IntoIterator<Item = &'d [u8]>) -> io::Result<()> {
    let documents: Vec<&[u8]> = documents.into_iter().collect();
    print_raw(&[b"[", documents.join(b",\n".as_slice()).as_slice(), b"]\n"].concat())
}

/// Whether the reader of standard output has closed it. A write would only notice on the next attempt.
pub(crate) fn is_abandoned() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
}

/// Whether a full-screen program uses the terminal, so that a line written now would garble it.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Sets whether a full-screen program uses the terminal. Until it ends, nothing is written to standard error.
pub(crate) fn set_taken(taken: bool) {
    TAKEN.store(taken, Ordering::Relaxed);
}

/// Writes a line to standard error. Ignores errors, because there is nowhere else to report them.
pub(crate) fn say(line: &str) {
    if TAKEN.load(Ordering::Relaxed) {
        return;
    }
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    let _ignored = writeln!(err, "{line}");
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    say(&format!("{HINT}note:{HINT:#} {}", plain(text)));
}

/// Prints a hint on standard error: what to do next.
pub(crate) fn hint(text: &str) {
    say(&format!("{HINT}hint:{HINT:#} {}", plain(text)));
}

/// A number with its noun: `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// The width of the terminal; `None` if standard output is not a terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
}

/// Escapes characters in untrusted text that could control the terminal or hide content: control characters,
/// text direction marks and invisible characters. Keeps line breaks, tabs, and the joiners that some scripts
/// and emoji need.
pub(crate) fn plain(text: &str) -> String {
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

/// Like [`plain`], on one line: every run of white space becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Cuts text to a width in columns and marks the cut with `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
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

/// Breaks a line between words so that no part is wider than `width`. A longer word is not broken.
pub(crate) fn wrap(line: &str, width: usize) -> Vec<&str> {
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

/// A time in the local time zone.
pub(crate) fn local(at: Timestamp) -> jiff::Zoned {
    // Tests use UTC, so that their output is the same on every machine.
    at.to_zoned(if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}

/// Formats a timestamp as local date and time. Text that is not a timestamp is returned as it is.
pub(crate) fn when(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(at) => local(at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => one_line(timestamp),
    }
}

/// Formats milliseconds since 1970 as local date and time.
pub(crate) fn when_ms(milliseconds: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()?;
    Some(local(at).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style. The text is reduced to one line and escaped.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self { text: one_line(text), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(Style::new(), text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// Rows in aligned columns. The last column is cut to the remaining width.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|text| Cell::new(FAINT, text)).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the table. Each line starts with `indent`; none is wider than `width`.
    pub(crate) fn render(&self, indent: &str, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let wide = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.width()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let room = width.map(|width| width.saturating_sub(before + indent.width()).max(8));
        let mut text = String::new();
        for row in &self.rows {
            text.push_str(indent);
            let mut gap = 0;
            for (column, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                let shown = match room {
                    Some(room) if column + 1 == columns => cut(&cell.text, room),
                    _ => cell.text.clone(),
                };
                if shown.is_empty() {
                    // Avoid trailing spaces.
                    gap += wide + 2;
                    continue;
                }
                let Cell { style, .. } = cell;
                let _infallible = write!(text, "{:gap$}{style}{shown}{style:#}", "");
                gap = wide.saturating_sub(shown.width()) + 2;
            }
            text.push('\n');
        }
        text
    }
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
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}]0;x\u{7}b\nc"), "a\\u{1b}]0;x\\u{7}b\nc");
        assert_eq!(one_line("a\n\tb \u{202e}c"), "a b \\u{202e}c");
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["NAME", "SUBJECT"]);
        table.row(["日本".into(), "one".into()]);
        table.row(["b".into(), "a long subject indeed".into()]);
        let text = anstream::adapter::strip_str(&table.render("", Some(18))).to_string();
        assert_eq!(text, "NAME  SUBJECT\n日本  one\nb     a long subj…\n");
    }
}
