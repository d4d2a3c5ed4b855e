//! The mail view: all messages and how far each was delivered.

mod fate;
mod lines;
#[cfg(test)]
mod tests;
mod thread;
mod window;
mod words;

use brigade_core::picture::{Kind, Letter};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use self::thread::{COUNTED, Entry, Thread};
use self::window::{Block, Window};
use crate::output::{cut, local, one_line};
use crate::ui::canvas::{Canvas, Hit};
use crate::ui::dialog::{Choice, Chosen, Dialog, Pick};
use crate::ui::keys::Command;
use crate::ui::screen::{Effect, Screen};
use crate::ui::views::step;

/// The state of the view.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Show only the mail of this member.
    pub(crate) filter: Option<String>,
    /// Whether protocol messages are hidden.
    pub(crate) hides_protocol: bool,
    /// The message that is shown in full.
    unfolded: Option<u32>,
    /// How many of its lines are scrolled off the top.
    scrolled: usize,
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let [head, list] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let thread = Thread::of(screen);
    self::head(&thread, canvas, head);
    let Some(chosen) = chosen(&thread) else {
        let words = match &screen.states.mail.filter {
            Some(name) => format!("{} has no mail.", one_line(name)),
            None => "No messages yet.".to_owned(),
        };
        canvas.line(Rect { x: list.x + 1, ..list }.intersection(list), Line::raw(words));
        return;
    };
    let state = &screen.states.mail;
    let (theme, width) = (canvas.theme, list.width.saturating_sub(1));
    let is_unfolded =
        |entry: Entry| state.unfolded.is_some() && state.unfolded == thread.number(entry.from);
    let block = |entry: Entry| Block {
        entry,
        day: day_line(&thread, entry, width).map(|day| Line::styled(day, theme.faint())),
        lines: lines::lines(&thread, entry, width, is_unfolded(entry), theme),
    };
    let window = |height| Window::around(&thread, chosen, height, state.scrolled, block);
    let mut seen = window(list.height);
    let mut rows = list;
    if (seen.newer(&thread) > 0 || seen.hidden > 0) && list.height > 2 {
        // The note about newer messages takes one line.
        rows.height -= 1;
        seen = window(rows.height);
        let bottom = Rect { y: rows.bottom(), height: 1, ..list };
        canvas.line(bottom, Line::styled(below(&thread, &seen), theme.busy()));
    }
    canvas.drawn.extent = seen.hidden;
    canvas.drawn.page = if seen.hidden > 0 { usize::from(rows.height) } else { seen.blocks.len() };
    draw_rows(&thread, canvas, rows, &seen, chosen);
}

/// The heading: whose mail, how many messages, and the legend.
fn head(thread: &Thread<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let state = &thread.screen().states.mail;
    let count = messages(thread.len());
    let (whose, back) = match &state.filter {
        Some(name) => (format!("Mail of {}", one_line(name)), ", esc: show all"),
        None => ("All mail".to_owned(), ""),
    };
    let hidden = if state.hides_protocol { ", protocol hidden, p: show" } else { "" };
    let rest = format!(", {count}{back}{hidden}");
    let taken = whose.width() + rest.width() + fate::LEGEND.width() + 4;
    canvas.line(
        Rect { x: area.x + 1, ..area }.intersection(area),
        Line::from(vec![Span::styled(whose, theme.strong()), Span::styled(rest, theme.faint())]),
    );
    let width = u16::try_from(fate::LEGEND.width()).unwrap_or_default();
    if taken <= usize::from(area.width) {
        let right = Rect { x: area.right() - width, width, ..area };
        canvas.line(right, Line::styled(fate::LEGEND, theme.faint()));
    }
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// The date line above the first message of a day.
fn day_line(thread: &Thread<'_>, entry: Entry, width: u16) -> Option<String> {
    let day = |place| Some(local(thread.letter(place)?.at.timestamp()).date());
    let before = thread.before(entry.from).and_then(|before| day(before.to - 1));
    let day = day(entry.from).filter(|day| before != Some(*day))?;
    let words = format!("── {} ", day.strftime("%A, %-d %B %Y"));
    let rest = usize::from(width).saturating_sub(words.width());
    Some(cut(&format!("{words}{}", "─".repeat(rest)), usize::from(width)))
}

/// The note about what is below the visible part.
fn below(thread: &Thread<'_>, seen: &Window) -> String {
    let lines = seen.hidden - seen.skip.min(seen.hidden);
    let newer = match seen.newer(thread) {
        0 => String::new(),
        COUNTED.. => format!("{COUNTED} or more newer below, end: follow"),
        count => format!("{count} newer below, end: follow"),
    };
    match (lines, newer.is_empty()) {
        (0, true) => " end of the message".to_owned(),
        (0, false) => format!(" ↓ {newer}"),
        (1, _) => " ↓ 1 more line of the message".to_owned(),
        (lines, _) => format!(" ↓ {lines} more lines of the message"),
    }
}

fn draw_rows(
    thread: &Thread<'_>,
    canvas: &mut Canvas<'_>,
    area: Rect,
    seen: &Window,
    chosen: Entry,
) {
    let mut skip = seen.skip;
    let mut y = area.y;
    for block in &seen.blocks {
        let is_chosen = block.entry == chosen;
        let Some(number) = thread.number(block.entry.from) else { continue };
        let head = usize::from(block.day.is_some());
        for (place, line) in block.day.iter().chain(&block.lines).enumerate().skip(skip) {
            if y >= area.bottom() {
                return;
            }
            let row = Rect { y, height: 1, ..area };
            let inside = Rect { x: row.x + 1, width: row.width.saturating_sub(1), ..row };
            if place < head {
                canvas.line(inside, line.clone());
            } else {
                let mark = if is_chosen { "▌" } else { " " };
                canvas.line(Rect { width: 1, ..row }, Line::styled(mark, canvas.theme.strong()));
                let is_marked = is_chosen && place == head;
                canvas.row(inside, line.clone(), is_marked, Hit::Letter(number));
            }
            y += 1;
        }
        skip = 0;
    }
}

/// The selected entry; the last one while the view follows new mail.
fn chosen(thread: &Thread<'_>) -> Option<Entry> {
    match thread.screen().letter {
        Some(number) => thread.find(number),
        None => thread.last(),
    }
}

pub(crate) fn act(screen: &mut Screen, command: Command) -> Option<Vec<Effect>> {
    match command {
        Command::Filter => screen.dialog = Some(Dialog::Pick(filter(screen))),
        Command::Protocol => {
            screen.states.mail.hides_protocol = !screen.states.mail.hides_protocol;
        }
        Command::Open => {
            let thread = Thread::of(screen);
            let number = chosen(&thread).and_then(|entry| thread.number(entry.from));
            let was = screen.states.mail.unfolded;
            screen.states.mail.unfolded = number.filter(|_| was != number);
            screen.states.mail.scrolled = 0;
            // Stop following new mail, so that the opened message stays on the screen.
            screen.letter = number.or(screen.letter);
        }
        Command::Back if screen.states.mail.unfolded.is_some() => {
            screen.states.mail.unfolded = None;
            screen.states.mail.scrolled = 0;
        }
        Command::Back if screen.states.mail.filter.is_some() => {
            screen.states.mail.filter = None;
        }
        Command::Back => screen.letter = None,
        _ => return go(screen, command),
    }
    Some(Vec::new())
}

/// Moves to another entry, or scrolls within an entry that is higher than the screen.
fn go(screen: &mut Screen, command: Command) -> Option<Vec<Effect>> {
    let (extent, page) = (screen.drawn.extent, screen.drawn.page.max(1));
    let scrolled = screen.states.mail.scrolled.min(extent);
    let within = step(scrolled, extent + 1, page, command)?;
    let is_step = !matches!(command, Command::First | Command::Last);
    if extent > 0 && is_step && within != scrolled {
        screen.states.mail.scrolled = within;
        return Some(Vec::new());
    }
    let thread = Thread::of(screen);
    let here = chosen(&thread)?;
    let steps = if matches!(command, Command::PageUp | Command::PageDown) { page } else { 1 };
    let mut there = here;
    for _ in 0..steps {
        let next = match command {
            Command::Up | Command::PageUp => thread.before(there.from),
            Command::Down | Command::PageDown => thread.after(there.to),
            Command::First => thread.after(0),
            _ => thread.last(),
        };
        let Some(next) = next else { break };
        there = next;
    }
    let goes_down = !matches!(command, Command::Up | Command::PageUp | Command::First);
    let is_end = goes_down && thread.last() == Some(there);
    let number = thread.number(there.from).filter(|_| !is_end);
    // The opened message stays open until the selection leaves it.
    if there != here || is_end {
        screen.states.mail.scrolled = 0;
    }
    screen.letter = number;
    Some(Vec::new())
}

/// The dialog to choose whose mail to show.
fn filter(screen: &Screen) -> Pick {
    let members = screen.picture.members();
    let gone = screen.picture.people().iter().filter(|person| person.entry.is_none());
    let people = members.into_iter().chain(gone).filter(|person| !person.letters.is_empty());
    let everybody = Choice {
        label: "all members".to_owned(),
        hint: messages(screen.picture.letters().len()),
        chosen: Chosen::Filter(None),
        also: String::new(),
    };
    let one = people.map(|person| Choice {
        label: one_line(&person.name),
        hint: messages(person.letters.len()),
        chosen: Chosen::Filter(Some(person.name.to_string())),
        also: String::new(),
    });
    Pick::new("Show the mail of", std::iter::once(everybody).chain(one).collect())
}

/// The selected message; the last one while the view follows new mail.
pub(crate) fn chosen_letter(screen: &Screen) -> Option<Letter> {
    let thread = Thread::of(screen);
    thread.letter(chosen(&thread)?.from).copied()
}

/// The text of the selected message.
pub(crate) fn chosen_text(screen: &Screen) -> Option<String> {
    thread::text(screen, &chosen_letter(screen)?)
}

/// A message in one line.
pub(crate) fn in_a_line(screen: &Screen, letter: &Letter) -> String {
    let text = thread::text(screen, letter).unwrap_or_default();
    one_line(&match letter.kind {
        Kind::Words => text,
        _ => words::told(&screen.picture, letter, &text).line,
    })
}
