//! Sets up the terminal for the dashboard, and restores it however the program ends.

use std::io::{self, Write, stdout};
use std::mem::ManuallyDrop;
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use data_encoding::BASE64;
use ratatui::Terminal as Tui;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use brigade_core::text;

use super::canvas::FrameInfo;
use super::screen::Screen;

/// Maximum length of copied text, in bytes. Terminals drop longer escape sequences, and some then drop all
/// output that follows.
const MAX_COPY_BYTES: usize = 74_000;

/// The terminal while the dashboard controls it.
pub(crate) struct Terminal {
    /// Never dropped. `Tui::drop` shows the cursor. If that fails, `Tui::drop` prints to standard
    /// error. Without a terminal, printing fails too and causes a panic.
    tui: ManuallyDrop<Tui<CrosstermBackend<io::Stdout>>>,
    mouse: bool,
}

impl Terminal {
    /// Sets up the terminal: raw mode, alternate screen, and mouse reporting if `mouse` is set.
    pub(crate) fn set_up(mouse: bool) -> io::Result<Self> {
        // Restore the terminal before a panic message is printed.
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            previous(panic);
        }));
        end_with_terminal()?;
        let tui = ManuallyDrop::new(Tui::new(CrosstermBackend::new(stdout()))?);
        let mut terminal = Self { tui, mouse };
        terminal.enter()?;
        Ok(terminal)
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        if self.mouse {
            // Report only clicks and the wheel. Reporting every mouse movement would flood an ssh connection.
            write_sequence("\x1b[?1000h\x1b[?1006h")?;
        }
        self.clear()
    }

    /// Restores the terminal, calls `run`, and then sets the terminal up again for the dashboard.
    pub(crate) async fn release_while<T>(&mut self, run: impl AsyncFnOnce() -> T) -> io::Result<T> {
        restore();
        let result = run().await;
        self.enter()?;
        Ok(result)
    }

    /// Draws the screen.
    pub(crate) fn draw(&mut self, screen: &Screen) -> io::Result<FrameInfo> {
        let mut info = FrameInfo::default();
        self.tui.draw(|frame| {
            info = screen.draw(frame.buffer_mut());
            if let Some(cursor) = info.cursor {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(info)
    }

    /// Forces a full redraw, because another program may have written to the screen.
    ///
    /// Does not use [`Tui::clear`], which asks the terminal for the cursor position and waits for the answer.
    /// Some terminals never answer, over ssh the answer takes a round trip, and the task that reads keys may
    /// consume the answer.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        // With an empty previous buffer, the next draw writes every cell.
        self.tui.swap_buffers();
        Ok(())
    }

    /// Copies text to the clipboard through the terminal (OSC 52). This works over ssh and in tmux.
    pub(crate) fn copy(&self, text: &str) -> io::Result<()> {
        let mut end = text.len().min(MAX_COPY_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = BASE64.encode(text.get(..end).unwrap_or_default().as_bytes());
        write_sequence(&format!("\x1b]52;c;{text}\x07"))
    }

    /// Rings the bell. Terminals that support OSC 9 also show a notification.
    pub(crate) fn notify(&self, text: &str) -> io::Result<()> {
        write_sequence(&notification(text))
    }
}

/// Returns the sequence that rings the bell and shows a notification.
fn notification(text: &str) -> String {
    let text: String = text.chars().filter(|c| !text::is_hidden(*c)).take(200).collect();
    format!("\x07\x1b]9;{text}\x07")
}

fn write_sequence(sequence: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// After the terminal is gone, the process waits this long for the event loop to exit. Then the process ends.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// Ends the process when its terminal is gone, for example after a broken connection. The hang-up signal is
/// not enough: crossterm reads keys on the thread that would handle the signal, treats end of input as no
/// input, and keeps reading forever.
fn end_with_terminal() -> io::Result<()> {
    let wait = || {
        let input = io::stdin();
        loop {
            // With no events requested, `poll` returns only on hang-up or error.
            let mut ends = [PollFd::new(&input, PollFlags::empty())];
            match poll(&mut ends, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        std::thread::sleep(EXIT_GRACE);
        std::process::exit(0);
    };
    std::thread::Builder::new().name("brigade-terminal".into()).spawn(wait).map(drop)
}

/// Restores the terminal. Errors are ignored, because a terminal that is gone needs no restoring.
fn restore() {
    let _ignored = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ignored = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal};

    use super::notification;

    #[test]
    fn finding_15_a_notification_contains_no_sequence_of_a_member() {
        for text in HOSTILE {
            let sequence = notification(text);
            let inner = sequence.strip_prefix("\u{7}\u{1b}]9;").unwrap();
            assert_safe_for_terminal(inner.strip_suffix('\u{7}').unwrap(), text);
        }
    }
}
