//! What a team on this host is to be: what `brigade.toml` and the command line say, with everything
//! filled in.

use std::path::PathBuf;

use brigade_core::policy::Rule;
use brigade_wire::name::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSpec {
    pub team: TeamName,
    /// What it is for.
    pub description: String,
    /// The folder it works in.
    pub root: PathBuf,
    /// The agent that leads; nobody if a person does.
    pub lead: Option<MemberSpec>,
    /// Who may answer requests for leave and plans.
    pub answers: Answers,
    pub members: Vec<MemberSpec>,
    pub tasks: Vec<TaskSpec>,
}

/// Who may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answers {
    /// A person, on the command line or a dashboard.
    #[default]
    Person,
    /// A person, or the agent that leads.
    Lead,
}

impl Answers {
    /// In a word, for a variable.
    pub fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Lead => "lead",
        }
    }
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    pub name: MemberName,
    /// Which agent: a name of the table, or `acp:COMMAND`.
    pub agent: String,
    /// Its program, if it is not the one on the path.
    #[serde(default)]
    pub program: Option<PathBuf>,
    pub model: Option<String>,
    /// What it is told first.
    pub prompt: Option<String>,
    /// Whether nothing may be changed before its plan is approved.
    pub plan: bool,
    /// What it may do without asking.
    pub access: AccessWord,
    /// What is said to its requests for leave, first rule first.
    pub rules: Vec<Rule>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Whether it works in a git worktree of its own, on a branch of its own.
    pub worktree: bool,
    /// Which variables it inherits, beside the few no program can do without; all if not said.
    pub env: Option<Vec<String>>,
    pub place: Place,
    pub restart: Restart,
}

/// What a member may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessWord {
    /// What its agent's own rules allow.
    #[default]
    Ask,
    /// Everything.
    Full,
}

/// Where a member runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Nowhere to be seen; what it would show is in a file.
    #[default]
    Headless,
    /// In a window of tmux.
    Tmux,
    /// The real Claude Code itself, in a window of tmux.
    Native,
}

/// What becomes of a member whose process dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// It is started again, each time later, and given up after five times in a row.
    #[default]
    Always,
    /// It stays dead; its tasks go back to the board.
    Never,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Its name in the file, by which others wait for it.
    pub key: String,
    pub subject: String,
    pub description: String,
    /// The tasks it waits for, which stand before it.
    pub after: Vec<String>,
    /// Whose it is from the start.
    pub owner: Option<MemberName>,
}
