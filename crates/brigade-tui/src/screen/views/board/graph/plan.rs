//! Assigns each task to a layer and selects the dependency lines to draw.

use std::collections::{BTreeMap, BTreeSet};

use brigade_core::graph::Graph;
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use super::get_or_default;

/// If a graph has more tasks than this, redundant lines are kept. Removing them takes one bit of memory per
/// pair of tasks.
const MAX_TASKS_TO_REDUCE: usize = 8_000;

/// A connected component of the graph.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GraphPart {
    pub(super) tasks: Vec<PlacedTask>,
    /// Links as pairs of indexes into `tasks`, and whether each link is on the critical path.
    pub(super) links: Vec<(usize, usize, bool)>,
}

/// A task with its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedTask {
    pub(super) id: u64,
    pub(super) layer: usize,
    pub(super) done: bool,
}

/// The tasks and lines of the graph, before they have positions.
#[derive(Debug, Default)]
pub(super) struct GraphPlan {
    pub(super) parts: Vec<GraphPart>,
    /// Tasks that have no dependencies and no dependents.
    pub(super) isolated: Vec<u64>,
    /// Number of layers.
    pub(super) depth: usize,
}

impl GraphPlan {
    pub(super) fn new(graph: &Graph) -> Self {
        let order = graph.topological_order();
        let indexes: BTreeMap<TaskId, usize> =
            order.iter().enumerate().map(|(index, id)| (*id, index)).collect();
        // Leave out lines that would close a cycle. The tasks in the cycle are marked instead.
        let mut before: Vec<Vec<usize>> = order
            .iter()
            .enumerate()
            .map(|(index, id)| {
                let after = graph.node(*id).into_iter().flat_map(|node| &node.after);
                let mut before: Vec<usize> = after
                    .filter_map(|id| indexes.get(id).copied())
                    .filter(|b| *b < index)
                    .collect();
                before.sort_unstable_by(|a, b| b.cmp(a));
                before
            })
            .collect();
        let path = graph.critical_path();
        let index = |id: Option<&TaskId>| indexes.get(id?).copied();
        let critical_steps: BTreeSet<(usize, usize)> = path
            .windows(2)
            .filter_map(|pair| Some((index(pair.first())?, index(pair.get(1))?)))
            .collect();
        if order.len() <= MAX_TASKS_TO_REDUCE {
            reduce(&mut before, &critical_steps);
        }
        let mut layers: Vec<usize> = Vec::with_capacity(order.len());
        for before in &before {
            layers.push(before.iter().map(|b| get_or_default(&layers, *b) + 1).max().unwrap_or(0));
        }
        let is_done =
            |id: &TaskId| graph.node(*id).is_some_and(|node| node.status == Status::Completed);
        let mut plan = Self::default();
        for group in groups(&before) {
            let tasks: Vec<PlacedTask> = group
                .iter()
                .filter_map(|index| {
                    let id = order.get(*index)?;
                    Some(PlacedTask {
                        id: id.get(),
                        layer: get_or_default(&layers, *index),
                        done: is_done(id),
                    })
                })
                .collect();
            if let [one] = tasks.as_slice() {
                plan.isolated.push(one.id);
                continue;
            }
            plan.depth = tasks.iter().map(|task| task.layer + 1).fold(plan.depth, usize::max);
            let local: BTreeMap<usize, usize> =
                group.iter().enumerate().map(|(local, index)| (*index, local)).collect();
            let mut links = Vec::new();
            for (to, index) in group.iter().enumerate() {
                for b in before.get(*index).into_iter().flatten() {
                    let heavy = critical_steps.contains(&(*b, *index));
                    links.extend(local.get(b).map(|from| (*from, to, heavy)));
                }
            }
            plan.parts.push(GraphPart { tasks, links });
        }
        // The component with the critical path comes first, then unfinished components, then finished ones.
        plan.parts.sort_by_key(|part| {
            let is_critical = part.links.iter().any(|(_, _, heavy)| *heavy);
            let is_done_part = part.tasks.iter().all(|task| task.done);
            (!is_critical, is_done_part, part.tasks.iter().map(|task| task.id).min())
        });
        let is_done_id = |id: u64| TaskId::new(id).is_some_and(|id| is_done(&id));
        plan.isolated.sort_by_key(|id| (is_done_id(*id), *id));
        plan
    }
}

/// Removes redundant lines (transitive reduction): a task that waits for the last task of a chain also waits
/// for all other tasks of that chain. Expects the dependencies of each task in descending order.
fn reduce(before: &mut [Vec<usize>], critical_steps: &BTreeSet<(usize, usize)>) {
    let word_count = before.len().div_ceil(64);
    let mut ancestors: Vec<Vec<u64>> = Vec::with_capacity(before.len());
    for (index, before) in before.iter_mut().enumerate() {
        let mut all = vec![0_u64; word_count];
        before.retain(|b| {
            let (word, bit) = (b / 64, 1 << (b % 64));
            let is_known = get_or_default(&all, word) & bit != 0;
            if !is_known {
                let theirs = ancestors.get(*b).into_iter().flatten();
                all.iter_mut().zip(theirs).for_each(|(all, more)| *all |= more);
                if let Some(word) = all.get_mut(word) {
                    *word |= bit;
                }
            }
            !is_known || critical_steps.contains(&(*b, index))
        });
        ancestors.push(all);
    }
}

/// Returns the connected groups of tasks (union-find). Within each group, the tasks are in ascending order.
fn groups(before: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut roots: Vec<usize> = (0..before.len()).collect();
    let root = |roots: &mut Vec<usize>, mut index: usize| {
        while get_or_default(roots, index) != index {
            // Shorten the path to the root while following it (path halving).
            let next = get_or_default(roots, get_or_default(roots, index));
            if let Some(root) = roots.get_mut(index) {
                *root = next;
            }
            index = next;
        }
        index
    };
    for (index, before) in before.iter().enumerate() {
        for b in before {
            let (mine, theirs) = (root(&mut roots, index), root(&mut roots, *b));
            if let Some(root) = roots.get_mut(mine.max(theirs)) {
                *root = mine.min(theirs);
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..before.len() {
        groups.entry(root(&mut roots, index)).or_default().push(index);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundant_lines_are_removed() {
        let check = |mut before: Vec<Vec<usize>>, left: &[&[usize]]| {
            reduce(&mut before, &BTreeSet::new());
            assert_eq!(before, left);
        };
        check(vec![vec![], vec![0], vec![1, 0]], &[&[], &[0], &[1]]);
        check(vec![vec![], vec![0], vec![0], vec![2, 1, 0]], &[&[], &[0], &[0], &[2, 1]]);
        check(vec![vec![], vec![], vec![1, 0]], &[&[], &[], &[1, 0]]);
    }

    #[test]
    fn connected_tasks_form_one_group() {
        let check = |before: Vec<Vec<usize>>, found: &[&[usize]]| {
            assert_eq!(groups(&before), found);
        };
        check(vec![], &[]);
        check(vec![vec![], vec![], vec![0]], &[&[0, 2], &[1]]);
        check(vec![vec![], vec![], vec![0], vec![2, 1]], &[&[0, 1, 2, 3]]);
    }
}
