//! Draws the dependencies between tasks.

mod formats;
mod svg;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use brigade_core::graph::{Graph, TaskState};
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

pub(crate) use self::formats::{dot, json, mermaid};
pub(crate) use self::svg::svg;
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
    /// The tasks below each task, and the top-level tasks under `None`.
    children: BTreeMap<Option<TaskId>, Vec<TaskId>>,
    /// The tasks on the longest chain, unless the chain has only one task.
    critical_tasks: BTreeSet<TaskId>,
    /// Consecutive tasks of the longest chain.
    critical_steps: BTreeSet<(TaskId, TaskId)>,
    /// The tasks in cycles.
    circle_tasks: BTreeSet<TaskId>,
}

/// How deep tasks are nested. A task that would be deeper is drawn at the top level.
const MAX_DEPTH: usize = 32;

impl<'g> TaskTree<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        let critical = graph.critical_path();
        let critical_steps: BTreeSet<(TaskId, TaskId)> =
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
                    let depth = *depths.get(&blocker).filter(|depth| **depth < MAX_DEPTH)?;
                    let open = graph.node(blocker)?.status != Status::Completed;
                    let step = critical_steps.contains(&(blocker, id));
                    Some(((step, open, depth, std::cmp::Reverse(blocker)), blocker))
                })
                .max();
            let depth = parent.map_or(0, |((_, _, depth, _), _)| depth + 1);
            depths.insert(id, depth);
            parents.extend(parent.map(|(_, blocker)| (id, blocker)));
        }
        let mut children: BTreeMap<Option<TaskId>, Vec<TaskId>> = BTreeMap::new();
        for (id, _) in graph.nodes() {
            children.entry(parents.get(&id).copied()).or_default().push(id);
        }
        let critical_tasks = critical.iter().copied().filter(|_| critical.len() > 1).collect();
        let circles = graph.cycles();
        let circle_tasks = circles.iter().flatten().copied().collect();
        Self {
            graph,
            critical,
            circles,
            parents,
            children,
            critical_tasks,
            critical_steps,
            circle_tasks,
        }
    }

    fn children(&self, of: Option<TaskId>) -> &[TaskId] {
        self.children.get(&of).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_critical(&self, id: TaskId) -> bool {
        self.critical_tasks.contains(&id)
    }

    fn is_critical_step(&self, from: TaskId, to: TaskId) -> bool {
        self.critical_steps.contains(&(from, to))
    }

    fn is_ready(&self, id: TaskId) -> bool {
        self.graph.state(id) == Some(TaskState::Ready)
    }

    fn is_in_circle(&self, id: TaskId) -> bool {
        self.circle_tasks.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use brigade_wire::task::Task;

    use super::*;

    /// Finding 40: the time and the size of the text grew with the square of the number of tasks.
    #[test]
    fn finding_40_a_long_chain_is_drawn_fast() {
        let json: Vec<(TaskId, String)> = (1..=10_000_u64)
            .map(|id| {
                let after = if id == 1 { String::new() } else { format!("\"{}\"", id - 1) };
                let task = format!(
                    r#"{{"id": "{id}", "subject": "task {id}", "description": "", "status": "pending",
                    "blocks": [], "blockedBy": [{after}]}}"#
                );
                (TaskId::new(id).unwrap(), task)
            })
            .collect();
        let tasks: Vec<(TaskId, Task<'_>)> =
            json.iter().map(|(id, task)| (*id, Task::read(task.as_bytes()).unwrap())).collect();
        let graph = Graph::from_tasks(tasks.iter().map(|(id, task)| (*id, task)));
        let began = Instant::now();
        let tree = TaskTree::new(&graph);
        let texts = [text(&tree, Some(80)), dot(&tree), mermaid(&tree)];
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        for text in texts {
            assert!(text.len() < 4 << 20, "{} bytes", text.len());
        }
        // A task that is not drawn below its blocker names the blocker.
        let drawn = anstream::adapter::strip_str(&text(&tree, None)).to_string();
        let line = drawn.lines().find(|line| line.contains("task 34 ")).unwrap();
        assert!(line.starts_with("* ⊘ 34") && line.ends_with("after 33"), "{line}");
    }
}
