//! Terminal output: text, tables and colours. All output goes through this module and `anstream`, which
//! removes the colours if there is no terminal or `NO_COLOR` is set.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use brigade_core::task_view::TaskView;
use brigade_core::text::{cut, one_line, plain};
use brigade_host::HostError;
use brigade_host::error::output_failed;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unicode_width::UnicodeWidthStr;

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

/// The style of a task's state.
pub(crate) fn task_style(state: TaskView) -> Style {
    match state {
        TaskView::Ready => READY,
        TaskView::Kept => Style::new(),
        TaskView::InProgress => BUSY,
        TaskView::Blocked | TaskView::Done => FAINT,
    }
}

/// Writes text to standard output in one write.
pub(crate) fn print(text: &str) -> Result<(), HostError> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes bytes to standard output unchanged: stored documents must keep every byte.
pub(crate) fn print_raw(bytes: &[u8]) -> Result<(), HostError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes a value as JSON, on one line.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), HostError> {
    let mut line = serde_json::to_vec(value).map_err(HostError::failed)?;
    line.push(b'\n');
    print_raw(&line)
}

/// Writes stored documents as one JSON array, each with its bytes unchanged.
pub(crate) fn print_array<'d>(
    documents: impl IntoIterator<Item = &'d [u8]>,
) -> Result<(), HostError> {
    let documents: Vec<&[u8]> = documents.into_iter().collect();
    print_raw(&[b"[", documents.join(b",\n".as_slice()).as_slice(), b"]\n"].concat())
}

/// Whether the reader of standard output has closed it. A write would only notice on the next attempt.
pub(crate) fn is_stdout_closed() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
}

/// Writes a line to standard error. Ignores errors, because there is nowhere else to report them.
pub(crate) fn eprint_line(line: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    let _ignored = writeln!(err, "{line}");
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    eprint_line(&format!("{HINT}note:{HINT:#} {}", plain(text)));
}

/// Prints a hint on standard error: what to do next.
pub(crate) fn hint(text: &str) {
    eprint_line(&format!("{HINT}hint:{HINT:#} {}", plain(text)));
}

/// The width of the terminal; `None` if standard output is not a terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
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
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["NAME", "SUBJECT"]);
        table.row(["日本".into(), "one".into()]);
        table.row(["b".into(), "a long subject indeed".into()]);
        let text = anstream::adapter::strip_str(&table.render("", Some(18))).to_string();
        assert_eq!(text, "NAME  SUBJECT\n日本  one\nb     a long subj…\n");
    }
}
