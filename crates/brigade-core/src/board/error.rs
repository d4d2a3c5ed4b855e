//! Why the board says no.

use brigade_wire::name::{MemberName, TaskId};
use thiserror::Error;

use super::MAX_TASK;
use crate::authority::Denied;
use crate::mail::MailError;
use crate::store::StoreError;

/// Why the board was not changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoardError {
    /// No such task.
    #[error("no task {0}")]
    NoTask(TaskId),
    /// A file that Claude Code does not show as a task.
    #[error("task {0} lacks what a task needs; Claude Code does not show it either")]
    NotATask(TaskId),
    /// Somebody was first.
    #[error("task {id} belongs to {owner}")]
    Taken {
        /// Which task.
        id: TaskId,
        /// Whose it is.
        owner: String,
    },
    /// Nothing left to do.
    #[error("task {0} is completed already")]
    Done(TaskId),
    /// Not yet.
    #[error("task {id} waits for {}", join(.waits_for))]
    Blocked {
        /// Which task.
        id: TaskId,
        /// What it waits for.
        waits_for: Vec<TaskId>,
    },
    /// Tasks would wait for each other.
    #[error("task {id} cannot wait for {blocker}: {blocker} waits for {id}")]
    Cycle {
        /// Which task.
        id: TaskId,
        /// What it was to wait for.
        blocker: TaskId,
    },
    /// Nothing to do.
    #[error("the subject is empty")]
    NoSubject,
    /// Too much to do.
    #[error("the task has {len} bytes; at most {MAX_TASK} are taken")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// The owner is nobody.
    #[error("no member {name} to give the task to")]
    NoMember {
        /// Who.
        name: String,
        /// Who is there.
        members: Vec<String>,
    },
    /// The task was given, but its new owner was not told.
    #[error("task {id} now belongs to {owner}, who could not be told")]
    NotTold {
        /// Which task.
        id: TaskId,
        /// Whose it is.
        owner: MemberName,
        /// Why.
        source: Box<MailError>,
    },
    /// It is not for the seat to do.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn join(ids: &[TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}
