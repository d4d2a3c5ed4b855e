//! The board view: tasks in columns by state, or as a dependency graph.

mod card;
mod columns;
mod details;
mod graph;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use brigade_core::picture::{Hold, Picture};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use self::columns::Columns;
use crate::output;
use crate::ui::canvas::Canvas;
use crate::ui::keys::Command;
use crate::ui::screen::{Effect, Screen};
use crate::ui::views::step;

/// Minimum height to show the selected task's details below the board.
const ROOM_FOR_DETAILS: u16 = 26;

/// The state of the view.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether the graph is shown instead of the columns.
    is_graph: bool,
    /// Set if the selected task fills the view: its scroll position.
    open: Option<usize>,
    columns: Kept<u64, Columns>,
    graph: Kept<(u64, u16, u16), graph::Drawing>,
}

/// Caches a value for one key, so that a redraw does not repeat the layout.
#[derive(Debug)]
struct Kept<K, T>(RefCell<Option<(K, Arc<T>)>>);

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<K: PartialEq, T> Kept<K, T> {
    fn get(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.borrow_mut();
        match &*kept {
            Some((its, made)) if *its == key => Arc::clone(made),
            _ => {
                let made = Arc::new(make());
                *kept = Some((key, Arc::clone(&made)));
                made
            }
        }
    }
}

/// The tasks on the longest unfinished chain; empty if no task waits for another.
fn critical(picture: &Picture) -> BTreeSet<u64> {
    let path = picture.graph().critical_path();
    if path.len() < 2 { BTreeSet::new() } else { path.iter().map(|id| id.get()).collect() }
}

/// Whether a task is stuck: it will not proceed by itself.
fn is_stuck(hold: Option<&Hold>) -> bool {
    matches!(hold, Some(Hold::Circle(_) | Hold::Idle(_) | Hold::Orphan(_)))
}

impl State {
    fn columns(&self, picture: &Picture) -> Arc<Columns> {
        self.columns.get(picture.board_revision(), || Columns::of(picture))
    }

    fn graph(&self, picture: &Picture, area: Rect) -> Arc<graph::Drawing> {
        let key = (picture.board_revision(), area.width, area.height);
        self.graph.get(key, || graph::Drawing::of(picture, area.width, area.height))
    }
}

/// The selected task, or the most relevant one.
pub(crate) fn chosen(screen: &Screen) -> Option<u64> {
    let chosen = screen.task.filter(|id| screen.picture.card(*id).is_some());
    chosen.or_else(|| screen.states.board.columns(&screen.picture).first())
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(chosen) = chosen(screen) else {
        let words = "No tasks yet. Press a to add one.";
        canvas.line(area, Line::styled(words, canvas.theme.faint()));
        return;
    };
    if let Some(from) = screen.states.board.open {
        details::draw(screen, canvas, area, chosen, Some(from));
        return;
    }
    let details = if area.height < ROOM_FOR_DETAILS { 0 } else { area.height / 4 + 2 };
    let rows = [Constraint::Min(0), Constraint::Length(1), Constraint::Length(details)];
    let [board, legend, details] = Layout::vertical(rows).areas(area);
    let columns = screen.states.board.columns(&screen.picture);
    if screen.states.board.is_graph {
        let drawing = screen.states.board.graph(&screen.picture, board);
        drawing.draw(screen, canvas, board, chosen);
    } else {
        columns.draw(screen, canvas, board, chosen);
    }
    self::legend(screen, &columns, canvas, legend);
    details::draw(screen, canvas, details, chosen, None);
}

/// The legend with counts.
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

pub(crate) fn act(screen: &mut Screen, command: Command) -> Option<Vec<Effect>> {
    let chosen = chosen(screen);
    let (page, extent) = (screen.drawn.page, screen.drawn.extent);
    let state = &mut screen.states.board;
    if let Some(from) = state.open {
        state.open = match command {
            Command::Open | Command::Back => None,
            Command::Left | Command::Right => state.open,
            _ => Some(step(from, extent + 1, page, command)?),
        };
        return Some(Vec::new());
    }
    match command {
        Command::Graph => state.is_graph = !state.is_graph,
        Command::Open => state.open = chosen.map(|_| 0),
        Command::Back => {}
        _ => {
            let to = if state.is_graph {
                let drawing = state.graph.0.borrow().as_ref().map(|(_, made)| Arc::clone(made));
                drawing.and_then(|drawing| drawing.step(chosen?, page, command))
            } else {
                state.columns(&screen.picture).step(chosen.unwrap_or_default(), page, command)
            };
            screen.task = Some(to?);
        }
    }
    // Keep the selection, even if another task becomes the first.
    screen.task = screen.task.or(chosen);
    Some(Vec::new())
}

/// The selected task's full text.
pub(crate) fn chosen_text(screen: &Screen) -> Option<String> {
    let card = screen.picture.card(chosen(screen)?)?;
    let (subject, description) = (output::plain(&card.subject), card.description());
    Some(format!("task {}: {subject}\n\n{}", card.id, output::plain(&description)))
}

/// Wraps text to at most `most` lines; a cut is marked with `…`.
fn in_lines(text: &str, width: usize, most: usize) -> Vec<String> {
    let parts = output::wrap(text, width);
    let mut lines: Vec<String> =
        parts.iter().take(most).map(|part| output::cut(part, width)).collect();
    if parts.len() > most
        && let Some(last) = lines.last_mut()
    {
        let rest: Vec<&str> = parts.into_iter().skip(most.saturating_sub(1)).collect();
        *last = output::cut(&rest.join(" "), width);
    }
    lines
}

#[cfg(test)]
mod tests;
