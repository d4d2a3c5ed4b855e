//! Draws the task graph as an SVG picture: a column for each step, and an arrow for each dependency.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use brigade_core::task_view::TaskView;
use brigade_core::text;
use brigade_wire::name::TaskId;
use unicode_width::UnicodeWidthStr as _;

use super::TaskTree;

const BOX_WIDTH: usize = 230;
const BOX_HEIGHT: usize = 48;
const GAP_X: usize = 60;
const GAP_Y: usize = 18;
const MARGIN: usize = 20;
/// The number of terminal columns that fit on a line of a box.
const LINE_WIDTH: usize = 32;

/// Renders the graph. The colours suit a light and a dark background, and symbols repeat what they show.
pub(crate) fn svg(drawing: &TaskTree<'_>) -> String {
    let places = places(drawing);
    let columns = places.values().map(|(column, _)| column + 1).max().unwrap_or_default();
    let rows = places.values().map(|(_, row)| row + 1).max().unwrap_or_default();
    let width = 2 * MARGIN + columns * BOX_WIDTH + columns.saturating_sub(1) * GAP_X;
    let height = 2 * MARGIN + rows * BOX_HEIGHT + rows.saturating_sub(1) * GAP_Y;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#888\"/></marker></defs>\n"
    );
    for (id, node) in drawing.graph.nodes() {
        for &blocker in &node.after {
            let (Some(&from), Some(&to)) = (places.get(&blocker), places.get(&id)) else {
                continue;
            };
            let wide = if drawing.is_critical_step(blocker, id) { 2.5 } else { 1.2 };
            let _infallible = writeln!(
                text,
                "<path d=\"{}\" fill=\"none\" stroke=\"#888\" stroke-width=\"{wide}\" \
                 marker-end=\"url(#arrow)\"/>",
                curve(from, to)
            );
        }
    }
    for (id, node) in drawing.graph.nodes() {
        let Some(&(column, row)) = places.get(&id) else { continue };
        let (x, y) = corner(column, row);
        let state = TaskView::new(drawing.graph, id);
        let (color, dash) = match state {
            TaskView::Ready => ("#2a9d4a", ""),
            TaskView::Kept => ("#777", ""),
            TaskView::InProgress => ("#d9822b", ""),
            TaskView::Blocked => ("#777", " stroke-dasharray=\"5 4\""),
            TaskView::Done => ("#aaa", ""),
        };
        let wide = if drawing.is_critical(id) { 2.5 } else { 1.2 };
        let first = format!("{} {id}  {}", state.symbol(), text::one_line(&node.subject));
        let second = match &node.owner {
            Some(owner) => format!("{} · {}", state.label(), text::one_line(owner)),
            None => state.label().to_owned(),
        };
        let _infallible = writeln!(
            text,
            "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"6\" fill=\"#888\" fill-opacity=\"0.08\" \
             stroke=\"{color}\" stroke-width=\"{wide}\"{dash}/>\n\
             <text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>\n\
             <text x=\"{}\" y=\"{}\" fill=\"#888\" font-size=\"11\">{}</text></g>",
            escape(&text::one_line(&node.subject)),
            x + 10,
            y + 20,
            escape(&fit(&first)),
            x + 10,
            y + 37,
            escape(&fit(&second)),
        );
    }
    text.push_str("</svg>\n");
    text
}

/// Returns the column and the row of each task. A task is to the right of every task that it waits for. Tasks in a cycle
/// are in the first column.
fn places(drawing: &TaskTree<'_>) -> BTreeMap<TaskId, (usize, usize)> {
    let mut columns: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for id in drawing.graph.topological_order() {
        let Some(node) = drawing.graph.node(id) else { continue };
        let before = node.after.iter().filter_map(|blocker| columns.get(blocker));
        let column = before.max().map_or(0, |column| column + 1);
        columns.insert(id, column);
        // Stay in the row of the first blocker if there is room.
        let blocker = node.after.iter().find_map(|blocker| places.get(blocker));
        let wanted = blocker.map_or(0, |(_, row): &(usize, usize)| *row);
        let next = used.entry(column).or_default();
        let row = wanted.max(*next);
        *next = row + 1;
        places.insert(id, (column, row));
    }
    places
}

fn corner(column: usize, row: usize) -> (usize, usize) {
    (MARGIN + column * (BOX_WIDTH + GAP_X), MARGIN + row * (BOX_HEIGHT + GAP_Y))
}

/// Returns the path of an arrow between two boxes.
fn curve(from: (usize, usize), to: (usize, usize)) -> String {
    let (x1, y1) = corner(from.0, from.1);
    let (x2, y2) = corner(to.0, to.1);
    let (x1, y1, y2) = (x1 + BOX_WIDTH, y1 + BOX_HEIGHT / 2, y2 + BOX_HEIGHT / 2);
    let bend = GAP_X / 2;
    format!("M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}", x1 + bend, x2.saturating_sub(bend))
}

/// Cuts a line that does not fit in a box.
fn fit(line: &str) -> String {
    if line.width() > LINE_WIDTH { text::cut(line, LINE_WIDTH) } else { line.to_owned() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
