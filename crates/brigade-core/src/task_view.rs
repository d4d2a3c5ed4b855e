//! The state of a task as shown to people: word, symbol and colour.

use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::graph::{Graph, TaskState};

/// The state of a task as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskView {
    /// It can be claimed.
    Ready,
    /// Assigned to an owner, not started.
    Kept,
    /// Its owner works on it.
    InProgress,
    /// It waits for other tasks.
    Blocked,
    /// It is completed.
    Done,
}

impl TaskView {
    /// The state of a task, as its graph has it.
    pub fn new(graph: &Graph, id: TaskId) -> Self {
        let begun = graph.node(id).is_some_and(|node| node.status == Status::InProgress);
        match graph.state(id) {
            Some(TaskState::Done) => Self::Done,
            // Its owner has started it although the board shows it as blocked.
            Some(TaskState::Blocked | TaskState::Taken) if begun => Self::InProgress,
            Some(TaskState::Blocked) | None => Self::Blocked,
            Some(TaskState::Taken) => Self::Kept,
            Some(TaskState::Ready) => Self::Ready,
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
    pub fn label(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Kept => "assigned",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Done => "done",
        }
    }
}

/// Joins task ids with commas.
pub fn join(ids: impl IntoIterator<Item = TaskId>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.join(", ")
}

/// Task ids as strings, as in Claude Code's files.
pub fn texts(ids: impl IntoIterator<Item = TaskId>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}
