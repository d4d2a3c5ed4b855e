//! One task in a column: its subject, whose it is, since when, and what holds it.

use brigade_core::projection::{At, Card, Hold};
use brigade_core::pulse;
use brigade_wire::name::TaskId;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::in_lines;
use crate::screen::Screen;
use crate::style::Theme;
use brigade_core::task_view::{self, Look};
use brigade_core::text::{self, one_line};

/// A card as it is drawn.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) lines: Vec<Line<'static>>,
}

/// A task's lines, none wider than `width`.
pub(super) fn block(screen: &Screen, id: u64, critical: bool, width: usize) -> Option<Block> {
    let theme = screen.theme;
    let card = screen.picture.card(id)?;
    let look = Look::of(screen.picture.graph(), TaskId::new(id)?);
    let sign = if critical { "◆" } else { look.symbol() };
    let (plain, sign_style) = match look {
        Look::Done => (theme.faint(), theme.faint()),
        _ if critical => (theme.strong(), theme.strong()),
        _ => (Style::new(), style(theme, look)),
    };
    let room = width.saturating_sub(2).max(1);
    let mut lines = Vec::new();
    let subject = format!("{id} {}", one_line(&card.subject));
    for (row, part) in in_lines(&subject, room, 2).into_iter().enumerate() {
        let start = if row == 0 { format!("{sign} ") } else { "  ".to_owned() };
        lines.push(Line::from(vec![Span::styled(start, sign_style), Span::styled(part, plain)]));
    }
    lines.extend(meta(screen, card, look, room));
    if let Some((words, is_stuck)) = why(screen, card, look) {
        let style = if is_stuck { theme.urgent() } else { theme.faint() };
        for (row, part) in in_lines(&words, room, 2).into_iter().enumerate() {
            let start = if row == 0 && is_stuck { "! " } else { "  " };
            lines.push(Line::styled(format!("{start}{part}"), style));
        }
    }
    Some(Block { lines })
}

/// The style of a task's sign.
pub(super) fn style(theme: Theme, look: Look) -> Style {
    match look {
        Look::Ready => theme.good(),
        Look::InProgress => theme.busy(),
        Look::Kept => Style::new(),
        Look::Blocked | Look::Done => theme.faint(),
    }
}

/// Whose it is, and since when.
fn meta(screen: &Screen, card: &Card, look: Look, room: usize) -> Option<Line<'static>> {
    let theme = screen.theme;
    let age = pulse::words(screen.now.duration_since(since(screen, card).timestamp()));
    let (before, after) = match (look, &card.owner) {
        (Look::Ready, _) if age.len() + "ready for ".len() <= room => {
            ("", format!("ready for {age}"))
        }
        (Look::Ready, _) | (Look::Blocked, None) => ("", format!("for {age}")),
        (Look::Done, Some(_)) => ("", format!(" {age} ago")),
        (Look::Done, None) => ("", format!("{age} ago")),
        (Look::Kept | Look::Blocked, Some(_)) => ("kept for ", String::new()),
        (Look::InProgress | Look::Kept, _) => ("", format!(" {age}")),
    };
    if look == Look::Blocked && card.owner.is_none() {
        return None;
    }
    let style = if look == Look::Done { theme.faint() } else { owner_style(screen, card) };
    let taken = before.len() + after.len();
    let owner = card.owner.as_deref().map(one_line).unwrap_or_default();
    let owner = text::cut(&owner, room.saturating_sub(taken).max(4));
    Some(Line::from(vec![
        Span::styled(format!("  {before}"), theme.faint()),
        Span::styled(owner, style),
        Span::styled(after, theme.faint()),
    ]))
}

/// The colour of whoever has the task.
pub(super) fn owner_style(screen: &Screen, card: &Card) -> Style {
    let owner = card.owner.as_deref().and_then(|owner| screen.picture.called(owner));
    let entry = owner.and_then(|person| person.entry.as_ref());
    entry.map_or(Style::new(), |entry| screen.theme.member(entry.color.as_deref()))
}

/// Since when a task is what it is. One that could be begun could not while it waited for another.
pub(super) fn since(screen: &Screen, card: &Card) -> At {
    let graph = screen.picture.graph();
    let Some(node) = TaskId::new(card.id).and_then(|id| graph.node(id)) else { return card.since };
    let done = node.after.iter().filter_map(|id| screen.picture.card(id.get())?.done);
    if card.begun.is_some() || card.done.is_some() {
        return card.since;
    }
    done.max().map_or(card.since, |done| done.max(card.since))
}

/// What holds a task, in words, and whether that needs somebody.
pub(super) fn why(screen: &Screen, card: &Card, look: Look) -> Option<(String, bool)> {
    let hold = screen.picture.hold(card.id)?;
    let words = match hold {
        Hold::Circle(circle) => {
            let is_in = circle.iter().any(|id| id.get() == card.id);
            let way = way(circle);
            if is_in { format!("circle {way}") } else { format!("behind the circle {way}") }
        }
        Hold::Waits(ids) if look == Look::InProgress => {
            format!("begun before {} is done", joined(ids))
        }
        Hold::Waits(ids) => format!("waits for {}", joined(ids)),
        Hold::Idle(ids) => format!("waits for {}; nobody is at it", joined(ids)),
        Hold::Orphan(owner) => format!("{} is not on the team", one_line(owner)),
    };
    Some((words, super::is_stuck(Some(hold))))
}

/// Numbers; of very many only the first.
fn joined(ids: &[TaskId]) -> String {
    const MOST: usize = 6;
    let text = task_view::join(ids.iter().copied().take(MOST));
    let more = ids.len().saturating_sub(MOST);
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// A circle, back to where it began.
fn way(circle: &[TaskId]) -> String {
    const MOST: usize = 6;
    let mut steps: Vec<String> = circle.iter().take(MOST).map(ToString::to_string).collect();
    if circle.len() > MOST {
        steps.push("…".to_owned());
    }
    steps.extend(circle.first().map(ToString::to_string));
    steps.join(" → ")
}
