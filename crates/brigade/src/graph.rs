//! Draws the dependencies between tasks.

mod formats;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use brigade_core::graph::{Graph, TaskState};
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

pub(crate) use self::formats::{dot, json, mermaid};
pub(crate) use self::text::text;

/// A task board laid out as a forest: each task appears once, below one of the tasks that it waits for.
#[derive(Debug)]
pub(crate) struct TaskTree<'g> {
    graph: &'g Graph,
    /// The longest chain of unfinished tasks, first to last.
    critical: Vec<TaskId>,
    /// Dependency cycles.
    circles: Vec<Vec<TaskId>>,
    /// For each task, the task below which it is drawn. Top-level tasks have no entry.
    parents: BTreeMap<TaskId, TaskId>,
}

impl<'g> TaskTree<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        let critical = graph.critical_path();
        let steps: BTreeSet<(TaskId, TaskId)> =
            critical.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect();
        let mut depths: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut parents = BTreeMap::new();
        for id in graph.topological_order() {
            let Some(node) = graph.node(id) else { continue };
            // To avoid cycles, the parent must be a task that already has a place in the tree. Prefer a parent
            // on the critical path, then an unfinished one, then the deepest one.
            let parent = node
                .after
                .iter()
                .filter_map(|&blocker| {
                    let depth = *depths.get(&blocker)?;
                    let open = graph.node(blocker)?.status != Status::Completed;
                    let step = steps.contains(&(blocker, id));
                    Some(((step, open, depth, std::cmp::Reverse(blocker)), blocker))
                })
                .max();
            let depth = parent.map_or(0, |((_, _, depth, _), _)| depth + 1);
            depths.insert(id, depth);
            parents.extend(parent.map(|(_, blocker)| (id, blocker)));
        }
        Self { graph, critical, circles: graph.cycles(), parents }
    }

    fn children(&self, of: Option<TaskId>) -> Vec<TaskId> {
        let ids = self.graph.nodes().map(|(id, _)| id);
        ids.filter(|id| self.parents.get(id).copied() == of).collect()
    }

    fn is_critical(&self, id: TaskId) -> bool {
        // Do not mark a critical path of only one task.
        self.critical.len() > 1 && self.critical.contains(&id)
    }

    fn is_critical_step(&self, from: TaskId, to: TaskId) -> bool {
        self.critical.windows(2).any(|pair| pair == [from, to])
    }

    fn is_ready(&self, id: TaskId) -> bool {
        self.graph.state(id) == Some(TaskState::Ready)
    }

    fn is_in_circle(&self, id: TaskId) -> bool {
        self.circles.iter().any(|circle| circle.contains(&id))
    }
}
