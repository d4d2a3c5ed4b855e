//! Orders the tasks within each layer and assigns rows to them, so that few lines cross and most are
//! straight.

use super::get_or_default;
use super::plan::GraphPart;

/// Maximum average number of bends per task. A bend is a point where a long line passes through a layer.
const MAX_BENDS_PER_TASK: usize = 8;
/// Number of passes over the layers in each direction.
const SWEEPS: usize = 4;
/// Weight of a line on the critical path; other lines have weight 1.
const CRITICAL_WEIGHT: f64 = 6.0;

/// A task, or a point where a long line passes through a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayoutItem {
    /// The task; `None` for a point of a long line.
    pub(super) task: Option<u64>,
    pub(super) layer: usize,
    /// The row where lines enter and leave this item.
    pub(super) row: usize,
    pub(super) done: bool,
    /// Whether the item is part of the critical path.
    pub(super) heavy: bool,
}

/// A connected component of the graph, with a layer and a row for each item.
#[derive(Debug, Default)]
pub(super) struct RowLayout {
    pub(super) items: Vec<LayoutItem>,
    /// Links between items of adjacent layers, and whether each is on the critical path.
    pub(super) links: Vec<(usize, usize, bool)>,
    /// The items of each layer, top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// Total number of rows.
    pub(super) height: usize,
    /// Number of lines left out because they are too long.
    pub(super) hidden: usize,
}

impl RowLayout {
    /// Lays out a component with boxes of height `box_height`. Lines attach to the second row of a box.
    pub(super) fn new(part: &GraphPart, box_height: usize) -> Self {
        let mut layout = Self::default();
        for task in &part.tasks {
            let (task, layer, done) = (Some(task.id), task.layer, task.done);
            layout.items.push(LayoutItem { task, layer, done, ..LayoutItem::default() });
        }
        layout.add_links(part);
        let depth = layout.items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
        layout.layers = vec![Vec::new(); depth];
        for (index, item) in layout.items.iter().enumerate() {
            if let Some(layer) = layout.layers.get_mut(item.layer) {
                layer.push(index);
            }
        }
        let neighbours = layout.neighbours();
        layout.order_layers(&neighbours);
        layout.assign_rows(&neighbours, box_height);
        layout
    }

    /// Splits long lines into one link per layer. Lines from the same task share the points that they pass
    /// through.
    fn add_links(&mut self, part: &GraphPart) {
        let layer = |index: usize| part.tasks.get(index).map_or(0, |task| task.layer);
        let mut from: Vec<Vec<(usize, bool)>> = vec![Vec::new(); part.tasks.len()];
        for &(a, b, heavy) in &part.links {
            if let Some(from) = from.get_mut(a) {
                from.push((b, heavy));
            }
        }
        let longest = |from: usize, to: &[(usize, bool)], most: usize| {
            let spans = to.iter().map(|(to, _)| layer(*to) - layer(from));
            spans.filter(|span| *span <= most).max().unwrap_or(0)
        };
        let mut most = part.tasks.len();
        let bends = |most: usize| -> usize {
            from.iter().enumerate().map(|(a, to)| longest(a, to, most).saturating_sub(1)).sum()
        };
        while most > 1 && bends(most) > MAX_BENDS_PER_TASK * part.tasks.len() {
            most /= 2;
        }
        for (a, to) in from.iter().enumerate() {
            // The source task, followed by one point for each layer that its lines pass through.
            let mut chain = vec![a];
            for step in 1..longest(a, to, most) {
                let here = layer(a) + step;
                let goes = |&&(to, heavy): &&(usize, bool)| heavy && layer(to) > here;
                let heavy = to.iter().any(|link| goes(&link));
                let done = self.items.get(a).is_some_and(|item| item.done);
                let index = self.items.len();
                self.items.push(LayoutItem { layer: here, heavy, done, ..LayoutItem::default() });
                self.links.extend(chain.last().map(|last| (*last, index, heavy)));
                chain.push(index);
            }
            for &(b, heavy) in to {
                let span = layer(b) - layer(a);
                match chain.get(span.saturating_sub(1)) {
                    Some(last) if span <= most => self.links.push((*last, b, heavy)),
                    _ => self.hidden += 1,
                }
            }
        }
    }

    /// Returns the weighted neighbours of each item in the previous layer and in the next layer.
    fn neighbours(&self) -> [Vec<Vec<(usize, f64)>>; 2] {
        let mut left = vec![Vec::new(); self.items.len()];
        let mut right = left.clone();
        for &(a, b, heavy) in &self.links {
            // A higher weight keeps the critical path straight.
            let weight = if heavy { CRITICAL_WEIGHT } else { 1.0 };
            if let (Some(right), Some(left)) = (right.get_mut(a), left.get_mut(b)) {
                right.push((b, weight));
                left.push((a, weight));
            }
        }
        [left, right]
    }

    /// Repeatedly sorts the items of each layer by the mean position of their neighbours. Keeps the order
    /// with the fewest crossings.
    fn order_layers(&mut self, [left, right]: &[Vec<Vec<(usize, f64)>>; 2]) {
        let mut positions = vec![0.0; self.items.len()];
        number_positions(&self.layers, &mut positions);
        let mut best = (self.crossings(&positions), self.layers.clone());
        for sweep in 0..2 * SWEEPS {
            if best.0 == Some(0) {
                break;
            }
            let is_forward = sweep % 2 == 0;
            let neighbours = if is_forward { left } else { right };
            let depth = self.layers.len();
            for step in 1..depth {
                let layer = if is_forward { step } else { depth - 1 - step };
                let Some(items) = self.layers.get_mut(layer) else { continue };
                let mut keyed: Vec<(f64, usize)> = items
                    .iter()
                    .map(|item| {
                        (
                            mean(neighbours, *item, &positions)
                                .unwrap_or(get_or_default(&positions, *item)),
                            *item,
                        )
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                *items = keyed.into_iter().map(|(_, item)| item).collect();
                number_positions(std::slice::from_ref(items), &mut positions);
            }
            let crossings = self.crossings(&positions);
            // Without crossing counts, the orders cannot be compared. Then keep the order computed last.
            if crossings.is_none() || crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// Counts the line crossings; returns `None` if there are too many lines to count.
    fn crossings(&self, positions: &[f64]) -> Option<usize> {
        const MAX_COUNTED_LINKS: usize = 400;
        if self.links.len() > MAX_COUNTED_LINKS {
            return None;
        }
        let ends = |link: &(usize, usize, bool)| {
            let layer = self.items.get(link.0).map_or(0, |item| item.layer);
            (layer, get_or_default(positions, link.0), get_or_default(positions, link.1))
        };
        let ends: Vec<(usize, f64, f64)> = self.links.iter().map(ends).collect();
        let mut count = 0;
        for (number, (layer, a, b)) in ends.iter().enumerate() {
            let others = ends.iter().skip(number + 1).filter(|(other, ..)| other == layer);
            count += others.filter(|(_, c, d)| (a - c) * (b - d) < 0.0).count();
        }
        Some(count)
    }

    /// Assigns rows so that each item is as close as possible to its neighbours. Items keep their order and
    /// do not overlap.
    fn assign_rows(&mut self, [left, right]: &[Vec<Vec<(usize, f64)>>; 2], box_height: usize) {
        let mut rows = vec![0.0; self.items.len()];
        let offsets = self.offsets(box_height);
        let depth = self.layers.len();
        for sweep in 0..2 * SWEEPS + 1 {
            for step in 0..depth {
                let is_forward = sweep % 2 == 0;
                let layer = if is_forward { step } else { depth - 1 - step };
                let neighbours = if is_forward { left } else { right };
                let items = self.layers.get(layer).into_iter().flatten();
                let wanted = |item: &usize| {
                    let to = mean(neighbours, *item, &rows).unwrap_or(get_or_default(&rows, *item));
                    let heavy = neighbours.get(*item).into_iter().flatten().any(|(_, w)| *w > 1.0);
                    (
                        to - get_or_default(&offsets, *item),
                        if heavy { CRITICAL_WEIGHT } else { 1.0 },
                    )
                };
                let wanted: Vec<(f64, f64)> = items.clone().map(wanted).collect();
                for (item, row) in items.zip(isotonic(&wanted)) {
                    if let Some(index) = rows.get_mut(*item) {
                        *index = row + get_or_default(&offsets, *item);
                    }
                }
            }
        }
        // Round only at the end, and round halves in the same direction everywhere, so that symmetric graphs
        // stay symmetric.
        for (row, offset) in rows.iter_mut().zip(&offsets) {
            *row = (*row - offset + 0.501).floor() + offset;
        }
        let above = |item: &LayoutItem| if item.task.is_some() { 1.0 } else { 0.0 };
        let tops = rows.iter().zip(&self.items).map(|(row, item)| row - above(item));
        let first = tops.fold(f64::INFINITY, f64::min);
        for (item, row) in self.items.iter_mut().zip(rows) {
            item.row = to_row(row - first);
            let below = if item.task.is_some() { box_height.saturating_sub(2) } else { 0 };
            self.height = self.height.max(item.row + below + 1);
        }
    }

    /// Returns the minimum distance of each item from the top of its layer.
    fn offsets(&self, box_height: usize) -> Vec<f64> {
        let is_task = |item: usize| self.items.get(item).is_some_and(|item| item.task.is_some());
        let mut offsets = vec![0.0; self.items.len()];
        for layer in &self.layers {
            // The next free row of the layer.
            let mut next = 0;
            for item in layer {
                let (above, below) =
                    if is_task(*item) { (1, box_height.saturating_sub(2)) } else { (0, 0) };
                if let Some(offset) = offsets.get_mut(*item) {
                    *offset = to_f64(next + above);
                }
                next += above + 1 + below;
            }
        }
        offsets
    }
}

#[expect(clippy::cast_precision_loss, reason = "a drawing has fewer than 2^52 rows")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the row is already rounded and never negative"
)]
fn to_row(row: f64) -> usize {
    row.max(0.0) as usize
}

fn number_positions(layers: &[Vec<usize>], positions: &mut [f64]) {
    for layer in layers {
        for (index, item) in layer.iter().enumerate() {
            if let Some(position) = positions.get_mut(*item) {
                *position = to_f64(index);
            }
        }
    }
}

/// Returns the weighted mean position of an item's neighbours; `None` if the item has no neighbours.
fn mean(neighbours: &[Vec<(usize, f64)>], item: usize, positions: &[f64]) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (other, weight) in neighbours.get(item)? {
        sum += get_or_default(positions, *other) * weight;
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights)
}

/// Returns the non-decreasing sequence that is closest to the wanted `(value, weight)` pairs (isotonic
/// regression).
fn isotonic(wanted: &[(f64, f64)]) -> Vec<f64> {
    // Values that are out of order are merged into a pool at their weighted mean.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in wanted {
        let mut pool = (*value, *weight, 1);
        while let Some(&(value, weight, count)) = pools.last() {
            if value <= pool.0 {
                break;
            }
            let sum = weight + pool.1;
            pool = ((value * weight + pool.0 * pool.1) / sum, sum, count + pool.2);
            pools.pop();
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(value, _, count)| std::iter::repeat_n(value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::PlacedTask;
    use super::*;

    #[test]
    fn out_of_order_values_are_pooled() {
        let check = |wanted: &[f64], given: &[f64]| {
            let wanted: Vec<(f64, f64)> = wanted.iter().map(|value| (*value, 1.0)).collect();
            assert_eq!(isotonic(&wanted), given);
        };
        check(&[], &[]);
        check(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]);
        check(&[2.0, 1.0], &[1.5, 1.5]);
        check(&[3.0, 2.0, 1.0, 5.0], &[2.0, 2.0, 2.0, 5.0]);
        assert_eq!(isotonic(&[(4.0, 3.0), (0.0, 1.0)]), [3.0, 3.0]);
    }

    /// Builds a component from `(task id, layer)` pairs and links between their indexes.
    fn part(tasks: &[(u64, usize)], links: &[(usize, usize)]) -> GraphPart {
        let tasks = tasks.iter().map(|&(id, layer)| PlacedTask { id, layer, done: false });
        let links = links.iter().map(|&(a, b)| (a, b, false));
        GraphPart { tasks: tasks.collect(), links: links.collect() }
    }

    /// Returns the tasks of each layer with their rows, top to bottom.
    fn rows(layout: &RowLayout) -> Vec<Vec<(u64, usize)>> {
        let task_row = |item: &usize| {
            let item = layout.items[*item];
            Some((item.task?, item.row))
        };
        layout.layers.iter().map(|layer| layer.iter().filter_map(task_row).collect()).collect()
    }

    #[test]
    fn a_chain_is_straight() {
        let layout = RowLayout::new(&part(&[(1, 0), (2, 1), (3, 2)], &[(0, 1), (1, 2)]), 3);
        assert_eq!(rows(&layout), [[(1, 1)], [(2, 1)], [(3, 1)]]);
        assert_eq!(layout.height, 3);
    }

    #[test]
    fn a_diamond_is_symmetric() {
        let links = [(0, 1), (0, 2), (1, 3), (2, 3)];
        let layout = RowLayout::new(&part(&[(1, 0), (2, 1), (3, 1), (4, 2)], &links), 3);
        assert_eq!(rows(&layout)[1], [(2, 1), (3, 4)]);
        assert_eq!(
            rows(&layout)[0],
            rows(&layout)[2].iter().map(|&(_, row)| (1, row)).collect::<Vec<_>>()
        );
        assert_eq!(layout.height, 6);
    }

    #[test]
    fn avoidable_crossings_are_removed() {
        // The links 1–4 and 2–3 would cross if the tasks were ordered by number.
        let layout = RowLayout::new(&part(&[(1, 0), (2, 0), (3, 1), (4, 1)], &[(0, 3), (1, 2)]), 3);
        let mut positions = vec![0.0; 4];
        number_positions(&layout.layers, &mut positions);
        assert_eq!(layout.crossings(&positions), Some(0));
    }

    #[test]
    fn a_long_line_passes_through_intermediate_layers() {
        let links = [(0, 1), (1, 2), (0, 2)];
        let layout = RowLayout::new(&part(&[(1, 0), (2, 1), (3, 2)], &links), 3);
        assert_eq!(layout.items.len(), 4, "one extra point, in the layer of task 2");
        let (two, bend) = (layout.items[1], layout.items[3]);
        assert_eq!((two.layer, bend.layer), (1, 1));
        assert!(two.row.abs_diff(bend.row) > 1, "{two:?} {bend:?}");
        assert_eq!(layout.hidden, 0);
    }

    /// Boxes keep their order and never overlap.
    #[test]
    fn boxes_do_not_overlap() {
        let tasks: Vec<(u64, usize)> = (0..60).map(|id| (id, (id % 5) as usize)).collect();
        let links: Vec<(usize, usize)> = (0..60_usize)
            .flat_map(|a| [(a, (a * 7 + 3) % 60), (a, (a * 11 + 5) % 60)])
            .filter(|&(a, b)| a % 5 < b % 5)
            .collect();
        let layout = RowLayout::new(&part(&tasks, &links), 4);
        for layer in &layout.layers {
            for pair in layer.windows(2) {
                let (above, below) = (layout.items[pair[0]], layout.items[pair[1]]);
                let end = above.row + if above.task.is_some() { 3 } else { 1 };
                let start = below.row - usize::from(below.task.is_some());
                assert!(end <= start, "{above:?} {below:?}");
            }
        }
    }
}
