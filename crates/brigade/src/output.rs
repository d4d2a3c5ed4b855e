//! Terminal output: text, tables and colours. All output goes through this module and `anstream`, which
//! removes the colours if the output is not a terminal or `NO_COLOR` is set.

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

use crate::pager;

/// Style of the word `error:`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Style of the words `hint:` and `note:`.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// Style of names and headings.
pub(crate) const STRONG: Style = Style::new().bold();
/// Style of secondary details.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Style of tasks that are ready to start and members that are idle.
pub(crate) const READY: Style = AnsiColor::Green.on_default();
/// Style of work in progress and unread messages.
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();

/// Returns the style for a task's state.
pub(crate) fn task_style(state: TaskView) -> Style {
    match state {
        TaskView::Ready => READY,
        TaskView::Kept => Style::new(),
        TaskView::InProgress => BUSY,
        TaskView::Blocked | TaskView::Done => FAINT,
    }
}

/// Writes text to standard output in one write, or to the pager.
pub(crate) fn print(text: &str) -> Result<(), HostError> {
    if let Some(written) = pager::write(text) {
        return written.map_err(output_failed);
    }
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes text to the top of the terminal, in place of what it showed before.
pub(crate) fn redraw(text: &str) -> Result<(), HostError> {
    // To the first column of the first line; the rest of each line, and the lines below, are cleared.
    let lines: String = text.lines().map(|line| format!("{line}\x1b[K\n")).collect();
    let mut out = anstream::AutoStream::always_ansi(io::stdout().lock());
    let write = out.write_all(format!("\x1b[H{lines}\x1b[J").as_bytes());
    write.and_then(|()| out.flush()).map_err(output_failed)
}

/// Writes bytes to standard output unchanged. Used for stored documents, in which every byte must stay the same.
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

/// Writes stored documents as one JSON array, without changing the bytes of any document.
pub(crate) fn print_array<'d>(
    documents: impl IntoIterator<Item = &'d [u8]>,
) -> Result<(), HostError> {
    let documents: Vec<&[u8]> = documents.into_iter().collect();
    print_raw(&[b"[", documents.join(b",\n".as_slice()).as_slice(), b"]\n"].concat())
}

/// Returns whether the reader has closed standard output, without waiting until a write fails.
pub(crate) fn is_stdout_closed() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
}

/// Writes a line to standard error. Ignores write errors, because there is nowhere else to report them.
pub(crate) fn eprint_line(line: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    let _ignored = writeln!(err, "{line}");
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    eprint_line(&format!("{HINT}note:{HINT:#} {}", plain(text)));
}

/// Prints a warning on standard error.
pub(crate) fn warning(text: &str) {
    eprint_line(&format!("{BUSY}warning:{BUSY:#} {}", plain(text)));
}

/// Prints a hint (advice on what to do next) on standard error.
pub(crate) fn hint(text: &str) {
    eprint_line(&format!("{HINT}hint:{HINT:#} {}", plain(text)));
}

/// Returns the width of the terminal; `None` if standard output is not a terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
}

/// Converts a time to the local time zone.
pub(crate) fn local(at: Timestamp) -> jiff::Zoned {
    // Tests use UTC, so that their output is the same on every machine.
    at.to_zoned(if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}

/// Formats a timestamp as local date and time. A text that is not a timestamp is returned as one line.
pub(crate) fn when(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(at) => local(at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => one_line(timestamp),
    }
}

/// Formats a time, given in milliseconds since 1970, as local date and time.
pub(crate) fn when_ms(milliseconds: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()?;
    Some(local(at).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Formats a number of seconds in a readable unit.
pub(crate) fn duration(seconds: impl Into<i128>) -> String {
    match seconds.into() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Creates a cell with this style. Joins the text into one line and escapes control characters.
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

/// The width to which a table that is too wide shrinks a column at most.
const MIN_COLUMN: usize = 4;
/// The width to which a table that is too wide shrinks its last column before the others.
const MIN_LAST_COLUMN: usize = 8;

/// A table with aligned columns. If it is too wide, cells of the last column are cut, and then those of the widest
/// columns.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table with these headings.
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
        let mut widths: Vec<usize> = (0..columns).map(wide).collect();
        if let Some(width) = width {
            let gaps = 2 * columns.saturating_sub(1) + indent.width();
            shrink(&mut widths, width.saturating_sub(gaps));
        }
        let mut text = String::new();
        for row in &self.rows {
            text.push_str(indent);
            let mut gap = 0;
            for (cell, wide) in row.iter().zip(&widths) {
                let shown = cut(&cell.text, *wide);
                if shown.is_empty() {
                    // Do not print an empty cell yet: it may be the last one, and lines must not end with spaces.
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

/// Shrinks columns until they have at most `room` columns of the terminal together, or cannot shrink further.
fn shrink(widths: &mut [usize], room: usize) {
    let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
    if let Some(last) = widths.last_mut() {
        let cut = excess.min(last.saturating_sub(MIN_LAST_COLUMN));
        *last -= cut;
        excess -= cut;
    }
    while excess > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_COLUMN) else {
            return;
        };
        *widest -= 1;
        excess -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B21: the lines of a table were wider than the terminal if its first columns were wide.
    #[test]
    fn b21_a_wide_table_fits_a_narrow_terminal() {
        let mut table = Table::new(&["AGENT", "PLAN MODE ENFORCED BY", "PROGRAM"]);
        table.row(["codex".into(), "permission requests".into(), "/usr/bin/codex".into()]);
        let text = anstream::adapter::strip_str(&table.render("", Some(30))).to_string();
        assert_eq!(text, "AGENT  PLAN MODE EN…  PROGRAM\ncodex  permission r…  /usr/bi…\n");
        assert!(text.lines().all(|line| line.width() <= 30), "{text}");
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
