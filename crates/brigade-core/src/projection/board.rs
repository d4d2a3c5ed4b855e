//! The tasks of a team, and since when each is what it is.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{At, Hold};
use crate::event_log::Spot;
use crate::graph::{Graph, Node};

/// A task as it is now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Card {
    /// Its number.
    pub id: u64,
    /// Its subject.
    pub subject: Box<str>,
    /// Whose it is.
    pub owner: Option<Box<str>>,
    /// Since when it has this status and this owner.
    pub since: At,
    /// When it was first seen.
    pub added: At,
    /// When it was begun.
    pub begun: Option<At>,
    /// When it was done.
    pub done: Option<At>,
    /// Where it stands, whole.
    pub spot: Spot,
    status: Box<str>,
    json: Box<RawValue>,
    /// What it waits for, once somebody has looked; `None` in it if Claude Code would not show it.
    node: OnceCell<Option<Node>>,
}

impl Card {
    /// How far it is; `None` for a word that is not known.
    pub fn status(&self) -> Option<Status> {
        [Status::Pending, Status::InProgress, Status::Completed]
            .into_iter()
            .find(|status| status.as_str() == &*self.status)
    }

    fn node(&self) -> Option<&Node> {
        let read = || Node::of(&Task::read(self.json.get().as_bytes()).ok()?);
        self.node.get_or_init(read).as_ref()
    }

    /// What it says, whole.
    pub fn description(&self) -> String {
        let task = Task::read(self.json.get().as_bytes()).ok();
        task.and_then(|task| Some(task.description()?.into_owned())).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Fields<'t> {
    #[serde(borrow, default)]
    subject: Cow<'t, str>,
    #[serde(borrow, default)]
    status: Cow<'t, str>,
    #[serde(borrow, default)]
    owner: Option<Cow<'t, str>>,
}

/// The tasks, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Cards {
    cards: BTreeMap<u64, Card>,
    graph: OnceCell<Graph>,
    holds: OnceCell<BTreeMap<TaskId, Hold>>,
    revision: u64,
}

impl Cards {
    pub(super) fn changed(&mut self, id: u64, at: At, spot: Spot, task: &RawValue) {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(task.get()) else { return };
        self.touch();
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
        let card = Card {
            id,
            subject: fields.subject.into(),
            owner,
            since: before.filter(|_| is_same).map_or(at, |card| card.since),
            added: before.map_or(at, |card| card.added),
            begun,
            done,
            spot,
            status: fields.status.into(),
            json: task.to_owned(),
            node: OnceCell::new(),
        };
        self.cards.insert(id, card);
    }

    pub(super) fn deleted(&mut self, id: u64) {
        self.touch();
        self.cards.remove(&id);
    }

    /// Those that were there at a time are not any more.
    pub(super) fn drop_until(&mut self, at: At) {
        self.touch();
        self.cards.retain(|_, card| card.added > at);
    }

    fn touch(&mut self) {
        self.graph.take();
        self.regroup();
    }

    /// Somebody came or went.
    pub(super) fn regroup(&mut self) {
        self.holds.take();
        self.revision += 1;
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn cards(&self) -> impl Iterator<Item = &Card> {
        self.cards.values().filter(|card| self.shows(card.id))
    }

    pub(super) fn card(&self, id: u64) -> Option<&Card> {
        self.cards.get(&id).filter(|card| self.shows(card.id))
    }

    /// Whether Claude Code would show it.
    fn shows(&self, id: u64) -> bool {
        TaskId::new(id).is_some_and(|id| self.graph().node(id).is_some())
    }

    /// Drawn anew only after a task has changed, and only if somebody looks.
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

    /// Why tasks do not go on. Found out for all at once, and anew only after something has changed.
    pub(super) fn hold(&self, id: u64, is_member: impl Fn(&str) -> bool) -> Option<&Hold> {
        let holds = self.holds.get_or_init(|| super::hold::holds(self.graph(), is_member));
        holds.get(&TaskId::new(id)?)
    }
}
