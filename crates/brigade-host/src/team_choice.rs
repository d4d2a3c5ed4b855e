//! The team that a command works with, and why.

use brigade_wire::name::TeamName;
use serde::Serialize;

/// Why a command works with a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamSource {
    /// An option, a variable or the credentials name the team.
    Named,
    /// The `brigade.toml` of the folder names it.
    Folder,
    /// The Claude Code session in which the command runs leads it.
    Session,
    /// The person chose it as the default team.
    Chosen,
    /// There is no other team.
    Only,
}

impl TeamSource {
    /// Returns the reason in words.
    pub fn as_text(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Folder => "from brigade.toml",
            Self::Session => "of this Claude Code session",
            Self::Chosen => "chosen with `brigade use`",
            Self::Only => "the only team",
        }
    }
}

/// The team that a command works with, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TeamChoice {
    /// The team.
    pub team: TeamName,
    /// Why the command works with this team.
    pub source: TeamSource,
}

impl TeamChoice {
    pub(crate) fn new(team: TeamName, source: TeamSource) -> Self {
        Self { team, source }
    }
}

/// Receives the team of a command, if there was a choice and the caller did not name a team.
pub type AnnounceTeam = fn(&TeamChoice);
