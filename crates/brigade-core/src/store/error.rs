//! Why a store did not do what it was asked.

use std::path::PathBuf;

use brigade_wire::Damage;
use brigade_wire::name::{TaskId, TeamName};
use thiserror::Error;

/// What stands in the way of a write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// Another program holds the lock.
    #[error("another program holds the lock {path} (for {held_secs} s so far)")]
    Held {
        /// The lock.
        path: PathBuf,
        /// How long it has been there by its own time.
        held_secs: i64,
    },
    /// A file stands where the lock should be. Nobody can take such a lock.
    #[error("{path} is a file, where a lock is a directory; remove it, for no program can")]
    NotALock {
        /// The file.
        path: PathBuf,
    },
    /// Something was put into the lock. Nobody can give such a lock back, or take it.
    #[error("{path} is a lock with something in it; empty it, for no program can")]
    Filled {
        /// The lock.
        path: PathBuf,
    },
    /// The file cannot be read as it is; somebody may be writing it, in place and without a lock.
    #[error("{path} is torn, and may still be being written")]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// Another brigade process is at work on the same mailbox, or stopped in the middle of it.
    #[error("another brigade process is busy with {path}; it may be stopped (see fuser)")]
    Busy {
        /// What it holds.
        path: PathBuf,
    },
}

/// Why a thing in the file system is not touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It could lead anywhere.
    #[error("it is a symbolic link")]
    Symlink,
    /// Somebody else can change it.
    #[error("it belongs to another user")]
    ForeignOwner,
    /// A pipe, a device, a directory.
    #[error("it is not a regular file")]
    NotAFile,
    /// It would be read into memory.
    #[error("it is larger than 256 MiB")]
    TooBig,
}

/// Why a store did not do what it was asked. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such team.
    #[error("no team {team}")]
    NoTeam {
        /// The name asked for.
        team: TeamName,
    },
    /// There is one already.
    #[error("there is a team {team} already")]
    TeamExists {
        /// The name asked for.
        team: TeamName,
    },
    /// There is no such task.
    #[error("no task {id}")]
    NoTask {
        /// The number asked for.
        id: TaskId,
    },
    /// The document is not at the revision it was asked to be replaced at.
    #[error("it was changed by somebody else meanwhile")]
    Conflict,
    /// The document cannot be read.
    #[error("{place} cannot be read: {damage}")]
    Damaged {
        /// Which document.
        place: String,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Somebody is at it, and did not finish in time.
    #[error(transparent)]
    Locked(#[from] Obstacle),
    /// The file system holds something that is not touched.
    #[error("{path} is not touched: {why}")]
    Refused {
        /// What.
        path: PathBuf,
        /// Why.
        why: Refusal,
    },
    /// The seat's credentials do not allow it: the engine itself refused.
    #[error("the engine does not allow this seat to {doing}")]
    Forbidden {
        /// What was tried.
        doing: String,
    },
    /// The engine did not answer, or not as it should.
    #[error("cannot {doing}")]
    Engine {
        /// What was tried.
        doing: String,
        /// What came of it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system said no.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}
