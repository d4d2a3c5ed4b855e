//! What people see: text, tables and colours. Everything goes through here, and through `anstream`,
//! which takes the colours out where there is no terminal, or where `NO_COLOR` is set.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use brigade_core::task_view::Look;
use brigade_core::text::{cut, one_line, plain};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unicode_width::UnicodeWidthStr;

use crate::error::{CliError, output_failed};

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

/// The style of a task's state.
pub(crate) fn task_style(look: Look) -> Style {
    match look {
        Look::Ready => READY,
        Look::Kept => Style::new(),
        Look::InProgress => BUSY,
        Look::Blocked | Look::Done => FAINT,
    }
}

/// Writes text to standard output in one go.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes bytes to standard output as they are: the wire's own, which nobody may change.
pub(crate) fn print_raw(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes a value as JSON, on one line.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut line = serde_json::to_vec(value).map_err(CliError::failed)?;
    line.push(b'\n');
    print_raw(&line)
}

/// Writes documents of the wire as one JSON array, each as it is.
pub(crate) fn print_array<'d>(
    documents: impl IntoIterator<Item = &'d [u8]>,
) -> Result<(), CliError> {
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

/// Writes a line to standard error. Where that cannot be done there is nobody to tell.
pub(crate) fn say(line: &str) {
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

/// The width to keep to, if somebody looks.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
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
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["NAME", "SUBJECT"]);
        table.row(["日本".into(), "one".into()]);
        table.row(["b".into(), "a long subject indeed".into()]);
        let text = anstream::adapter::strip_str(&table.render("", Some(18))).to_string();
        assert_eq!(text, "NAME  SUBJECT\n日本  one\nb     a long subj…\n");
    }
}
