//! The graph of what waits for what, from left to right: each task stands behind all it waits for.
//!
//! Laying out goes in steps, each a file: `plan` says which task is in which layer and which lines there
//! are, `flow` gives each its row, `routes` leads the lines. It is done once for a board and a size;
//! `draw` then draws what is seen of it.

mod draw;
mod flow;
mod plan;
mod routes;
mod strokes;

use std::collections::{BTreeMap, BTreeSet};

use brigade_core::graph::Graph;
use brigade_core::projection::Picture;

use self::flow::{Flow, Item};
use self::plan::Plan;
use self::routes::Net;
use crate::keys::Command;
use crate::views::step;

/// The narrowest and the widest box, and one that can be read well.
const WIDTHS: (usize, usize) = (14, 30);
const WIDE: usize = 18;
/// Up to how many tasks it is tried how tall the boxes can be.
const FEW: usize = 500;
/// The least that stands between two layers: a line, and its point.
const GAP: usize = 3;

/// An element of a list, or what stands for none.
fn at<T: Copy + Default>(list: &[T], place: usize) -> T {
    list.get(place).copied().unwrap_or_default()
}

/// A board laid out.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    /// How wide and how tall a box is.
    size: (usize, usize),
    /// Where each layer begins.
    columns: Vec<usize>,
    /// The tasks of each layer from the top: the row of each one's middle, and its number.
    boxes: Vec<Vec<(usize, u64)>>,
    /// The lines that go past each layer.
    bends: Vec<Vec<Item>>,
    /// The lines behind each layer.
    nets: Vec<Vec<Net>>,
    /// Which layer and row each task has.
    places: BTreeMap<u64, (usize, usize)>,
    /// The tasks that lines lead to each task from, and those they lead to.
    beside: BTreeMap<u64, [Vec<u64>; 2]>,
    critical: BTreeSet<u64>,
    /// How wide and how high all of it is.
    total: (usize, usize),
    /// Where those begin that wait for nothing and that nothing waits for, if there are others.
    alone: Option<usize>,
    /// How many lines are not drawn.
    hidden: usize,
}

impl Drawing {
    pub(super) fn of(picture: &Picture, width: u16, height: u16) -> Self {
        let critical = super::critical(picture);
        let (width, height) = (usize::from(width), usize::from(height));
        Self::laid_out(picture.graph(), critical, width, height)
    }

    fn laid_out(graph: &Graph, critical: BTreeSet<u64>, width: usize, height: usize) -> Self {
        let plan = Plan::of(graph);
        // Subjects get more lines where all can be seen nevertheless.
        let few = graph.nodes().take(FEW + 1).count() <= FEW;
        let heights = if few { [5, 4].as_slice() } else { &[] };
        let tried = heights.iter().map(|tall| Self::of_plan(&plan, width, *tall));
        let fits = |drawing: &Self| {
            // A wide box needs no third line.
            drawing.total.1 <= height && (drawing.size.0 <= WIDE || drawing.size.1 < 5)
        };
        let fitting = { tried }.find(fits);
        let mut drawing = fitting.unwrap_or_else(|| Self::of_plan(&plan, width, 3));
        drawing.critical = critical;
        drawing
    }

    fn of_plan(plan: &Plan, width: usize, tall: usize) -> Self {
        let mut drawing = Self::default();
        let mut gaps = vec![GAP; plan.depth.saturating_sub(1)];
        for part in &plan.parts {
            let flow = Flow::of(part, tall);
            let id = |place: usize| part.tasks.get(place).map_or(0, |task| task.id);
            for (a, b, _) in &part.links {
                let (a, b) = (id(*a), id(*b));
                let [_, right] = drawing.beside.entry(a).or_default();
                right.push(b);
                let [left, _] = drawing.beside.entry(b).or_default();
                left.push(a);
            }
            for (layer, nets) in routes::nets(&flow).into_iter().enumerate() {
                let most = nets.iter().filter_map(|net| net.track).max();
                if let (Some(gap), Some(most)) = (gaps.get_mut(layer), most) {
                    // A line, the tracks, and the point.
                    *gap = (*gap).max(most + 3);
                }
                drawing.add_nets(layer, nets);
            }
            drawing.add_items(&flow);
        }
        let room = width.saturating_sub(gaps.iter().sum());
        let wide = match room.checked_div(plan.depth) {
            None => WIDTHS.1.min(width.max(WIDTHS.0)),
            Some(wide) if wide >= WIDTHS.0 => wide.min(WIDTHS.1),
            // What has to be scrolled anyway may as well be read.
            Some(_) => WIDE,
        };
        drawing.size = (wide, tall);
        let mut next = 0;
        for layer in 0..plan.depth {
            drawing.columns.push(next);
            next += wide + gaps.get(layer).copied().unwrap_or(GAP);
        }
        drawing.add_alone(&plan.alone, width);
        let mut columns = drawing.columns.iter().zip(&drawing.boxes);
        let last = columns.rfind(|(_, boxes)| !boxes.is_empty());
        drawing.total.0 = last.map_or(0, |(column, _)| column + wide);
        drawing
    }

    fn add_nets(&mut self, layer: usize, mut nets: Vec<Net>) {
        nets.iter_mut().for_each(|net| net.lower(self.total.1));
        self.nets.resize_with(self.nets.len().max(layer + 1), Vec::new);
        if let Some(all) = self.nets.get_mut(layer) {
            all.append(&mut nets);
        }
    }

    fn add_items(&mut self, flow: &Flow) {
        for (layer, items) in flow.layers.iter().enumerate() {
            self.bends.resize_with(self.bends.len().max(layer + 1), Vec::new);
            for item in items.iter().filter_map(|place| flow.items.get(*place)) {
                let row = item.row + self.total.1;
                match item.task {
                    Some(id) => self.add(id, layer, row),
                    None => {
                        if let Some(bends) = self.bends.get_mut(layer) {
                            bends.push(Item { row, ..*item });
                        }
                    }
                }
            }
        }
        self.total.1 += flow.height;
        self.hidden += flow.hidden;
    }

    fn add(&mut self, id: u64, layer: usize, row: usize) {
        self.boxes.resize_with(self.boxes.len().max(layer + 1), Vec::new);
        if let Some(boxes) = self.boxes.get_mut(layer) {
            boxes.push((row, id));
        }
        self.places.insert(id, (layer, row));
    }

    /// Those that wait for nothing and that nothing waits for stand below, as many in a row as there is
    /// room for.
    fn add_alone(&mut self, alone: &[u64], width: usize) {
        let (wide, tall) = self.size;
        let end = self.columns.last().map_or(0, |last| last + wide + GAP);
        let more = (0..).map(|n| end + n * (wide + GAP)).take_while(|x| x + wide <= width);
        self.columns.extend(more);
        if self.columns.is_empty() {
            self.columns.push(0);
        }
        if alone.is_empty() {
            return;
        }
        if self.total.1 > 0 {
            self.alone = Some(self.total.1);
            self.total.1 += 1;
        }
        let fits = self.columns.iter().filter(|x| *x + wide <= width).count().max(1);
        for (place, id) in alone.iter().enumerate() {
            let row = self.total.1 + place / fits * tall + 1;
            self.add(*id, place % fits, row);
        }
        self.total.1 += alone.len().div_ceil(fits) * tall;
    }

    /// The task one step on from another.
    pub(super) fn step(&self, from: u64, page: usize, command: Command) -> Option<u64> {
        let &(layer, row) = self.places.get(&from)?;
        let boxes = self.boxes.get(layer)?;
        let place = boxes.partition_point(|(its, _)| *its < row);
        let to = match command {
            Command::Left => self.beside(from, layer.checked_sub(1), row, 0),
            Command::Right => self.beside(from, Some(layer + 1), row, 1),
            Command::First => self.boxes.first()?.first().map(|(_, id)| *id),
            Command::Last => self.boxes.last()?.last().map(|(_, id)| *id),
            _ => {
                let to = step(place, boxes.len(), page, command)?;
                let inside = boxes.get(to).map(|(_, id)| *id);
                inside.filter(|id| *id != from).or_else(|| self.past(layer, row, command))
            }
        };
        Some(to.unwrap_or(from))
    }

    /// Along a line to the nearest task, or else to the nearest in the layer beside.
    fn beside(&self, from: u64, layer: Option<usize>, row: usize, side: usize) -> Option<u64> {
        let far = |id: &&u64| self.places.get(id).map_or(0, |(_, its)| its.abs_diff(row));
        let linked = self.beside.get(&from).and_then(|sides| sides.get(side));
        let along = linked.into_iter().flatten().min_by_key(far).copied();
        along.or_else(|| {
            let boxes = self.boxes.get(layer?)?;
            boxes.iter().min_by_key(|(its, _)| its.abs_diff(row)).map(|(_, id)| *id)
        })
    }

    /// Above the first or below the last of a layer: the nearest of any other.
    fn past(&self, layer: usize, row: usize, command: Command) -> Option<u64> {
        let is_down = matches!(command, Command::Down | Command::PageDown);
        let nearest = |(other, boxes): (usize, &Vec<(usize, u64)>)| {
            let place = boxes.partition_point(|(its, _)| *its < row + usize::from(is_down));
            let place = if is_down { place } else { place.checked_sub(1)? };
            let (its, id) = boxes.get(place)?;
            Some((its.abs_diff(row), other.abs_diff(layer), *id))
        };
        let all = self.boxes.iter().enumerate().filter_map(nearest);
        all.min().map(|(_, _, id)| id)
    }
}

#[cfg(test)]
mod tests;
