//! The terminal: taken, and given back as it was, however the program ends.

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

use super::canvas::Drawn;
use super::frame;
use super::screen::Screen;

/// The most that is put where one pastes from: terminals drop what is longer, some with all that follows.
const MOST: usize = 74_000;

/// The terminal, while it is ours.
pub(crate) struct Terminal {
    /// Never dropped: it would show the cursor once more, and where the terminal is gone complain on a
    /// standard error that is gone too, which is a panic.
    tui: ManuallyDrop<Tui<CrosstermBackend<io::Stdout>>>,
    mouse: bool,
}

impl Terminal {
    /// Takes the terminal.
    pub(crate) fn take(mouse: bool) -> io::Result<Self> {
        // Whoever panics says so on a terminal that is in order again.
        let said = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            said(panic);
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
            // Clicks and the wheel, and not every movement, which is a flood over ssh.
            say("\x1b[?1000h\x1b[?1006h")?;
        }
        self.clear()
    }

    /// Gives the terminal away for as long as something else runs in it.
    pub(crate) async fn lend<T>(&mut self, run: impl AsyncFnOnce() -> T) -> io::Result<T> {
        give_back();
        let came = run().await;
        self.enter()?;
        Ok(came)
    }

    /// Draws the screen.
    pub(crate) fn draw(&mut self, screen: &Screen) -> io::Result<Drawn> {
        let mut drawn = Drawn::default();
        self.tui.draw(|frame| {
            drawn = frame::draw(screen, frame.buffer_mut());
            if let Some(cursor) = drawn.cursor {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(drawn)
    }

    /// Draws everything anew, whatever others wrote over it.
    ///
    /// Not by [`Tui::clear`]: that asks the terminal where its cursor is, and waits for an answer which some
    /// never give, which is a journey over ssh, and which whoever reads the keys may take first.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        // What was drawn last is forgotten, and what is drawn next is compared with nothing.
        self.tui.swap_buffers();
        Ok(())
    }

    /// Puts a text where the terminal's owner pastes from, over ssh and through tmux too.
    pub(crate) fn copy(&self, text: &str) -> io::Result<()> {
        let mut end = text.len().min(MOST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = BASE64.encode(text.get(..end).unwrap_or_default().as_bytes());
        say(&format!("\x1b]52;c;{text}\x07"))
    }

    /// Gets the attention of whoever does not look: a bell, and a notice where terminals have them.
    pub(crate) fn notify(&self, text: &str) -> io::Result<()> {
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(200).collect();
        say(&format!("\x07\x1b]9;{text}\x07"))
    }
}

fn say(sequence: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// How long the loop has to end by itself once the terminal is gone.
const LAST: Duration = Duration::from_millis(500);

/// Sees to it that the program ends when its terminal is gone, as after a connection that broke. The signal
/// alone is not enough: crossterm, which reads the keys on the thread that would hear it, takes the end of
/// its input for no input, and reads on for ever.
fn end_with_terminal() -> io::Result<()> {
    let wait = || {
        let input = io::stdin();
        loop {
            // It asks for nothing, so only the end wakes it.
            let mut ends = [PollFd::new(&input, PollFlags::empty())];
            match poll(&mut ends, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        std::thread::sleep(LAST);
        std::process::exit(0);
    };
    std::thread::Builder::new().name("brigade-terminal".into()).spawn(wait).map(drop)
}

/// Leaves the terminal as it was. Nothing can be done if that fails; a terminal that is gone is in order.
fn give_back() {
    let _gone = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _gone = disable_raw_mode();
}
