//! `brigade init` adds brigade to the settings of other programs; `brigade init --undo` removes it again.
//!
//! - `file`: reads a user's file and replaces it atomically;
//! - `edit`: adds brigade's settings to the text of a file, and removes them;
//! - `record`: the record of all changes, written before the changes are made;
//! - `claude`, `codex`, `gemini`: the settings for each program;
//! - `plan`: plans all changes and applies them;
//! - `undo`: reverts all changes.

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

/// Why a user's file was not read or changed.
#[derive(Debug, Error)]
pub(crate) enum InitError {
    #[error("cannot {doing} {}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is a dangling link", .path.display())]
    Dangling { path: PathBuf },
    #[error("{} belongs to another user", .path.display())]
    Foreign { path: PathBuf },
    #[error("{} is not a file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is not UTF-8", .path.display())]
    NotText { path: PathBuf },
    #[error("{} is not valid", .path.display())]
    Damaged { path: PathBuf, source: Damage },
    #[error("another program has just changed {}", .path.display())]
    Overtaken { path: PathBuf },
    #[error("the record of what brigade changed cannot be read: {}", .path.display())]
    Record { path: PathBuf, source: serde_json::Error },
    #[error("brigade's settings in {} were rewritten in another form", .path.display())]
    Reworded { path: PathBuf },
    #[error("{} was added to brigade's table in {}", .keys.join(", "), .path.display())]
    Mixed { path: PathBuf, keys: Vec<String> },
    #[error("another `brigade init` is running")]
    Busy,
}

impl InitError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

impl From<InitError> for CliError {
    fn from(error: InitError) -> Self {
        let hint = match &error {
            InitError::Io { .. } => None,
            InitError::Dangling { .. } => Some("create its target, or remove the link"),
            InitError::Foreign { .. } => {
                Some("run brigade as its owner, or change its owner with `chown`")
            }
            InitError::NotAFile { .. } => Some("move it out of the way"),
            InitError::NotText { .. } => Some("save it as UTF-8"),
            InitError::Damaged { .. } => Some(
                "fix it by hand; brigade only changes files it can read, and JSON does not allow comments",
            ),
            InitError::Overtaken { .. } => Some("nothing was lost; run the command again"),
            InitError::Record { .. } => Some(
                "the record contains the original text of the files; restore the files by hand, then remove the record",
            ),
            InitError::Reworded { .. } => {
                Some("remove mcp_servers.team by hand, then run `brigade init --undo` again")
            }
            InitError::Mixed { .. } => Some(
                "without brigade's table, these lines would belong to another one; move them to the table that \
                 they belong to, then run `brigade init --undo` again",
            ),
            InitError::Busy => Some("answer or stop the other `brigade init` first"),
        };
        let kind = match &error {
            InitError::Busy => Kind::Locked,
            _ => Kind::Failed,
        };
        hint.into_iter().fold(Self::new(kind, error), Self::hint)
    }
}
