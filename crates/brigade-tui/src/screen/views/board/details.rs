//! Draws the selected task in full.

use brigade_core::projection::{Millis, TaskEntry};
use brigade_core::pulse;
use brigade_wire::name::TaskId;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::card;
use crate::canvas::Canvas;
use crate::screen::Screen;
use crate::text_layout::wrap_plain;
use crate::time::local;
use brigade_core::task_view::TaskView;
use brigade_core::text::{one_line, plain, wrap};

/// Draws a task, starting at the scroll position, or at the first line if there is no scroll position.
pub(super) fn draw(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    id: u64,
    from: Option<usize>,
) {
    let Some(card) = screen.projection.task(id) else { return };
    if area.height == 0 {
        return;
    }
    let mut lines = Vec::new();
    if from.is_none() {
        let rule = "─".repeat(usize::from(area.width));
        lines.push(Line::styled(rule, canvas.theme.faint()));
    }
    lines.extend(self::lines(screen, card, usize::from(area.width)));
    let height = usize::from(area.height);
    let first = from.unwrap_or(0).min(lines.len().saturating_sub(height));
    if from.is_some() {
        canvas.set_scroll(lines.len(), area.height);
    }
    let is_cut = lines.len() > first + height;
    canvas.lines(area, lines.into_iter().skip(first));
    if is_cut && area.height > 2 {
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        let text = if from.is_some() { "↓ more below" } else { "↓ more: enter" };
        canvas.style(last, Style::reset());
        canvas.line(last, Line::raw(" ".repeat(usize::from(area.width))));
        canvas.line(last, Line::styled(text, canvas.theme.faint()));
    }
}

fn lines(screen: &Screen, card: &TaskEntry, width: usize) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let Some(id) = TaskId::new(card.id) else { return Vec::new() };
    let graph = screen.projection.graph();
    let look = TaskView::new(graph, id);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let subject = format!("Task {}: {}", card.id, one_line(&card.subject));
    lines.extend(wrap_plain(&subject, width, theme.strong()));
    let mut state =
        vec![Span::styled(format!("{} {}", look.symbol(), look.label()), card::style(theme, look))];
    let age =
        pulse::format_duration(screen.now.duration_since(card::since(screen, card).timestamp()));
    state.push(Span::raw(format!(" for {age}")));
    match &card.owner {
        Some(owner) => {
            state.push(Span::raw("   owner "));
            state.push(Span::styled(one_line(owner), card::owner_style(screen, card)));
        }
        None => state.push(Span::styled("   no owner", theme.faint())),
    }
    lines.push(Line::from(state));
    lines.push(Line::styled(times(screen, card), theme.faint()));
    if let Some((text, true)) = card::blocked_reason(screen, card, look) {
        let text = format!("! stuck: {text}");
        let parts = wrap(&text, width).into_iter().map(str::to_owned);
        lines.extend(parts.map(|part| Line::styled(part, theme.urgent())));
    }
    let dependencies: Vec<TaskId> =
        graph.node(id).map(|node| node.after.iter().copied().collect()).unwrap_or_default();
    let dependents: Vec<TaskId> =
        graph.nodes().filter(|(_, node)| node.after.contains(&id)).map(|(id, _)| id).collect();
    for (title, ids) in [("waits for", dependencies), ("needed by", dependents)] {
        task_lines(screen, title, &ids, &mut lines);
    }
    let description = plain(&card.description());
    if !description.trim().is_empty() {
        lines.push(Line::default());
        for line in description.trim_end().lines() {
            let line = line.replace('\t', "    ");
            lines.extend(wrap_plain(&line, width, Style::new()));
        }
    }
    lines
}

/// Describes when the task was added, started and done, and how long each step took.
fn times(screen: &Screen, card: &TaskEntry) -> String {
    let today = local(screen.now).date();
    let at = |at: Millis| {
        let at = local(at.timestamp());
        let format = if at.date() == today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        at.strftime(format).to_string()
    };
    let duration = |from: Millis, to: Millis| {
        pulse::format_duration(to.timestamp().duration_since(from.timestamp()))
    };
    let mut parts = vec![format!("added {}", at(card.added))];
    if let Some(begun) = card.begun {
        let later = if begun > card.added {
            format!(" ({} later)", duration(card.added, begun))
        } else {
            String::new()
        };
        parts.push(format!("started {}{later}", at(begun)));
    }
    if let Some(done) = card.done {
        let from = card.begun.unwrap_or(card.added);
        parts.push(format!("done {} (took {})", at(done), duration(from, done)));
    }
    parts.join("   ")
}

/// Lists other tasks with their states.
fn task_lines(screen: &Screen, title: &str, ids: &[TaskId], lines: &mut Vec<Line<'static>>) {
    const MAX_SHOWN: usize = 20;
    let theme = screen.theme;
    for (row, id) in ids.iter().take(MAX_SHOWN).enumerate() {
        let Some(card) = screen.projection.task(id.get()) else { continue };
        let look = TaskView::new(screen.projection.graph(), *id);
        let title = if row == 0 { title } else { "" };
        let owner = card.owner.as_deref().map(|owner| format!(", {}", one_line(owner)));
        lines.push(Line::from(vec![
            Span::styled(format!("{title:11}"), theme.faint()),
            Span::styled(look.symbol(), card::style(theme, look)),
            Span::raw(format!(" {id} {}", one_line(&card.subject))),
            Span::styled(format!("  {}{}", look.label(), owner.unwrap_or_default()), theme.faint()),
        ]));
    }
    if ids.len() > MAX_SHOWN {
        lines.push(Line::styled(
            format!("{:11}and {} more", "", ids.len() - MAX_SHOWN),
            theme.faint(),
        ));
    }
}
