//! Why tasks do not go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::graph::{Graph, State};

/// Why a task does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Tasks wait for each other in a circle, and this is one of them or behind it.
    Circle(Arc<[TaskId]>),
    /// It waits for these.
    Waits(Vec<TaskId>),
    /// It waits for these, and nobody is at any of them or at what they wait for.
    Idle(Vec<TaskId>),
    /// It is somebody's who is not on the team.
    Orphan(String),
}

/// What holds each task that does not go on. Goes once along the dependencies, however many wait.
pub(super) fn holds(graph: &Graph, is_member: impl Fn(&str) -> bool) -> BTreeMap<TaskId, Hold> {
    let followers = graph.followers();
    let mut behind_circles: BTreeMap<TaskId, usize> = BTreeMap::new();
    let circles: Vec<Arc<[TaskId]>> = graph.circles().into_iter().map(Arc::from).collect();
    for (number, circle) in circles.iter().enumerate() {
        for id in behind(&followers, circle.iter().copied()) {
            behind_circles.entry(id).or_insert(number);
        }
    }
    let is_on =
        |owner: Option<&str>, status| status == Status::InProgress && owner.is_some_and(&is_member);
    let on = graph.nodes().filter(|(_, node)| is_on(node.owner.as_deref(), node.status));
    let moves = behind(&followers, on.map(|(id, _)| id));
    let hold = |id, owner: Option<&str>| match graph.state(id)? {
        State::Done | State::Ready => None,
        State::Taken => {
            let gone = owner.filter(|owner| !is_member(owner))?;
            Some(Hold::Orphan(gone.to_owned()))
        }
        State::Blocked => {
            let circle = behind_circles.get(&id).and_then(|&number| circles.get(number));
            if let Some(circle) = circle {
                return Some(Hold::Circle(Arc::clone(circle)));
            }
            let waits = graph.waits_for(id);
            Some(if moves.contains(&id) { Hold::Waits(waits) } else { Hold::Idle(waits) })
        }
    };
    graph.nodes().filter_map(|(id, node)| Some((id, hold(id, node.owner.as_deref())?))).collect()
}

/// These tasks and all that wait for them, directly or not.
fn behind(
    followers: &BTreeMap<TaskId, Vec<TaskId>>,
    from: impl Iterator<Item = TaskId>,
) -> BTreeSet<TaskId> {
    let mut next: Vec<TaskId> = from.collect();
    let mut behind: BTreeSet<TaskId> = next.iter().copied().collect();
    while let Some(id) = next.pop() {
        let new = followers.get(&id).into_iter().flatten();
        next.extend(new.copied().filter(|&id| behind.insert(id)));
    }
    behind
}
