//! The state of a task as shown to people: word, symbol and colour.

use anstyle::Style;
use brigade_core::graph::{Graph, State};
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::output::{BUSY, FAINT, READY};

/// The state of a task as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Ready,
    /// Assigned to an owner, not started.
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
            // Its owner has started it although the board shows it as blocked.
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
            Self::Kept => "assigned",
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

/// Joins task ids with commas.
pub(crate) fn join(ids: impl IntoIterator<Item = TaskId>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.join(", ")
}

/// Task ids as strings, as in Claude Code's files.
pub(crate) fn texts(ids: impl IntoIterator<Item = TaskId>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}
