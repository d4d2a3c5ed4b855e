//! The board view: tasks in columns by state, or as a dependency graph.

mod card;
mod columns;
mod details;
mod graph;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use brigade_core::projection::{BlockReason, TeamProjection};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use self::columns::Columns;
use crate::canvas::Canvas;
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::screen::views::step;
use brigade_core::text;

/// Minimum height to show the selected task's details below the board.
const MIN_HEIGHT_WITH_DETAILS: u16 = 26;

/// The state of the board view.
#[derive(Debug, Default)]
pub(crate) struct BoardState {
    /// Whether the graph is shown instead of the columns.
    is_graph: bool,
    /// Scroll position of the selected task while that task fills the view; `None` while the board is shown.
    open: Option<usize>,
    columns: Cached<u64, Columns>,
    graph: Cached<(u64, u16, u16), graph::GraphLayout>,
}

/// Caches the value for the last key, so that a redraw does not compute the layout again.
#[derive(Debug)]
struct Cached<K, T>(RefCell<Option<(K, Arc<T>)>>);

impl<K, T> Default for Cached<K, T> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<K: PartialEq, T> Cached<K, T> {
    fn get(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        let mut cached = self.0.borrow_mut();
        match &*cached {
            Some((cached_key, value)) if *cached_key == key => Arc::clone(value),
            _ => {
                let value = Arc::new(make());
                *cached = Some((key, Arc::clone(&value)));
                value
            }
        }
    }
}

/// Returns the tasks on the longest unfinished chain of dependencies; empty if no task waits for another.
fn critical_tasks(projection: &TeamProjection) -> BTreeSet<u64> {
    let path = projection.graph().critical_path();
    if path.len() < 2 { BTreeSet::new() } else { path.iter().map(|id| id.get()).collect() }
}

/// Returns whether a task is stuck: it cannot proceed without intervention.
fn is_stuck(hold: Option<&BlockReason>) -> bool {
    matches!(hold, Some(BlockReason::Cycle(_) | BlockReason::Idle(_) | BlockReason::Orphan(_)))
}

impl BoardState {
    fn columns(&self, projection: &TeamProjection) -> Arc<Columns> {
        self.columns.get(projection.board_revision(), || Columns::new(projection))
    }

    fn graph(&self, projection: &TeamProjection, area: Rect) -> Arc<graph::GraphLayout> {
        let key = (projection.board_revision(), area.width, area.height);
        self.graph.get(key, || graph::GraphLayout::new(projection, area.width, area.height))
    }
}

/// Returns the selected task, or the most relevant one if none is selected.
pub(crate) fn selected(screen: &Screen) -> Option<u64> {
    let selected = screen.task.filter(|id| screen.projection.task(*id).is_some());
    selected.or_else(|| screen.states.board.columns(&screen.projection).first())
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(selected) = selected(screen) else {
        let text = "No tasks yet. Press a to add one.";
        canvas.line(area, Line::styled(text, canvas.theme.faint()));
        return;
    };
    if let Some(from) = screen.states.board.open {
        details::draw(screen, canvas, area, selected, Some(from));
        return;
    }
    let details = if area.height < MIN_HEIGHT_WITH_DETAILS { 0 } else { area.height / 4 + 2 };
    let rows = [Constraint::Min(0), Constraint::Length(1), Constraint::Length(details)];
    let [board, legend, details] = Layout::vertical(rows).areas(area);
    let columns = screen.states.board.columns(&screen.projection);
    if screen.states.board.is_graph {
        let layout = screen.states.board.graph(&screen.projection, board);
        layout.draw(screen, canvas, board, selected);
    } else {
        columns.draw(screen, canvas, board, selected);
    }
    self::legend(screen, &columns, canvas, legend);
    details::draw(screen, canvas, details, selected, None);
}

/// Draws the legend, with the number of tasks in each state.
fn legend(screen: &Screen, columns: &Columns, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let is_graph = screen.states.board.is_graph;
    let mut spans = Vec::new();
    if columns.stuck > 0 {
        spans.push(Span::styled(format!("! {} stuck  ", columns.stuck), theme.urgent()));
    }
    if !columns.critical.is_empty() {
        let count = columns.critical.len();
        let (sign, text) = if is_graph {
            ("━", format!(" critical path ({count})  "))
        } else {
            ("◆", format!(" critical path: {count} tasks in sequence"))
        };
        spans.push(Span::styled(sign, theme.strong()));
        spans.push(Span::styled(text, theme.faint()));
    }
    if is_graph {
        let text = "○ not started  ◐ in progress  ⊘ blocked  ● done";
        spans.push(Span::styled(text, theme.faint()));
    }
    canvas.line(area, Line::from(spans));
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    let selected = selected(screen);
    let (page, max_scroll) = (screen.frame.page, screen.frame.max_scroll);
    let state = &mut screen.states.board;
    if let Some(from) = state.open {
        state.open = match command {
            KeyCommand::Open | KeyCommand::Back => None,
            KeyCommand::Left | KeyCommand::Right => state.open,
            _ => Some(step(from, max_scroll + 1, page, command)?),
        };
        return Some(());
    }
    match command {
        KeyCommand::Graph => state.is_graph = !state.is_graph,
        KeyCommand::Open => state.open = selected.map(|_| 0),
        KeyCommand::Back => {}
        _ => {
            let to = if state.is_graph {
                let layout = state.graph.0.borrow().as_ref().map(|(_, value)| Arc::clone(value));
                layout.and_then(|layout| layout.step(selected?, page, command))
            } else {
                state.columns(&screen.projection).step(selected.unwrap_or_default(), page, command)
            };
            screen.task = Some(to?);
        }
    }
    // Store the selection, so that it stays the same even if another task becomes the most relevant one.
    screen.task = screen.task.or(selected);
    Some(())
}

/// Returns the full text of the selected task.
pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    let card = screen.projection.task(selected(screen)?)?;
    let (subject, description) = (text::plain(&card.subject), card.description());
    Some(format!("task {}: {subject}\n\n{}", card.id, text::plain(&description)))
}

/// Wraps text to at most `most` lines. Text that was cut off ends with `…`.
fn wrap_to_lines(text: &str, width: usize, most: usize) -> Vec<String> {
    let parts = text::wrap(text, width);
    let mut lines: Vec<String> =
        parts.iter().take(most).map(|part| text::cut(part, width)).collect();
    if parts.len() > most
        && let Some(last) = lines.last_mut()
    {
        let rest: Vec<&str> = parts.into_iter().skip(most.saturating_sub(1)).collect();
        *last = text::cut(&rest.join(" "), width);
    }
    lines
}

#[cfg(test)]
mod tests;
