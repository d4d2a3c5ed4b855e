//! The state of a task as shown to people: a word and a symbol.

use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use crate::graph::{Graph, TaskState};

/// The state of a task as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskView {
    /// The task can be claimed.
    Ready,
    /// The task has an owner, but is not started.
    Kept,
    /// The task's owner works on it.
    InProgress,
    /// The task waits for other tasks.
    Blocked,
    /// The task is completed.
    Done,
}

impl TaskView {
    /// Returns the state of task `id` in the dependency graph.
    pub fn new(graph: &Graph, id: TaskId) -> Self {
        let begun = graph.node(id).is_some_and(|node| node.status == Status::InProgress);
        match graph.state(id) {
            Some(TaskState::Done) => Self::Done,
            // The owner has started the task although it is blocked.
            Some(TaskState::Blocked | TaskState::Taken) if begun => Self::InProgress,
            Some(TaskState::Blocked) | None => Self::Blocked,
            Some(TaskState::Taken) => Self::Kept,
            Some(TaskState::Ready) => Self::Ready,
        }
    }

    /// Returns a one-character symbol for the state.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Ready | Self::Kept => "○",
            Self::InProgress => "◐",
            Self::Blocked => "⊘",
            Self::Done => "●",
        }
    }

    /// Returns a word for the state.
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

/// Converts task ids to strings, as in Claude Code's files.
pub fn texts(ids: impl IntoIterator<Item = TaskId>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}
