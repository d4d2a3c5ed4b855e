//! How a task looks, wherever it is shown.

use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::graph::{Graph, State};

/// How a task stands, to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It can be claimed.
    Ready,
    /// Not begun, but kept for its owner.
    Kept,
    /// Its owner works on it.
    InProgress,
    /// It waits for other tasks.
    Blocked,
    /// It is completed.
    Done,
}

impl Look {
    /// The state of a task, as its graph has it.
    pub fn of(graph: &Graph, id: TaskId) -> Self {
        let begun = graph.node(id).is_some_and(|node| node.status == Status::InProgress);
        match graph.state(id) {
            Some(State::Done) => Self::Done,
            // Somebody who works on it does not wait, whatever the board says.
            Some(State::Blocked | State::Taken) if begun => Self::InProgress,
            Some(State::Blocked) | None => Self::Blocked,
            Some(State::Taken) => Self::Kept,
            Some(State::Ready) => Self::Ready,
        }
    }

    /// One character for it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Ready | Self::Kept => "○",
            Self::InProgress => "◐",
            Self::Blocked => "⊘",
            Self::Done => "●",
        }
    }

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Kept => "kept",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Done => "done",
        }
    }
}

/// Numbers as a person lists them.
pub fn join(ids: impl IntoIterator<Item = TaskId>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.join(", ")
}

/// Numbers as the wire has them, as text.
pub fn texts(ids: impl IntoIterator<Item = TaskId>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}
