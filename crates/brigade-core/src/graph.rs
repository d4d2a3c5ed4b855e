//! The dependency graph of the tasks: which tasks are blocked, which are ready, and the critical path.
//!
//! ```
//! use brigade_core::graph::{Graph, TaskState};
//! use brigade_core::wire::name::TaskId;
//! use brigade_core::wire::task::Task;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let json = br#"{"id": "1", "subject": "design it", "description": "", "status": "pending",
//!     "blocks": [], "blockedBy": []}"#;
//! let (id, task) = ("1".parse::<TaskId>()?, Task::read(json)?);
//! assert_eq!(Graph::from_tasks([(id, &task)]).state(id), Some(TaskState::Ready));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};

/// A task in the dependency graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNode {
    /// The task's subject.
    pub subject: String,
    /// The member that owns the task.
    pub owner: Option<String>,
    /// The task's status.
    pub status: Status,
    /// The existing tasks that this task depends on, completed or not.
    pub after: BTreeSet<TaskId>,
}

impl TaskNode {
    /// Reads the fields that the graph needs from a task; `None` if Claude Code would not show the task.
    pub(crate) fn from_task(task: &Task<'_>) -> Option<Self> {
        let (_, subject, _) = (task.id()?, task.subject()?, task.description()?);
        let (status, _, blocked_by) = (task.status()?, task.blocks()?, task.blocked_by()?);
        let after = blocked_by.iter().filter_map(|text| text.parse().ok()).collect();
        let subject = subject.into_owned();
        let owner = task.owner().filter(|owner| !owner.is_empty()).map(Cow::into_owned);
        Some(Self { subject, owner, status, after })
    }
}

/// The tasks of a board with their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: BTreeMap<TaskId, TaskNode>,
}

/// Whether a task can be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The task depends on an unfinished task.
    Blocked,
    /// The task can be claimed now.
    Ready,
    /// The task is in progress or has an owner.
    Taken,
    /// The task is completed.
    Done,
}

impl Graph {
    /// Builds the graph of the tasks that Claude Code would show. As in Claude Code, dependencies come from
    /// `blockedBy`, and dependencies on missing tasks are ignored. The `blocks` field is redundant.
    pub fn from_tasks<'t>(tasks: impl IntoIterator<Item = (TaskId, &'t Task<'t>)>) -> Self {
        let mut graph = Self::default();
        for (id, task) in tasks {
            graph.add(id, task);
        }
        graph.finish()
    }

    /// Adds a task if Claude Code would show it. Call [`Graph::finish`] after adding the last task.
    pub(crate) fn add(&mut self, id: TaskId, task: &Task<'_>) {
        if let Some(node) = TaskNode::from_task(task) {
            self.insert(id, node);
        }
    }

    /// Adds a task. Call [`Graph::finish`] after adding the last task.
    pub(crate) fn insert(&mut self, id: TaskId, node: TaskNode) {
        self.nodes.insert(id, node);
    }

    /// Removes dependencies on tasks that do not exist.
    pub(crate) fn finish(mut self) -> Self {
        let existing: BTreeSet<TaskId> = self.nodes.keys().copied().collect();
        for (id, node) in &mut self.nodes {
            node.after.retain(|blocker| existing.contains(blocker) && blocker != id);
        }
        self
    }

    /// Returns every task, ordered by number.
    pub fn nodes(&self) -> impl Iterator<Item = (TaskId, &TaskNode)> {
        self.nodes.iter().map(|(&id, node)| (id, node))
    }

    /// Returns one task; `None` if it does not exist.
    pub fn node(&self, id: TaskId) -> Option<&TaskNode> {
        self.nodes.get(&id)
    }

    /// Returns the unfinished tasks that task `id` depends on.
    pub fn waits_for(&self, id: TaskId) -> Vec<TaskId> {
        let Some(node) = self.nodes.get(&id) else { return Vec::new() };
        node.after.iter().copied().filter(|&blocker| !self.is_done(blocker)).collect()
    }

    /// Returns whether a task can be worked on; `None` if there is no such task.
    pub fn state(&self, id: TaskId) -> Option<TaskState> {
        let node = self.nodes.get(&id)?;
        Some(match node.status {
            Status::Completed => TaskState::Done,
            _ if node.after.iter().any(|&blocker| !self.is_done(blocker)) => TaskState::Blocked,
            Status::Pending if node.owner.is_none() => TaskState::Ready,
            Status::Pending | Status::InProgress => TaskState::Taken,
        })
    }

    /// Returns the longest chain of unfinished tasks, in the order in which they must be done. However many
    /// members work, they need at least as many steps as the chain has tasks. If several chains are equally long,
    /// returns the one with the lowest task numbers.
    pub fn critical_path(&self) -> Vec<TaskId> {
        let mut best: BTreeMap<TaskId, (usize, Option<TaskId>)> = BTreeMap::new();
        let stuck = self.stuck();
        for id in self.topological_order() {
            // A task that is in a cycle or depends on one can never start, so it has no longest path.
            if self.is_done(id) || stuck.contains(&id) {
                continue;
            }
            let longest = self
                .waits_for(id)
                .into_iter()
                .filter_map(|blocker| Some((best.get(&blocker)?.0, std::cmp::Reverse(blocker))))
                .max();
            let step = longest.map_or((1, None), |(len, blocker)| (len + 1, Some(blocker.0)));
            best.insert(id, step);
        }
        let end = best.iter().max_by_key(|&(&id, &(len, _))| (len, std::cmp::Reverse(id)));
        let mut path = Vec::new();
        let mut next = end.map(|(&id, _)| id);
        while let Some(id) = next {
            path.push(id);
            next = best.get(&id).and_then(|&(_, before)| before);
        }
        path.reverse();
        path
    }

    /// Returns the tasks in topological order, and otherwise ordered by number. Tasks in a cycle, which another
    /// program may have created, come last, together with the tasks that depend on them.
    pub fn topological_order(&self) -> Vec<TaskId> {
        let mut waiting: BTreeMap<TaskId, usize> =
            self.nodes.iter().map(|(&id, node)| (id, node.after.len())).collect();
        let mut followers: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for (&id, node) in &self.nodes {
            for &blocker in &node.after {
                followers.entry(blocker).or_default().push(id);
            }
        }
        let mut free: BTreeSet<TaskId> =
            waiting.iter().filter(|&(_, &n)| n == 0).map(|(&id, _)| id).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(id) = free.pop_first() {
            order.push(id);
            waiting.remove(&id);
            for &follower in followers.get(&id).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(&follower) {
                    *left -= 1;
                    if *left == 0 {
                        free.insert(follower);
                    }
                }
            }
        }
        order.extend(waiting.into_keys());
        order
    }

    /// Returns the dependency cycles, which only other programs can create. No task in a cycle can ever start.
    pub fn cycles(&self) -> Vec<Vec<TaskId>> {
        let in_cycles = self.in_cycles();
        let mut left = in_cycles.clone();
        let mut circles = Vec::new();
        while let Some(id) = left.pop_first() {
            let Some(circle) = self.shortest_cycle(id, &in_cycles) else { continue };
            for step in &circle {
                left.remove(step);
            }
            circles.push(circle);
        }
        circles
    }

    /// Maps each task to the unfinished tasks that depend on it.
    pub(crate) fn followers(&self) -> BTreeMap<TaskId, Vec<TaskId>> {
        let mut followers: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for &id in self.nodes.keys().filter(|&&id| !self.is_done(id)) {
            for blocker in self.waits_for(id) {
                followers.entry(blocker).or_default().push(id);
            }
        }
        followers
    }

    /// Returns the tasks that can never start: tasks in a cycle, and tasks that depend on a task in a cycle.
    fn stuck(&self) -> BTreeSet<TaskId> {
        let followers = self.followers();
        let open = self.nodes.keys().copied().filter(|&id| !self.is_done(id));
        let waits = open.map(|id| (id, self.waits_for(id).len()));
        peel(waits.collect(), |id| followers.get(&id).cloned().unwrap_or_default())
    }

    /// Returns the tasks in cycles, and the tasks on a path between two cycles.
    fn in_cycles(&self) -> BTreeSet<TaskId> {
        // A stuck task that no other stuck task depends on is not in a cycle; it only depends on a cycle.
        let stuck = self.stuck();
        let mut dependents: BTreeMap<TaskId, usize> = stuck.iter().map(|&id| (id, 0)).collect();
        for &id in &stuck {
            for blocker in self.waits_for(id) {
                dependents.entry(blocker).and_modify(|count| *count += 1);
            }
        }
        peel(dependents, |id| self.waits_for(id))
    }

    /// Returns the shortest dependency path from a task back to itself, using only tasks in `among`.
    fn shortest_cycle(&self, start: TaskId, among: &BTreeSet<TaskId>) -> Option<Vec<TaskId>> {
        let mut from: BTreeMap<TaskId, TaskId> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(id) = next.pop_front() {
            for &blocker in self.nodes.get(&id)?.after.iter().filter(|id| among.contains(id)) {
                if blocker == start {
                    let before = |step: &TaskId| from.get(step).copied();
                    let mut path: Vec<TaskId> = std::iter::successors(Some(id), before).collect();
                    path.reverse();
                    return Some(path);
                }
                if let Entry::Vacant(entry) = from.entry(blocker) {
                    entry.insert(id);
                    next.push_back(blocker);
                }
            }
        }
        None
    }

    fn is_done(&self, id: TaskId) -> bool {
        self.nodes.get(&id).is_none_or(|node| node.status == Status::Completed)
    }
}

/// Repeatedly removes a task whose count is zero, and decrements the count of each task in `holds(task)`. Returns
/// the tasks that remain.
fn peel(
    mut held: BTreeMap<TaskId, usize>,
    holds: impl Fn(TaskId) -> Vec<TaskId>,
) -> BTreeSet<TaskId> {
    let mut free: Vec<TaskId> =
        held.iter().filter(|&(_, &count)| count == 0).map(|(&id, _)| id).collect();
    while let Some(id) = free.pop() {
        held.remove(&id);
        for other in holds(id) {
            if let Some(count) = held.get_mut(&other) {
                *count -= 1;
                if *count == 0 {
                    free.push(other);
                }
            }
        }
    }
    held.into_keys().collect()
}
