//! The mail view: all messages and how far each was delivered.

mod delivery;
mod entries;
mod lines;
mod protocol;
#[cfg(test)]
mod tests;
mod window;

use brigade_core::projection::{MessageKind, MessageRef};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::entries::BROADCAST_WINDOW_MS;
use self::entries::{MAX_COUNTED, MailEntry, MessageList};
use self::window::{EntryBlock, MailWindow};
use crate::canvas::{Canvas, ClickTarget};
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::screen::views::step;
use crate::time::local;
use brigade_core::text::{self, cut, one_line};

/// The state of the mail view.
#[derive(Debug, Default)]
pub(crate) struct MailState {
    /// The member whose mail is shown; `None` shows all mail.
    pub(crate) filter: Option<String>,
    /// Whether protocol messages are hidden.
    pub(crate) hides_protocol: bool,
    /// The number of the message that is shown in full.
    unfolded: Option<u32>,
    /// How many lines of the selected entry are scrolled off the top.
    scrolled: usize,
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let [head, entries] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let list = MessageList::new(screen);
    self::head(&list, canvas, head);
    let Some(selected) = selected(&list) else {
        let text = match &screen.states.mail.filter {
            Some(name) => format!("{} has no mail.", one_line(name)),
            None => "No messages yet.".to_owned(),
        };
        canvas.line(Rect { x: entries.x + 1, ..entries }.intersection(entries), Line::raw(text));
        return;
    };
    let state = &screen.states.mail;
    let (theme, width) = (canvas.theme, entries.width.saturating_sub(1));
    let is_unfolded =
        |entry: MailEntry| state.unfolded.is_some() && state.unfolded == list.number(entry.from);
    let block = |entry: MailEntry| EntryBlock {
        entry,
        day: day_line(&list, entry, width).map(|day| Line::styled(day, theme.faint())),
        lines: lines::lines(&list, entry, width, is_unfolded(entry), theme),
    };
    let window = |height| MailWindow::around(&list, selected, height, state.scrolled, block);
    let mut visible = window(entries.height);
    let mut rows = entries;
    if (visible.newer_count(&list) > 0 || visible.hidden > 0) && entries.height > 2 {
        // Reserve one line for the note about newer messages.
        rows.height -= 1;
        visible = window(rows.height);
        let bottom = Rect { y: rows.bottom(), height: 1, ..entries };
        canvas.line(bottom, Line::styled(below_note(&list, &visible), theme.busy()));
    }
    canvas.frame.max_scroll = visible.hidden;
    canvas.frame.page =
        if visible.hidden > 0 { usize::from(rows.height) } else { visible.blocks.len() };
    draw_rows(&list, canvas, rows, &visible, selected);
}

/// Draws the heading: whose mail is shown, the number of messages, and the legend.
fn head(list: &MessageList<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let state = &list.screen().states.mail;
    let count = text::count(list.len(), "message");
    let (owner, back) = match &state.filter {
        Some(name) => (format!("Mail of {}", one_line(name)), ", esc: show all"),
        None => ("All mail".to_owned(), ""),
    };
    let hidden = if state.hides_protocol { ", protocol hidden, p: show" } else { "" };
    let rest = format!(", {count}{back}{hidden}");
    let taken = owner.width() + rest.width() + delivery::LEGEND.width() + 4;
    canvas.line(
        Rect { x: area.x + 1, ..area }.intersection(area),
        Line::from(vec![Span::styled(owner, theme.strong()), Span::styled(rest, theme.faint())]),
    );
    let width = u16::try_from(delivery::LEGEND.width()).unwrap_or_default();
    if taken <= usize::from(area.width) {
        let right = Rect { x: area.right() - width, width, ..area };
        canvas.line(right, Line::styled(delivery::LEGEND, theme.faint()));
    }
}

/// Returns the date line that is shown above the first message of a day.
fn day_line(list: &MessageList<'_>, entry: MailEntry, width: u16) -> Option<String> {
    let day = |index| Some(local(list.message(index)?.at.timestamp()).date());
    let before = list.before(entry.from).and_then(|before| day(before.to - 1));
    let day = day(entry.from).filter(|day| before != Some(*day))?;
    let text = format!("── {} ", day.strftime("%A, %-d %B %Y"));
    let rest = usize::from(width).saturating_sub(text.width());
    Some(cut(&format!("{text}{}", "─".repeat(rest)), usize::from(width)))
}

/// Describes the messages below the visible part.
fn below_note(list: &MessageList<'_>, visible: &MailWindow) -> String {
    let lines = visible.hidden - visible.skip.min(visible.hidden);
    let newer = match visible.newer_count(list) {
        0 => String::new(),
        MAX_COUNTED.. => format!("{MAX_COUNTED} or more newer below, end: follow"),
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
    list: &MessageList<'_>,
    canvas: &mut Canvas<'_>,
    area: Rect,
    visible: &MailWindow,
    selected: MailEntry,
) {
    let mut skip = visible.skip;
    let mut y = area.y;
    for block in &visible.blocks {
        let is_selected = block.entry == selected;
        let Some(number) = list.number(block.entry.from) else { continue };
        let head = usize::from(block.day.is_some());
        for (index, line) in block.day.iter().chain(&block.lines).enumerate().skip(skip) {
            if y >= area.bottom() {
                return;
            }
            let row = Rect { y, height: 1, ..area };
            let inside = Rect { x: row.x + 1, width: row.width.saturating_sub(1), ..row };
            if index < head {
                canvas.line(inside, line.clone());
            } else {
                let mark = if is_selected { "▌" } else { " " };
                canvas.line(Rect { width: 1, ..row }, Line::styled(mark, canvas.theme.strong()));
                let is_marked = is_selected && index == head;
                canvas.row(inside, line.clone(), is_marked, ClickTarget::Message(number));
            }
            y += 1;
        }
        skip = 0;
    }
}

/// Returns the selected entry. While the view follows new mail, the last entry is selected.
fn selected(list: &MessageList<'_>) -> Option<MailEntry> {
    match list.screen().message {
        Some(number) => list.find(number),
        None => list.last(),
    }
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    match command {
        KeyCommand::Protocol => {
            screen.states.mail.hides_protocol = !screen.states.mail.hides_protocol;
        }
        KeyCommand::Open => {
            let list = MessageList::new(screen);
            let number = selected(&list).and_then(|entry| list.number(entry.from));
            let was = screen.states.mail.unfolded;
            screen.states.mail.unfolded = number.filter(|_| was != number);
            screen.states.mail.scrolled = 0;
            // Stop following new mail, so that the message that was just opened stays on the screen.
            screen.message = number.or(screen.message);
        }
        KeyCommand::Back if screen.states.mail.unfolded.is_some() => {
            screen.states.mail.unfolded = None;
            screen.states.mail.scrolled = 0;
        }
        KeyCommand::Back if screen.states.mail.filter.is_some() => {
            screen.states.mail.filter = None;
        }
        KeyCommand::Back => screen.message = None,
        _ => return move_selection(screen, command),
    }
    Some(())
}

/// Selects another entry, or scrolls within an entry that is higher than the screen.
fn move_selection(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    let (max_scroll, page) = (screen.frame.max_scroll, screen.frame.page.max(1));
    let scrolled = screen.states.mail.scrolled.min(max_scroll);
    let within = step(scrolled, max_scroll + 1, page, command)?;
    let is_step = !matches!(command, KeyCommand::First | KeyCommand::Last);
    if max_scroll > 0 && is_step && within != scrolled {
        screen.states.mail.scrolled = within;
        return Some(());
    }
    let list = MessageList::new(screen);
    let current = selected(&list)?;
    let steps = if matches!(command, KeyCommand::PageUp | KeyCommand::PageDown) { page } else { 1 };
    let mut target = current;
    for _ in 0..steps {
        let next = match command {
            KeyCommand::Up | KeyCommand::PageUp => list.before(target.from),
            KeyCommand::Down | KeyCommand::PageDown => list.after(target.to),
            KeyCommand::First => list.after(0),
            _ => list.last(),
        };
        let Some(next) = next else { break };
        target = next;
    }
    let goes_down = !matches!(command, KeyCommand::Up | KeyCommand::PageUp | KeyCommand::First);
    let is_end = goes_down && list.last() == Some(target);
    let number = list.number(target.from).filter(|_| !is_end);
    // Keep the scroll position until another entry is selected.
    if target != current || is_end {
        screen.states.mail.scrolled = 0;
    }
    screen.message = number;
    Some(())
}

/// Returns the selected message. While the view follows new mail, the last message is selected.
pub(crate) fn selected_message(screen: &Screen) -> Option<MessageRef> {
    let list = MessageList::new(screen);
    list.message(selected(&list)?.from).copied()
}

/// Returns the text of the selected message.
pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    entries::text(screen, &selected_message(screen)?)
}

/// Formats a message as one line.
pub(crate) fn one_line_text(screen: &Screen, message: &MessageRef) -> String {
    let text = entries::text(screen, message).unwrap_or_default();
    one_line(&match message.kind {
        MessageKind::Text => text,
        _ => protocol::describe(&screen.projection, message, &text).line,
    })
}
