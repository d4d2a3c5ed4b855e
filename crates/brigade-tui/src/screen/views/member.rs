//! The member view: the activity of one member.

mod activity;
mod item;
mod search;
#[cfg(test)]
mod tests;

use brigade_core::projection::{MemberIndex, MemberView, MessageKind};
use brigade_wire::task::Status;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::activity::{ActivityItem, ActivityList, ActivityPosition};
pub(crate) use self::item::{ItemDetail, lines as item_lines};
pub(crate) use self::search::{PROMPT, SEARCH_KEYS, TranscriptSearch, highlight};
use super::member_status;
use crate::canvas::{Canvas, ClickTarget};
use crate::keys::{self, KeyCommand};
use crate::screen::views::step;
use crate::screen::{Effect, Screen, record_text};
use crate::text_layout::{abbreviate, since};
use crate::view::View;
use brigade_core::text::{cut, one_line};

/// The state of the member view.
#[derive(Debug, Default)]
pub(crate) struct MemberViewState {
    /// The scroll position, and the member it applies to. If `None`, the view follows the latest activity.
    at: Option<(MemberIndex, ActivityPosition)>,
    search: Option<TranscriptSearch>,
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(person) = screen.selected_member() else {
        canvas.line(area, Line::styled("this team has no members", canvas.theme.faint()));
        return;
    };
    let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)];
    let [names, head, body] = Layout::vertical(rows).areas(area);
    self::names(screen, canvas, names);
    canvas.line(head, status_line(screen, person));
    let position = position(screen, person);
    let search = screen.states.member.search.as_ref();
    let parts = [
        Constraint::Min(0),
        Constraint::Length(u16::from(position.is_some())),
        Constraint::Length(u16::from(search.is_some())),
    ];
    let [body, below, search_line] = Layout::vertical(parts).areas(body);
    canvas.frame.page = usize::from(body.height);
    canvas.frame.columns = usize::from(body.width);
    draw_activity(screen, canvas, body, person, position, ItemDetail::Brief);
    if let Some(search) = search {
        highlight(canvas.buffer, body, search.pattern.value(), canvas.theme);
        search.draw(canvas, search_line);
    }
    let more = "▼ newer activity below; press end to follow";
    canvas.line(below, Line::styled(more, canvas.theme.urgent()));
}

/// Draws a member's activity up to a position, or up to the latest activity.
pub(crate) fn draw_activity(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &MemberView,
    position: Option<ActivityPosition>,
    detail: ItemDetail,
) {
    let activity = ActivityList::new(&screen.projection, person);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut at = position.unwrap_or_else(|| activity.end());
    let hidden = at.hidden;
    let mut lines = Vec::new();
    while lines.len() < height + hidden
        && let Some((before, item)) = activity.previous(at)
    {
        // The lines are collected from the bottom up.
        lines.extend(item::lines(screen, person, item, width, detail).into_iter().rev());
        at = before;
    }
    let seen: Vec<Line<'_>> = lines.into_iter().skip(hidden).take(height).collect();
    if seen.is_empty() {
        let text = format!("no activity from {} yet", one_line(&person.name));
        canvas.line(area, Line::styled(text, canvas.theme.faint()));
    }
    canvas.lines(area, seen.into_iter().rev());
}

/// Returns the scroll position, or `None` if the view follows the latest activity.
fn position(screen: &Screen, person: &MemberView) -> Option<ActivityPosition> {
    screen.states.member.at.filter(|(who, _)| *who == person.index).map(|(_, position)| position)
}

/// Draws the row of member names, with the current member highlighted.
fn names(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let members = screen.projection.members();
    let selected = screen.selected_index(&members);
    let label = |other: &&MemberView| {
        let (sign, _, style) = member_status::state(screen, other);
        (format!(" {sign} {} ", cut(&one_line(&other.name), 20)), style)
    };
    // Before the current name, show as many of the preceding names as fit.
    let (mut from, mut width) = (selected, 0);
    for (index, other) in members.iter().enumerate().take(selected + 1).rev() {
        width += label(other).0.width();
        if width > usize::from(area.width) {
            break;
        }
        from = index;
    }
    let mut x = area.x;
    for (index, other) in members.iter().enumerate().skip(from) {
        let (label, style) = label(other);
        let width = u16::try_from(label.width()).unwrap_or(0);
        let tab = Rect { x, width, ..area }.intersection(area);
        if tab.is_empty() {
            break;
        }
        let style = if index == selected { canvas.theme.selected() } else { style };
        canvas.line(tab, Line::styled(label, style));
        canvas.add_click_target(tab, ClickTarget::Member(other.name.to_string()));
        x = x.saturating_add(width);
    }
}

/// Renders the status line: state, problem, task, unread messages and tokens.
fn status_line(screen: &Screen, person: &MemberView) -> Line<'static> {
    let theme = screen.theme;
    let (sign, word, style) = member_status::state(screen, person);
    let since = person.since().map(|at| format!(", {}", since(screen.now, at)));
    let mut spans =
        vec![Span::styled(format!("{sign} {word}{}", since.unwrap_or_default()), style)];
    let mut part = |text: String, style| {
        spans.extend([Span::raw("   "), Span::styled(text, style)]);
    };
    if let Some(why) = member_status::problem(screen, person) {
        part(why, theme.error());
    }
    let mut cards = screen.projection.tasks();
    let task = cards.find(|card| {
        card.status() == Some(Status::InProgress) && card.owner.as_deref() == Some(&*person.name)
    });
    if let Some(card) = task {
        part(format!("task {} {}", card.id, one_line(&card.subject)), ratatui::style::Style::new());
    }
    if person.unread > 0 {
        part(format!("{} unread", person.unread), theme.urgent());
    }
    let (read, written) = person.tokens;
    if read + written > 0 {
        part(format!("{} tokens", abbreviate(read + written)), theme.faint());
    }
    if person.work.is_empty() && !screen.projection.is_lead(person.index) {
        part("its agent reports no activity; only its mail is shown".into(), theme.faint());
    }
    Line::from(spans)
}

/// Returns whether the keys go into the line of the search.
pub(crate) fn is_searching(screen: &Screen) -> bool {
    screen.view == View::Member && screen.states.member.search.is_some()
}

/// Handles a key while the person searches.
pub(crate) fn handle_search_key(screen: &mut Screen, key: &KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Esc => screen.states.member.search = None,
        KeyCode::Enter | KeyCode::Up => find(screen, false),
        KeyCode::Down => find(screen, true),
        KeyCode::PageUp | KeyCode::PageDown => {
            let is_up = key.code == KeyCode::PageUp;
            return screen.run_command(if is_up {
                KeyCommand::PageUp
            } else {
                KeyCommand::PageDown
            });
        }
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            let command = keys::command(key, screen.view, screen.replay.is_some());
            return command.map(|command| screen.run_command(command)).unwrap_or_default();
        }
        _ => {
            if let Some(search) = &mut screen.states.member.search {
                search.edit(key);
            }
        }
    }
    Vec::new()
}

/// Inserts pasted text into the line of the search.
pub(crate) fn paste(screen: &mut Screen, text: &str) {
    if is_searching(screen)
        && let Some(search) = &mut screen.states.member.search
    {
        search.paste(text);
    }
}

fn find(screen: &mut Screen, later: bool) {
    let Some(mut search) = screen.states.member.search.take() else { return };
    let found = screen.selected_member().and_then(|person| {
        let current = position(screen, person);
        let at = search.find(screen, person, current, later, ItemDetail::Brief)?;
        Some(at.map(|at| (person.index, at)))
    });
    let state = &mut screen.states.member;
    if let Some(at) = found {
        state.at = at;
    }
    state.search = Some(search);
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    if command == KeyCommand::Search {
        screen.states.member.search.get_or_insert_default();
        return Some(());
    }
    if let KeyCommand::Left | KeyCommand::Right = command {
        let members = screen.projection.members();
        let way = if command == KeyCommand::Right { KeyCommand::Down } else { KeyCommand::Up };
        let target = step(screen.selected_index(&members), members.len(), 1, way)?;
        screen.member = members.get(target).map(|person| person.name.to_string());
        return Some(());
    }
    let person = screen.selected_member()?;
    let target = moved(screen, person, position(screen, person), command, ItemDetail::Brief)?;
    screen.states.member.at = target.map(|target| (person.index, target));
    Some(())
}

/// Returns the scroll position after a movement command: `Some(None)` if the latest activity is followed then, and `None` if
/// the command is no movement.
pub(crate) fn moved(
    screen: &Screen,
    person: &MemberView,
    current: Option<ActivityPosition>,
    command: KeyCommand,
    detail: ItemDetail,
) -> Option<Option<ActivityPosition>> {
    let (page, width) = (screen.frame.page.max(1), screen.frame.columns);
    let activity = ActivityList::new(&screen.projection, person);
    let height = |item: ActivityItem| item::lines(screen, person, item, width, detail).len();
    let current = current.unwrap_or_else(|| activity.end());
    Some(match command {
        KeyCommand::Up => activity.up(current, 1, page, height),
        KeyCommand::Down => activity.down(current, 1, height),
        KeyCommand::PageUp => activity.up(current, page.saturating_sub(1).max(1), page, height),
        KeyCommand::PageDown => activity.down(current, page.saturating_sub(1).max(1), height),
        KeyCommand::First => activity.first(page, height),
        KeyCommand::Last | KeyCommand::Back => None,
        _ => return None,
    })
}

/// Returns the last visible text: what the agent said, or a message.
pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    /// Maximum number of activity items to search.
    const MAX_SEARCH: usize = 200;
    let person = screen.selected_member()?;
    let activity = ActivityList::new(&screen.projection, person);
    let mut at = position(screen, person).unwrap_or_else(|| activity.end());
    for _ in 0..MAX_SEARCH {
        let (before, item) = activity.previous(at)?;
        at = before;
        let spot = match item {
            ActivityItem::Event(act) => act.record,
            ActivityItem::Message(message) if message.kind == MessageKind::Text => message.record,
            ActivityItem::Message(_) => continue,
        };
        if let Some(text) = record_text(&*screen.record(spot)?) {
            return Some(text);
        }
    }
    None
}
