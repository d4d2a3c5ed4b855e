//! What the tasks' dependencies mean: who waits for whom, what is ready, what takes longest.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};

/// A task as far as its dependencies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its subject.
    pub subject: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// How far it is.
    pub status: Status,
    /// The tasks on the board it waits for, done or not.
    pub after: BTreeSet<TaskId>,
}

/// The tasks of a board with their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: BTreeMap<TaskId, Node>,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for another task.
    Blocked,
    /// Could be claimed now.
    Ready,
    /// Somebody is at it, or it is kept for somebody.
    Taken,
    /// Done.
    Done,
}

impl Graph {
    /// The graph of those tasks that Claude Code would show. What a task waits for is what its
    /// `blockedBy` says and is there, as in Claude Code; `blocks` is only the mirror image.
    pub fn of<'t>(tasks: impl IntoIterator<Item = (TaskId, &'t Task<'t>)>) -> Self {
        let mut graph = Self::default();
        for (id, task) in tasks {
            graph.add(id, task);
        }
        graph.finish()
    }

    /// Adds a task, if Claude Code would show it. [`Graph::finish`] makes the graph whole.
    pub(crate) fn add(&mut self, id: TaskId, task: &Task<'_>) {
        let (Some(_), Some(subject), Some(_)) = (task.id(), task.subject(), task.description())
        else {
            return;
        };
        let (Some(status), Some(_), Some(blocked_by)) =
            (task.status(), task.blocks(), task.blocked_by())
        else {
            return;
        };
        let after = blocked_by.iter().filter_map(|text| text.parse().ok()).collect();
        let subject = subject.into_owned();
        let owner = task.owner().filter(|owner| !owner.is_empty()).map(Cow::into_owned);
        self.nodes.insert(id, Node { subject, owner, status, after });
    }

    /// Leaves out what is not there.
    pub(crate) fn finish(mut self) -> Self {
        let there: BTreeSet<TaskId> = self.nodes.keys().copied().collect();
        for (id, node) in &mut self.nodes {
            node.after.retain(|blocker| there.contains(blocker) && blocker != id);
        }
        self
    }

    /// Every task, by number.
    pub fn nodes(&self) -> impl Iterator<Item = (TaskId, &Node)> {
        self.nodes.iter().map(|(&id, node)| (id, node))
    }

    /// One task.
    pub fn node(&self, id: TaskId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The tasks that this one still waits for.
    pub fn waits_for(&self, id: TaskId) -> Vec<TaskId> {
        let Some(node) = self.nodes.get(&id) else { return Vec::new() };
        node.after.iter().copied().filter(|&blocker| !self.is_done(blocker)).collect()
    }

    /// How a task stands.
    pub fn state(&self, id: TaskId) -> Option<State> {
        let node = self.nodes.get(&id)?;
        Some(match node.status {
            Status::Completed => State::Done,
            _ if !self.waits_for(id).is_empty() => State::Blocked,
            Status::Pending if node.owner.is_none() => State::Ready,
            Status::Pending | Status::InProgress => State::Taken,
        })
    }

    /// The longest chain of tasks that are not done, first to last: however many work, the rest of
    /// the board takes no fewer steps than this. Of several the one with the lowest numbers.
    pub fn critical_path(&self) -> Vec<TaskId> {
        let mut best: BTreeMap<TaskId, (usize, Option<TaskId>)> = BTreeMap::new();
        let stuck = self.stuck();
        for id in self.in_order() {
            // What never ends has no longest way to its end.
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

    /// The tasks so that each stands behind those it waits for; ties by number. Tasks in a cycle,
    /// which another program may have made, come last.
    pub fn in_order(&self) -> Vec<TaskId> {
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

    /// The circles that other programs may have made: tasks of which each waits for the next, and the
    /// last for the first. None of them can ever be begun.
    pub fn circles(&self) -> Vec<Vec<TaskId>> {
        let mut stuck = self.stuck();
        let mut circles = Vec::new();
        while let Some(id) = stuck.pop_first() {
            let Some(circle) = self.way_back(id) else { continue };
            for step in &circle {
                stuck.remove(step);
            }
            circles.push(circle);
        }
        circles
    }

    /// The tasks that can never be put in order: those in circles, and those that wait for them.
    fn stuck(&self) -> BTreeSet<TaskId> {
        let mut done = BTreeSet::new();
        let mut stuck = BTreeSet::new();
        for id in self.in_order() {
            let after = self.nodes.get(&id).map(|node| &node.after);
            if after.is_some_and(|after| after.iter().all(|blocker| done.contains(blocker))) {
                done.insert(id);
            } else {
                stuck.insert(id);
            }
        }
        stuck
    }

    /// The shortest way from a task over what it waits for back to itself.
    fn way_back(&self, start: TaskId) -> Option<Vec<TaskId>> {
        let mut from: BTreeMap<TaskId, TaskId> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(id) = next.pop_front() {
            for &blocker in &self.nodes.get(&id)?.after {
                if blocker == start {
                    let before = |step: &TaskId| from.get(step).copied();
                    let mut way: Vec<TaskId> = std::iter::successors(Some(id), before).collect();
                    way.reverse();
                    return Some(way);
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
