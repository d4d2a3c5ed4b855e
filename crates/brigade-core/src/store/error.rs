//! The errors of a store.

use std::path::PathBuf;

use brigade_wire::Damage;
use brigade_wire::name::{TaskId, TeamName};
use thiserror::Error;

use crate::event::RefusedEvent;
use crate::store::mailbox_limit::MailboxFull;

/// Why a write cannot proceed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteObstacle {
    /// Another program holds the lock.
    #[error("another program holds the lock {path} (for {held_secs} s so far)")]
    Held {
        /// The path of the lock directory.
        path: PathBuf,
        /// How long the lock has existed, in seconds.
        held_secs: i64,
    },
    /// There is a file in place of the lock directory, so no program can take the lock.
    #[error("{path} is a file, but a lock must be a directory; remove the file")]
    NotALock {
        /// The path of the file.
        path: PathBuf,
    },
    /// The lock directory is not empty, so no program can release or take the lock.
    #[error("the lock directory {path} is not empty; empty it")]
    Filled {
        /// The path of the lock directory.
        path: PathBuf,
    },
    /// The file cannot be parsed. Another program may be writing it in place, without a lock.
    #[error("{path} is incomplete; another program may still be writing it")]
    Torn {
        /// The path of the file.
        path: PathBuf,
    },
    /// Another brigade process is using the mailbox, or was suspended while it was using the mailbox.
    #[error("another brigade process is using {path}; `fuser {path}` shows which one")]
    Busy {
        /// The path of the file that the other process holds.
        path: PathBuf,
    },
}

/// Why the store refuses to use a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The file is a symbolic link, which could point anywhere.
    #[error("it is a symbolic link")]
    Symlink,
    /// The file belongs to another user, who could change it.
    #[error("it belongs to another user")]
    ForeignOwner,
    /// The file is a pipe, a device or a directory.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file is too large to be read into memory as a whole.
    #[error("it is larger than 256 MiB")]
    TooBig,
}

/// Why a store operation failed. The operation changed nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The team does not exist.
    #[error("no team named \"{team}\"")]
    NoTeam {
        /// The name of the team.
        team: TeamName,
    },
    /// The team already exists.
    #[error("a team named \"{team}\" already exists")]
    TeamExists {
        /// The name of the team.
        team: TeamName,
    },
    /// The task does not exist.
    #[error("no task {id}")]
    NoTask {
        /// The task number.
        id: TaskId,
    },
    /// The document was changed after the caller read it.
    #[error("another program changed the document in the meantime")]
    Conflict,
    /// The document cannot be parsed.
    #[error("{place} cannot be read: {damage}")]
    Damaged {
        /// The name of the document.
        place: String,
        /// The parse error.
        damage: Damage,
    },
    /// Another program blocked the write until the time limit.
    #[error(transparent)]
    Locked(#[from] WriteObstacle),
    /// The store refuses to use a file.
    #[error("refusing to use {path}: {why}")]
    Refused {
        /// The path of the file.
        path: PathBuf,
        /// Why the store refuses the file.
        why: Refusal,
    },
    /// The recipient has too much unread mail.
    #[error(transparent)]
    MailboxFull(#[from] MailboxFull),
    /// The member may not record such an event.
    #[error(transparent)]
    EventRefused(#[from] RefusedEvent),
    /// The NATS server does not allow the operation with the seat's credentials.
    #[error("the NATS server does not allow {holder} to {doing}: {missing}")]
    Forbidden {
        /// The operation, as a verb phrase.
        doing: String,
        /// The credentials that the caller used, such as "the credentials of alice in team demo".
        holder: String,
        /// The right that the credentials lack.
        missing: String,
    },
    /// The NATS server did not answer, or answered with an error.
    #[error("cannot {doing}")]
    Engine {
        /// The operation, as a verb phrase.
        doing: String,
        /// The error of the NATS client.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system returned an error.
    #[error("cannot {doing} {path}")]
    Io {
        /// The operation, as a verb phrase.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}
