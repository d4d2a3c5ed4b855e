//! Why tasks make no progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::graph::{Graph, TaskState};

/// Why a task makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockReason {
    /// The task is in a dependency cycle, or depends on a task in a cycle. Contains the tasks of the cycle.
    Cycle(Arc<[TaskId]>),
    /// The task depends on these unfinished tasks. A member works on one of them or on one of their dependencies.
    Waits(Vec<TaskId>),
    /// The task depends on these unfinished tasks. No member works on any of them or on their dependencies.
    Idle(Vec<TaskId>),
    /// The task's owner is not on the team.
    Orphan(String),
}

/// Returns the reason for each task that makes no progress. Visits each dependency only once.
pub(super) fn block_reasons(
    graph: &Graph,
    is_member: impl Fn(&str) -> bool,
) -> BTreeMap<TaskId, BlockReason> {
    let followers = graph.followers();
    let mut cycle_of: BTreeMap<TaskId, usize> = BTreeMap::new();
    let circles: Vec<Arc<[TaskId]>> = graph.cycles().into_iter().map(Arc::from).collect();
    for (number, circle) in circles.iter().enumerate() {
        for id in downstream(&followers, circle.iter().copied()) {
            cycle_of.entry(id).or_insert(number);
        }
    }
    let is_active =
        |owner: Option<&str>, status| status == Status::InProgress && owner.is_some_and(&is_member);
    let active = graph.nodes().filter(|(_, node)| is_active(node.owner.as_deref(), node.status));
    let progressing = downstream(&followers, active.map(|(id, _)| id));
    let reason = |id, owner: Option<&str>| match graph.state(id)? {
        TaskState::Done | TaskState::Ready => None,
        TaskState::Taken => {
            let gone = owner.filter(|owner| !is_member(owner))?;
            Some(BlockReason::Orphan(gone.to_owned()))
        }
        TaskState::Blocked => {
            let circle = cycle_of.get(&id).and_then(|&number| circles.get(number));
            if let Some(circle) = circle {
                return Some(BlockReason::Cycle(Arc::clone(circle)));
            }
            let waits = graph.waits_for(id);
            Some(if progressing.contains(&id) {
                BlockReason::Waits(waits)
            } else {
                BlockReason::Idle(waits)
            })
        }
    };
    graph.nodes().filter_map(|(id, node)| Some((id, reason(id, node.owner.as_deref())?))).collect()
}

/// Returns the given tasks and all tasks that depend on them, directly or indirectly.
fn downstream(
    followers: &BTreeMap<TaskId, Vec<TaskId>>,
    from: impl Iterator<Item = TaskId>,
) -> BTreeSet<TaskId> {
    let mut next: Vec<TaskId> = from.collect();
    let mut found: BTreeSet<TaskId> = next.iter().copied().collect();
    while let Some(id) = next.pop() {
        let new = followers.get(&id).into_iter().flatten();
        next.extend(new.copied().filter(|&id| found.insert(id)));
    }
    found
}
