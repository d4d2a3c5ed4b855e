//! The errors of the task board.

use brigade_wire::name::{MemberName, TaskId};
use thiserror::Error;

use super::{BoardFull, MAX_TASK_BYTES};
use crate::authority::Denied;
use crate::mail::MailError;
use crate::store::StoreError;

/// Why a board operation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoardError {
    /// The task does not exist.
    #[error("no task {0}")]
    NoTask(TaskId),
    /// The task file lacks fields that Claude Code requires.
    #[error("task {0} is missing required fields; Claude Code does not show it either")]
    NotATask(TaskId),
    /// Another member owns the task.
    #[error("task {id} belongs to {owner}")]
    Taken {
        /// The id of the task.
        id: TaskId,
        /// The task's current owner.
        owner: String,
    },
    /// The task is already completed.
    #[error("task {0} is already completed")]
    Done(TaskId),
    /// The task depends on unfinished tasks.
    #[error("task {id} is blocked by {}", join(.waits_for))]
    Blocked {
        /// The id of the task.
        id: TaskId,
        /// The unfinished tasks that the task depends on.
        waits_for: Vec<TaskId>,
    },
    /// The dependency would create a cycle.
    #[error("{}", cycle(*.id, *.blocker))]
    Cycle {
        /// The task to which the caller tried to add a dependency.
        id: TaskId,
        /// The task that the caller tried to add as a dependency.
        blocker: TaskId,
    },
    /// The task does not depend on the other one.
    #[error("task {id} does not wait for task {blocker}")]
    NotBlockedBy {
        /// The task from which the caller tried to remove a dependency.
        id: TaskId,
        /// The task that the caller named as the dependency.
        blocker: TaskId,
    },
    /// The task is not completed, so it cannot be reopened.
    #[error("task {0} is not completed")]
    NotDone(TaskId),
    /// The task has no owner.
    #[error("task {0} has no owner")]
    NoOwner(TaskId),
    /// The subject is blank.
    #[error("the subject is empty")]
    NoSubject,
    /// The task is too large.
    #[error("the task is {len} bytes long; the limit is {MAX_TASK_BYTES}")]
    TooLong {
        /// The task's size in bytes.
        len: usize,
    },
    /// The board has no room for the task.
    #[error(transparent)]
    Full(#[from] BoardFull),
    /// The new owner is not on the roster.
    #[error("cannot assign the task: no member named {name:?}")]
    NoMember {
        /// The name of the new owner.
        name: String,
        /// The names of all members on the roster.
        members: Vec<String>,
    },
    /// The task was assigned, but the notification to its new owner failed.
    #[error("task {id} was assigned to {owner}, but the notification to {owner} failed")]
    NotTold {
        /// The id of the task.
        id: TaskId,
        /// The task's new owner.
        owner: MemberName,
        /// Why the notification failed.
        source: Box<MailError>,
    },
    /// The seat's role does not allow the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The task was added, but not assigned.
    #[error("task {id} was added, but it was not assigned to {owner}")]
    NotAssigned {
        /// The id of the new task.
        id: TaskId,
        /// The intended owner.
        owner: MemberName,
        /// Why the task was not assigned.
        source: Box<BoardError>,
    },
    /// The task was changed, but the message about it to its owner failed.
    #[error("task {id} was {change}, but the message about it to {owner} failed")]
    OwnerNotTold {
        /// The id of the task.
        id: TaskId,
        /// "cancelled" or "unassigned".
        change: &'static str,
        /// The owner of the task.
        owner: String,
        /// Why the message failed.
        source: Box<MailError>,
    },
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn cycle(id: TaskId, blocker: TaskId) -> String {
    if id == blocker {
        format!("task {id} cannot depend on itself")
    } else {
        format!("task {id} cannot depend on {blocker}: {blocker} already depends on {id}")
    }
}

fn join(ids: &[TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}
