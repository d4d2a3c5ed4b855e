//! What people see: text, tables and colours. Everything goes through here, and through `anstream`,
//! which takes the colours out where there is no terminal, or where `NO_COLOR` is set.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What is wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What to do about it.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// What one looks for first.
pub(crate) const STRONG: Style = Style::new().bold();
/// What one needs least.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Could be begun now.
pub(crate) const READY: Style = AnsiColor::Green.on_default();
/// Under way, or waiting to be read.
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();

/// Writes text to standard output in one go.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes bytes to standard output as they are: the wire's own, which nobody may change.
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

/// Writes documents of the wire as one JSON array, each as it is.
pub(crate) fn print_array<'d>(documents: impl IntoIterator<Item = &'d [u8]>) -> io::Result<()> {
    let documents: Vec<&[u8]> = documents.into_iter().collect();
    print_raw(&[b"[", documents.join(b",\n".as_slice()).as_slice(), b"]\n"].concat())
}

/// Whether the reader of standard output has gone, which writing would only find out the next time.
pub(crate) fn is_abandoned() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let looked = poll(&mut fds, Some(&now));
    looked.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
}

/// Whether the terminal shows something that lines of ours would be written over.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Says whether the terminal is taken: until it is free again nothing is said there.
pub(crate) fn set_taken(taken: bool) {
    TAKEN.store(taken, Ordering::Relaxed);
}

/// Writes a line to standard error. Where that cannot be done there is nobody to tell.
pub(crate) fn say(line: &str) {
    if TAKEN.load(Ordering::Relaxed) {
        return;
    }
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    let _nobody = writeln!(err, "{line}");
}

/// Says on standard error what is not the answer, but worth knowing.
pub(crate) fn note(text: &str) {
    say(&format!("{HINT}note:{HINT:#} {}", plain(text)));
}

/// Says on standard error what can be done next.
pub(crate) fn hint(text: &str) {
    say(&format!("{HINT}hint:{HINT:#} {}", plain(text)));
}

/// So many of something.
pub(crate) fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// The width to keep to, if somebody looks.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
}

/// Text that does nothing to a terminal and hides nothing: what others wrote may hold escape sequences,
/// characters that turn the direction of writing, and such as nobody sees. Line breaks and tabs stay, and so
/// do those that join the signs of a script or an emoji.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
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
        if turns || hides || (c.is_control() && c != '\n' && c != '\t') {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The same on one line: white space of any kind becomes a space.
pub(crate) fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Text cut to a width, the cut shown.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let its = c.width().unwrap_or_default();
        if its > room {
            break;
        }
        room -= its;
        cut.push(c);
    }
    cut.truncate(cut.trim_end().len());
    cut + "…"
}

/// A line broken between words so that no part is wider than `width`. A word that is wider stays whole.
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

/// A time as a person of this place tells it.
pub(crate) fn local(at: Timestamp) -> jiff::Zoned {
    // What a test draws is the same on every machine.
    at.to_zoned(if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}

/// The day and the time of a wire timestamp; as written, if it is none.
pub(crate) fn when(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(at) => local(at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => one_line(timestamp),
    }
}

/// The same for milliseconds since 1970.
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
    /// A cell in a style. What it says is made harmless.
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

/// Rows in aligned columns. The last column takes what room there is.
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

    /// The table as text, each line behind `indent`, none wider than `width`.
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
                    // No blanks at the end of a line.
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
    fn a_cut_counts_columns_not_characters() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello world", 7), "hello…");
        assert_eq!(cut("日本語です", 5), "日本…");
    }

    #[test]
    fn a_line_is_broken_between_words() {
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
    fn nothing_in_a_text_reaches_the_terminal_as_a_command() {
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
