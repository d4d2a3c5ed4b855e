//! How a task looks, wherever it is shown.

use anstyle::Style;
use brigade_core::graph::{Graph, State};
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::output::{BUSY, FAINT, READY};

/// How a task stands, to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Ready,
    /// Not begun, but kept for its owner.
    Kept,
    InProgress,
    Blocked,
    Done,
}

impl Look {
    pub(crate) fn of(graph: &Graph, id: TaskId) -> Self {
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

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Ready | Self::Kept => "○",
            Self::InProgress => "◐",
            Self::Blocked => "⊘",
            Self::Done => "●",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Kept => "kept",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Done => "done",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            Self::Ready => READY,
            Self::Kept => Style::new(),
            Self::InProgress => BUSY,
            Self::Blocked | Self::Done => FAINT,
        }
    }
}

/// Numbers as a person lists them.
pub(crate) fn join(ids: impl IntoIterator<Item = TaskId>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.join(", ")
}

/// Numbers as the wire has them, as text.
pub(crate) fn texts(ids: impl IntoIterator<Item = TaskId>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}
