//! Terminal output: text, tables and colours. All output goes through this module and `anstream`, which
//! removes the colours if the output is not a terminal or `NO_COLOR` is set.

mod table;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use brigade_core::task_view::TaskView;
use brigade_core::text::{one_line, plain, wrap};
use brigade_host::HostError;
use brigade_host::error::output_failed;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::table::{Cell, Table};
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

/// Renders a text after `lead`, and breaks it between words so that no line is wider than `width`. The later lines begin with
/// `indent` spaces. `lead` may have styles.
pub(crate) fn hanging(
    lead: &str,
    text: &str,
    style: Style,
    indent: usize,
    width: Option<usize>,
) -> String {
    let taken = anstream::adapter::strip_str(lead).to_string().width();
    let room = |taken: usize| width.map_or(usize::MAX, |width| width.saturating_sub(taken));
    let first = wrap(text, room(taken)).first().copied().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or_default().trim_start();
    let mut shown = format!("{lead}{style}{first}{style:#}\n");
    if !rest.is_empty() {
        for part in wrap(rest, room(indent)) {
            let _infallible = writeln!(shown, "{:indent$}{style}{part}{style:#}", "");
        }
    }
    shown
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_has_a_hanging_indent() {
        let check = |width, expected: &str| {
            let lead = format!("{STRONG}no-codex{STRONG:#}  ");
            let text = hanging(&lead, "the program of bob is missing", Style::new(), 2, width);
            let shown = anstream::adapter::strip_str(&text).to_string();
            assert_eq!(shown, expected);
            let width = width.unwrap_or(usize::MAX);
            assert!(shown.lines().all(|line| line.width() <= width), "{shown}");
        };
        check(None, "no-codex  the program of bob is missing\n");
        check(Some(39), "no-codex  the program of bob is missing\n");
        check(Some(38), "no-codex  the program of bob is\n  missing\n");
        check(Some(22), "no-codex  the program\n  of bob is missing\n");
    }
}
