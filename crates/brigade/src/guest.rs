//! Being a guest in the settings of other programs: what `brigade init` puts there, and how it is taken
//! out again.
//!
//! - `file`: a file of the user's, read, and replaced in one step;
//! - `edit`: what is put into a text, and the text without it;
//! - `record`: what was put where, written before it is;
//! - `claude`, `codex`, `gemini`: what each program is told;
//! - `plan`: all of it together, and doing it;
//! - `undo`: the way back.

pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod gemini;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod undo;

use std::io;
use std::path::{Path, PathBuf};

use brigade_wire::Damage;
use thiserror::Error;

use crate::error::{CliError, Kind};

/// Why a file of the user's was not read or changed.
#[derive(Debug, Error)]
pub(crate) enum GuestError {
    #[error("cannot {doing} {}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is a link to nothing", .path.display())]
    Dangling { path: PathBuf },
    #[error("{} belongs to another user", .path.display())]
    Foreign { path: PathBuf },
    #[error("{} is not a file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is not UTF-8", .path.display())]
    NotText { path: PathBuf },
    #[error("{} is not as it should be", .path.display())]
    Damaged { path: PathBuf, source: Damage },
    #[error("{} was changed by another program just now", .path.display())]
    Overtaken { path: PathBuf },
    #[error("the record of what brigade changed cannot be read: {}", .path.display())]
    Record { path: PathBuf, source: serde_json::Error },
    #[error("what brigade put into {} is written in another way now", .path.display())]
    Reworded { path: PathBuf },
    #[error("another `brigade init` is running")]
    Busy,
}

impl GuestError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

impl From<GuestError> for CliError {
    fn from(error: GuestError) -> Self {
        let hint = match &error {
            GuestError::Io { .. } => None,
            GuestError::Dangling { .. } => Some("make what it points at, or remove the link"),
            GuestError::Foreign { .. } => {
                Some("run brigade as its owner, or change the owner with `chown`")
            }
            GuestError::NotAFile { .. } => Some("move it out of the way"),
            GuestError::NotText { .. } => Some("save it as UTF-8"),
            GuestError::Damaged { .. } => Some(
                "mend it by hand; brigade changes only what it can read, and comments are not JSON",
            ),
            GuestError::Overtaken { .. } => Some("nothing was lost; run the command again"),
            GuestError::Record { .. } => Some(
                "copies of the files as they were stand in it; put them back by hand, then remove it",
            ),
            GuestError::Reworded { .. } => {
                Some("take out mcp_servers.team by hand, then undo again")
            }
            GuestError::Busy => Some("answer or end that one first"),
        };
        let kind = match &error {
            GuestError::Busy => Kind::Locked,
            _ => Kind::Failed,
        };
        hint.into_iter().fold(Self::new(kind, error), Self::hint)
    }
}
