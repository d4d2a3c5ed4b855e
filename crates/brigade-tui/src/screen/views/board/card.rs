//! A task card: the task's subject, owner and age, and what blocks the task.

use brigade_core::projection::{BlockReason, Millis, TaskEntry};
use brigade_core::pulse;
use brigade_wire::name::TaskId;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::wrap_to_lines;
use crate::screen::Screen;
use crate::style::Theme;
use brigade_core::task_view::{self, TaskView};
use brigade_core::text::{self, one_line};

/// Renders a task card as lines, at most `width` wide.
pub(super) fn lines(
    screen: &Screen,
    id: u64,
    critical: bool,
    width: usize,
) -> Option<Vec<Line<'static>>> {
    let theme = screen.theme;
    let card = screen.projection.task(id)?;
    let look = TaskView::new(screen.projection.graph(), TaskId::new(id)?);
    let sign = if critical { "◆" } else { look.symbol() };
    let (plain, sign_style) = match look {
        TaskView::Done => (theme.faint(), theme.faint()),
        _ if critical => (theme.strong(), theme.strong()),
        _ => (Style::new(), style(theme, look)),
    };
    let room = width.saturating_sub(2).max(1);
    let mut lines = Vec::new();
    let subject = format!("{id} {}", one_line(&card.subject));
    for (row, part) in wrap_to_lines(&subject, room, 2).into_iter().enumerate() {
        let start = if row == 0 { format!("{sign} ") } else { "  ".to_owned() };
        lines.push(Line::from(vec![Span::styled(start, sign_style), Span::styled(part, plain)]));
    }
    lines.extend(owner_line(screen, card, look, room));
    if let Some((text, is_stuck)) = blocked_reason(screen, card, look) {
        let style = if is_stuck { theme.urgent() } else { theme.faint() };
        for (row, part) in wrap_to_lines(&text, room, 2).into_iter().enumerate() {
            let start = if row == 0 && is_stuck { "! " } else { "  " };
            lines.push(Line::styled(format!("{start}{part}"), style));
        }
    }
    Some(lines)
}

/// Returns the style of a task's symbol.
pub(super) fn style(theme: Theme, look: TaskView) -> Style {
    match look {
        TaskView::Ready => theme.success(),
        TaskView::InProgress => theme.busy(),
        TaskView::Kept => Style::new(),
        TaskView::Blocked | TaskView::Done => theme.faint(),
    }
}

/// Renders the line with the task's owner and age.
fn owner_line(
    screen: &Screen,
    card: &TaskEntry,
    look: TaskView,
    room: usize,
) -> Option<Line<'static>> {
    let theme = screen.theme;
    let age = pulse::format_duration(screen.now.duration_since(since(screen, card).timestamp()));
    let (before, after) = match (look, &card.owner) {
        (TaskView::Ready, _) if age.len() + "ready for ".len() <= room => {
            ("", format!("ready for {age}"))
        }
        (TaskView::Ready, _) | (TaskView::Blocked, None) => ("", format!("for {age}")),
        (TaskView::Done, Some(_)) => ("", format!(" {age} ago")),
        (TaskView::Done, None) => ("", format!("{age} ago")),
        (TaskView::Kept | TaskView::Blocked, Some(_)) => ("assigned to ", String::new()),
        (TaskView::InProgress | TaskView::Kept, _) => ("", format!(" {age}")),
    };
    if look == TaskView::Blocked && card.owner.is_none() {
        return None;
    }
    let style = if look == TaskView::Done { theme.faint() } else { owner_style(screen, card) };
    let taken = before.len() + after.len();
    let owner = card.owner.as_deref().map(one_line).unwrap_or_default();
    let owner = text::cut(&owner, room.saturating_sub(taken).max(4));
    Some(Line::from(vec![
        Span::styled(format!("  {before}"), theme.faint()),
        Span::styled(owner, style),
        Span::styled(after, theme.faint()),
    ]))
}

/// Returns the style in which the task owner's name is drawn.
pub(super) fn owner_style(screen: &Screen, card: &TaskEntry) -> Style {
    let owner = card.owner.as_deref().and_then(|owner| screen.projection.member_named(owner));
    let owner = owner.filter(|person| person.entry.is_some());
    owner.map_or(Style::new(), |person| screen.theme.person(person))
}

/// Returns when a task entered its current state. For a ready task: when its last dependency was done.
pub(super) fn since(screen: &Screen, card: &TaskEntry) -> Millis {
    let graph = screen.projection.graph();
    let Some(node) = TaskId::new(card.id).and_then(|id| graph.node(id)) else { return card.since };
    let done = node.after.iter().filter_map(|id| screen.projection.task(id.get())?.done);
    if card.begun.is_some() || card.done.is_some() {
        return card.since;
    }
    done.max().map_or(card.since, |done| done.max(card.since))
}

/// Returns the reason why a task is blocked, and whether the task is stuck.
pub(super) fn blocked_reason(
    screen: &Screen,
    card: &TaskEntry,
    look: TaskView,
) -> Option<(String, bool)> {
    let hold = screen.projection.block_reason(card.id)?;
    let text = match hold {
        BlockReason::Cycle(circle) => {
            let is_in = circle.iter().any(|id| id.get() == card.id);
            let cycle = cycle_text(circle);
            if is_in { format!("cycle {cycle}") } else { format!("waits for the cycle {cycle}") }
        }
        BlockReason::Waits(ids) if look == TaskView::InProgress => {
            format!("started before {} was done", task_list(ids))
        }
        BlockReason::Waits(ids) => format!("waits for {}", task_list(ids)),
        BlockReason::Idle(ids) => format!("waits for {}; no member works on it", task_list(ids)),
        BlockReason::Orphan(owner) => format!("{} is not on the team", one_line(owner)),
    };
    Some((text, super::is_stuck(Some(hold))))
}

/// Lists task numbers, and shortens a long list.
fn task_list(ids: &[TaskId]) -> String {
    const MAX_SHOWN: usize = 6;
    let text = task_view::join(ids.iter().copied().take(MAX_SHOWN));
    let more = ids.len().saturating_sub(MAX_SHOWN);
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Formats a dependency cycle; the first task is repeated at the end.
fn cycle_text(circle: &[TaskId]) -> String {
    const MAX_SHOWN: usize = 6;
    let mut steps: Vec<String> = circle.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if circle.len() > MAX_SHOWN {
        steps.push("…".to_owned());
    }
    steps.extend(circle.first().map(ToString::to_string));
    steps.join(" → ")
}
