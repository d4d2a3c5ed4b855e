//! Shows long output in a pager, as git does: if it does not fit the terminal, it goes through `$BRIGADE_PAGER`, `$PAGER`
//! or `less`.
//!
//! The output is kept until it is longer than the terminal. Only then the pager is started, so that short output needs none.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::ColorChoice;
use tokio::signal::unix::{Signal, SignalKind, signal};
use unicode_width::UnicodeWidthStr as _;

use crate::env;

/// The options of `less` if the user has not set `LESS`: quit if the text fits, show colours, leave the text on the screen.
const LESS_OPTIONS: &str = "FRX";

/// Where the output of this process goes. `None` if it goes to standard output directly.
static OUTPUT: Mutex<Option<PagedOutput>> = Mutex::new(None);

/// The output of a command that may be long.
struct PagedOutput {
    pager: String,
    columns: usize,
    lines: usize,
    state: PagerState,
}

enum PagerState {
    /// The text so far, and how many lines of the terminal it needs.
    Kept(String, usize),
    /// The pager has the text so far.
    Running(RunningPager),
    /// The user has left the pager, or it could not be started.
    Ended,
}

struct RunningPager {
    program: Child,
    input: Option<ChildStdin>,
    /// Ctrl-C is for the pager. While this value exists, it does not end this process.
    _interrupts: Option<Signal>,
}

/// Lets the output of this process go through a pager if it is too long for the terminal.
pub(crate) fn start() {
    if !io::stdout().is_terminal() || env::read(env::TERM).is_none_or(|term| term == "dumb") {
        return;
    }
    let Some((width, height)) = terminal_size::terminal_size() else { return };
    let Some(pager) = program() else { return };
    let state = PagerState::Kept(String::new(), 0);
    let (columns, lines) = (usize::from(width.0), usize::from(height.0));
    *lock() = Some(PagedOutput { pager, columns, lines, state });
}

/// Returns the command that shows text in pages; `None` if the user wants none.
fn program() -> Option<String> {
    let named = [env::BRIGADE_PAGER, env::PAGER].into_iter().find_map(std::env::var_os);
    match named {
        None => Some("less".to_owned()),
        Some(named) => {
            let named = named.into_string().ok()?;
            (!named.trim().is_empty() && named.trim() != "cat").then_some(named)
        }
    }
}

/// Writes text to the pager, or keeps it. Returns `None` if the output does not go through a pager.
pub(crate) fn write(text: &str) -> Option<io::Result<()>> {
    lock().as_mut().map(|output| output.write(text))
}

/// Prints the text that was kept, or waits until the user leaves the pager.
pub(crate) fn finish() -> io::Result<()> {
    let Some(mut output) = lock().take() else { return Ok(()) };
    match &mut output.state {
        PagerState::Kept(text, _) => print(text),
        PagerState::Running(pager) => {
            drop(pager.input.take());
            pager.program.wait().map(drop)
        }
        PagerState::Ended => Ok(()),
    }
}

impl PagedOutput {
    fn write(&mut self, text: &str) -> io::Result<()> {
        let kept = match &mut self.state {
            PagerState::Ended => return Err(io::ErrorKind::BrokenPipe.into()),
            PagerState::Running(pager) => {
                let written = pager.write(text);
                if written.is_err() {
                    // The user reads on, or has left the pager.
                    let ended = pager.program.wait().map(drop);
                    self.state = PagerState::Ended;
                    return ended.and(written);
                }
                return Ok(());
            }
            PagerState::Kept(kept, lines) => {
                kept.push_str(text);
                *lines += height(text, self.columns);
                // One line is for the prompt of the shell.
                if *lines < self.lines {
                    return Ok(());
                }
                std::mem::take(kept)
            }
        };
        match RunningPager::start(&self.pager) {
            Ok(pager) => {
                self.state = PagerState::Running(pager);
                self.write(&kept)
            }
            Err(error) => {
                tracing::debug!(%error, pager = self.pager, "cannot start the pager");
                // Keep nothing from now on: the output goes to the terminal.
                (self.lines, self.state) = (usize::MAX, PagerState::Kept(String::new(), 0));
                print(&kept)
            }
        }
    }
}

impl RunningPager {
    fn start(pager: &str) -> io::Result<Self> {
        // As git does, ask a shell only if the command is more than words.
        let is_plain = |char: char| char.is_alphanumeric() || "-_./:+,=@% ".contains(char);
        let mut words = pager.split_whitespace();
        let mut command = match words.next() {
            Some(program) if pager.chars().all(is_plain) && !program.contains('=') => {
                let mut command = Command::new(program);
                command.args(words);
                command
            }
            _ => {
                let mut command = Command::new("sh");
                command.args(["-c", pager]);
                command
            }
        };
        if env::read(env::LESS).is_none() {
            command.env(env::LESS, LESS_OPTIONS);
        }
        // The handler stays for the rest of the process. Without a runtime, Ctrl-C ends both.
        let interrupts = tokio::runtime::Handle::try_current()
            .ok()
            .and_then(|_| signal(SignalKind::interrupt()).ok());
        let mut program = command.stdin(Stdio::piped()).spawn()?;
        let input = program.stdin.take();
        Ok(Self { program, input, _interrupts: interrupts })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // The pager shows colours if the terminal does.
        match anstream::AutoStream::choice(&io::stdout()) {
            ColorChoice::Never => write!(input, "{}", anstream::adapter::strip_str(text))?,
            _ => input.write_all(text.as_bytes())?,
        }
        input.flush()
    }
}

/// Returns how many lines of the terminal a text needs.
fn height(text: &str, columns: usize) -> usize {
    let shown = anstream::adapter::strip_str(text).to_string();
    shown.lines().map(|line| line.width().max(1).div_ceil(columns.max(1))).sum()
}

fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

fn lock() -> MutexGuard<'static, Option<PagedOutput>> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_need_several_lines_of_the_terminal() {
        assert_eq!(height("", 80), 0);
        assert_eq!(height("a\n\nb\n", 80), 3);
        assert_eq!(height(&"x".repeat(161), 80), 3);
        assert_eq!(height("\u{1b}[1mabc\u{1b}[0m\n", 3), 1);
    }
}
