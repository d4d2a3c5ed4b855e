//! The dependency graph, from left to right: each task is placed to the right of all tasks it waits for.
//!
//! The layout is computed in three steps: `plan` assigns a layer to each task and selects the lines to draw,
//! `rows` assigns rows, and `routes` routes the lines. It is computed once for each board and screen size;
//! `draw` then draws the visible part.

mod draw;
mod plan;
mod routes;
mod rows;
mod strokes;

use std::collections::{BTreeMap, BTreeSet};

use brigade_core::graph::Graph;
use brigade_core::projection::TeamProjection;

use self::plan::GraphPlan;
use self::routes::Net;
use self::rows::{LayoutItem, RowLayout};
use crate::keys::KeyCommand;
use crate::screen::views::step;

/// Minimum and maximum width of a task's box. `COMFORTABLE_WIDTH` is wide enough to read most subjects.
const WIDTH_RANGE: (usize, usize) = (14, 30);
const COMFORTABLE_WIDTH: usize = 18;
/// If a graph has more tasks than this, its boxes have the minimum height.
const MAX_TASKS_FOR_TALL_BOXES: usize = 500;
/// Minimum number of columns between two layers: room for a line and its arrow head.
const MIN_GAP: usize = 3;

/// Returns an element of a list, or the default value if the index is out of range.
fn get_or_default<T: Copy + Default>(list: &[T], index: usize) -> T {
    list.get(index).copied().unwrap_or_default()
}

/// The dependency graph of a board, with a position for each box and line.
#[derive(Debug, Default)]
pub(super) struct GraphLayout {
    /// Width and height of each box.
    size: (usize, usize),
    /// Left edge of each layer.
    columns: Vec<usize>,
    /// The boxes of each layer, top to bottom: the row where lines attach to the box, and the task.
    boxes: Vec<Vec<(usize, u64)>>,
    /// For each layer, the points where long lines pass through it.
    bends: Vec<Vec<LayoutItem>>,
    /// The lines between each layer and the next.
    nets: Vec<Vec<Net>>,
    /// Layer and row of each task.
    positions: BTreeMap<u64, (usize, usize)>,
    /// For each task, the tasks that lines connect to its left side and to its right side.
    neighbours: BTreeMap<u64, [Vec<u64>; 2]>,
    critical: BTreeSet<u64>,
    /// Width and height of the whole graph.
    total: (usize, usize),
    /// First row of the isolated tasks, which have no dependencies and no dependents. `None` if no task is
    /// isolated, or if every task is isolated.
    isolated: Option<usize>,
    /// Number of lines that are left out.
    hidden: usize,
}

impl GraphLayout {
    pub(super) fn new(projection: &TeamProjection, width: u16, height: u16) -> Self {
        let critical = super::critical_tasks(projection);
        let (width, height) = (usize::from(width), usize::from(height));
        Self::compute(projection.graph(), critical, width, height)
    }

    fn compute(graph: &Graph, critical: BTreeSet<u64>, width: usize, height: usize) -> Self {
        let plan = GraphPlan::new(graph);
        // Use taller boxes, with more lines for the subject, if the graph still fits on the screen.
        let is_small =
            graph.nodes().take(MAX_TASKS_FOR_TALL_BOXES + 1).count() <= MAX_TASKS_FOR_TALL_BOXES;
        let heights = if is_small { [5, 4].as_slice() } else { &[] };
        let candidates =
            heights.iter().map(|box_height| Self::from_plan(&plan, width, *box_height));
        let fits = |layout: &Self| {
            // A wide box does not need a third line for the subject.
            layout.total.1 <= height && (layout.size.0 <= COMFORTABLE_WIDTH || layout.size.1 < 5)
        };
        let fitting = { candidates }.find(fits);
        let mut layout = fitting.unwrap_or_else(|| Self::from_plan(&plan, width, 3));
        layout.critical = critical;
        layout
    }

    fn from_plan(plan: &GraphPlan, width: usize, box_height: usize) -> Self {
        let mut layout = Self::default();
        let mut gaps = vec![MIN_GAP; plan.depth.saturating_sub(1)];
        for part in &plan.parts {
            let rows = RowLayout::new(part, box_height);
            let id = |index: usize| part.tasks.get(index).map_or(0, |task| task.id);
            for (a, b, _) in &part.links {
                let (a, b) = (id(*a), id(*b));
                let [_, right] = layout.neighbours.entry(a).or_default();
                right.push(b);
                let [left, _] = layout.neighbours.entry(b).or_default();
                left.push(a);
            }
            for (layer, nets) in routes::nets(&rows).into_iter().enumerate() {
                let most = nets.iter().filter_map(|net| net.track).max();
                if let (Some(gap), Some(most)) = (gaps.get_mut(layer), most) {
                    // Leave room for a line, the vertical tracks and the arrow head.
                    *gap = (*gap).max(most + 3);
                }
                layout.add_nets(layer, nets);
            }
            layout.add_items(&rows);
        }
        let room = width.saturating_sub(gaps.iter().sum());
        let box_width = match room.checked_div(plan.depth) {
            None => WIDTH_RANGE.1.min(width.max(WIDTH_RANGE.0)),
            Some(box_width) if box_width >= WIDTH_RANGE.0 => box_width.min(WIDTH_RANGE.1),
            // If the graph must be scrolled anyway, make its boxes wide enough to read.
            Some(_) => COMFORTABLE_WIDTH,
        };
        layout.size = (box_width, box_height);
        let mut next = 0;
        for layer in 0..plan.depth {
            layout.columns.push(next);
            next += box_width + gaps.get(layer).copied().unwrap_or(MIN_GAP);
        }
        layout.add_isolated(&plan.isolated, width);
        let mut columns = layout.columns.iter().zip(&layout.boxes);
        let last = columns.rfind(|(_, boxes)| !boxes.is_empty());
        layout.total.0 = last.map_or(0, |(column, _)| column + box_width);
        layout
    }

    fn add_nets(&mut self, layer: usize, mut nets: Vec<Net>) {
        nets.iter_mut().for_each(|net| net.shift_down(self.total.1));
        self.nets.resize_with(self.nets.len().max(layer + 1), Vec::new);
        if let Some(all) = self.nets.get_mut(layer) {
            all.append(&mut nets);
        }
    }

    fn add_items(&mut self, rows: &RowLayout) {
        for (layer, items) in rows.layers.iter().enumerate() {
            self.bends.resize_with(self.bends.len().max(layer + 1), Vec::new);
            for item in items.iter().filter_map(|index| rows.items.get(*index)) {
                let row = item.row + self.total.1;
                match item.task {
                    Some(id) => self.add(id, layer, row),
                    None => {
                        if let Some(bends) = self.bends.get_mut(layer) {
                            bends.push(LayoutItem { row, ..*item });
                        }
                    }
                }
            }
        }
        self.total.1 += rows.height;
        self.hidden += rows.hidden;
    }

    fn add(&mut self, id: u64, layer: usize, row: usize) {
        self.boxes.resize_with(self.boxes.len().max(layer + 1), Vec::new);
        if let Some(boxes) = self.boxes.get_mut(layer) {
            boxes.push((row, id));
        }
        self.positions.insert(id, (layer, row));
    }

    /// Places the isolated tasks below the other tasks. Each row contains as many tasks as fit.
    fn add_isolated(&mut self, isolated: &[u64], width: usize) {
        let (box_width, box_height) = self.size;
        let end = self.columns.last().map_or(0, |last| last + box_width + MIN_GAP);
        let more =
            (0..).map(|n| end + n * (box_width + MIN_GAP)).take_while(|x| x + box_width <= width);
        self.columns.extend(more);
        if self.columns.is_empty() {
            self.columns.push(0);
        }
        if isolated.is_empty() {
            return;
        }
        if self.total.1 > 0 {
            self.isolated = Some(self.total.1);
            self.total.1 += 1;
        }
        let fits = self.columns.iter().filter(|x| *x + box_width <= width).count().max(1);
        for (index, id) in isolated.iter().enumerate() {
            let row = self.total.1 + index / fits * box_height + 1;
            self.add(*id, index % fits, row);
        }
        self.total.1 += isolated.len().div_ceil(fits) * box_height;
    }

    /// Returns the task that is selected after a movement command.
    pub(super) fn step(&self, from: u64, page: usize, command: KeyCommand) -> Option<u64> {
        let &(layer, row) = self.positions.get(&from)?;
        let boxes = self.boxes.get(layer)?;
        let index = boxes.partition_point(|(other_row, _)| *other_row < row);
        let to = match command {
            KeyCommand::Left => self.nearest_beside(from, layer.checked_sub(1), row, 0),
            KeyCommand::Right => self.nearest_beside(from, Some(layer + 1), row, 1),
            KeyCommand::First => self.boxes.first()?.first().map(|(_, id)| *id),
            KeyCommand::Last => self.boxes.last()?.last().map(|(_, id)| *id),
            _ => {
                let to = step(index, boxes.len(), page, command)?;
                let inside = boxes.get(to).map(|(_, id)| *id);
                inside
                    .filter(|id| *id != from)
                    .or_else(|| self.nearest_in_other_layer(layer, row, command))
            }
        };
        Some(to.unwrap_or(from))
    }

    /// Returns the nearest task that a line connects to this task. If no line does, returns the nearest task
    /// of the adjacent layer.
    fn nearest_beside(
        &self,
        from: u64,
        layer: Option<usize>,
        row: usize,
        side: usize,
    ) -> Option<u64> {
        let distance =
            |id: &&u64| self.positions.get(id).map_or(0, |(_, other_row)| other_row.abs_diff(row));
        let linked = self.neighbours.get(&from).and_then(|sides| sides.get(side));
        let along = linked.into_iter().flatten().min_by_key(distance).copied();
        along.or_else(|| {
            let boxes = self.boxes.get(layer?)?;
            boxes.iter().min_by_key(|(other_row, _)| other_row.abs_diff(row)).map(|(_, id)| *id)
        })
    }

    /// Returns the nearest task above or below the selected one, in another layer. Used when the selected
    /// task is the first or last of its own layer.
    fn nearest_in_other_layer(&self, layer: usize, row: usize, command: KeyCommand) -> Option<u64> {
        let is_down = matches!(command, KeyCommand::Down | KeyCommand::PageDown);
        let nearest = |(other, boxes): (usize, &Vec<(usize, u64)>)| {
            let index =
                boxes.partition_point(|(other_row, _)| *other_row < row + usize::from(is_down));
            let index = if is_down { index } else { index.checked_sub(1)? };
            let (other_row, id) = boxes.get(index)?;
            Some((other_row.abs_diff(row), other.abs_diff(layer), *id))
        };
        let all = self.boxes.iter().enumerate().filter_map(nearest);
        all.min().map(|(_, _, id)| id)
    }
}

#[cfg(test)]
mod tests;
