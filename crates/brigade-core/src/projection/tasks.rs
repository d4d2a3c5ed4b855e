//! The tasks of a team, with the times of their changes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BlockReason, Millis};
use crate::graph::{Graph, TaskNode};
use crate::store::event_log::RecordRef;

/// The current state of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskEntry {
    /// The task number.
    pub id: u64,
    /// The task's subject.
    pub subject: Box<str>,
    /// The task's owner.
    pub owner: Option<Box<str>>,
    /// When the task got its current status and owner.
    pub since: Millis,
    /// When the task was first recorded.
    pub added: Millis,
    /// When a member started to work on the task.
    pub begun: Option<Millis>,
    /// When the task was completed.
    pub done: Option<Millis>,
    /// The position of the journal record that contains the task.
    pub record: RecordRef,
    status: Box<str>,
    json: Box<RawValue>,
    /// The task's dependencies, computed on first use; `Some(None)` if Claude Code would not show the task.
    node: OnceCell<Option<TaskNode>>,
}

impl TaskEntry {
    /// Returns the task's status; `None` if the status is unknown.
    pub fn status(&self) -> Option<Status> {
        [Status::Pending, Status::InProgress, Status::Completed]
            .into_iter()
            .find(|status| status.as_str() == &*self.status)
    }

    fn node(&self) -> Option<&TaskNode> {
        let read = || TaskNode::from_task(&Task::read(self.json.get().as_bytes()).ok()?);
        self.node.get_or_init(read).as_ref()
    }

    /// Returns the full description.
    pub fn description(&self) -> String {
        let task = Task::read(self.json.get().as_bytes()).ok();
        task.and_then(|task| Some(task.description()?.into_owned())).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct TaskFields<'t> {
    #[serde(borrow, default)]
    subject: Cow<'t, str>,
    #[serde(borrow, default)]
    status: Cow<'t, str>,
    #[serde(borrow, default)]
    owner: Option<Cow<'t, str>>,
}

/// The tasks of the team by number.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskCards {
    cards: BTreeMap<u64, TaskEntry>,
    graph: OnceCell<Graph>,
    holds: OnceCell<BTreeMap<TaskId, BlockReason>>,
    revision: u64,
}

impl TaskCards {
    pub(super) fn changed(&mut self, id: u64, at: Millis, spot: RecordRef, task: &RawValue) {
        let Ok(fields) = serde_json::from_str::<TaskFields<'_>>(task.get()) else { return };
        self.invalidate_tasks();
        let owner = fields.owner.filter(|owner| !owner.is_empty()).map(Box::from);
        let before = self.cards.get(&id);
        let is_same =
            before.is_some_and(|card| *card.status == *fields.status && card.owner == owner);
        let (mut begun, mut done) = before.map_or((None, None), |card| (card.begun, card.done));
        match &*fields.status {
            "in_progress" => {
                begun.get_or_insert(at);
                done = None;
            }
            "completed" => {
                done.get_or_insert(at);
            }
            _ => (begun, done) = (None, None),
        }
        let card = TaskEntry {
            id,
            subject: fields.subject.into(),
            owner,
            since: before.filter(|_| is_same).map_or(at, |card| card.since),
            added: before.map_or(at, |card| card.added),
            begun,
            done,
            record: spot,
            status: fields.status.into(),
            json: task.to_owned(),
            node: OnceCell::new(),
        };
        self.cards.insert(id, card);
    }

    pub(super) fn deleted(&mut self, id: u64) {
        self.invalidate_tasks();
        self.cards.remove(&id);
    }

    /// Removes the tasks that were added at or before `at`.
    pub(super) fn remove_until(&mut self, at: Millis) {
        self.invalidate_tasks();
        self.cards.retain(|_, card| card.added > at);
    }

    fn invalidate_tasks(&mut self) {
        self.graph.take();
        self.invalidate_roster();
    }

    /// Discards results that depend on the roster. Call this when the roster has changed.
    pub(super) fn invalidate_roster(&mut self) {
        self.holds.take();
        self.revision += 1;
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn cards(&self) -> impl Iterator<Item = &TaskEntry> {
        self.cards.values().filter(|card| self.is_visible(card.id))
    }

    pub(super) fn card(&self, id: u64) -> Option<&TaskEntry> {
        self.cards.get(&id).filter(|card| self.is_visible(card.id))
    }

    /// Returns whether Claude Code would show the task.
    fn is_visible(&self, id: u64) -> bool {
        TaskId::new(id).is_some_and(|id| self.graph().node(id).is_some())
    }

    /// Returns the dependency graph. It is rebuilt on first use after a task has changed.
    pub(super) fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| {
            let mut graph = Graph::default();
            for (&id, card) in &self.cards {
                if let (Some(id), Some(node)) = (TaskId::new(id), card.node()) {
                    graph.insert(id, node.clone());
                }
            }
            graph.finish()
        })
    }

    /// Returns why a task makes no progress. Computes all reasons at once, on first use after a change.
    pub(super) fn hold(&self, id: u64, is_member: impl Fn(&str) -> bool) -> Option<&BlockReason> {
        let holds =
            self.holds.get_or_init(|| super::block_reason::block_reasons(self.graph(), is_member));
        holds.get(&TaskId::new(id)?)
    }
}
