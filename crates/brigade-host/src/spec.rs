//! What a team on this host is to be: what `brigade.toml` and the command line say, with everything
//! filled in.

use std::path::PathBuf;

use brigade_core::policy::Rule;
use brigade_wire::name::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamSpec {
    pub(crate) team: TeamName,
    /// What it is for.
    pub(crate) description: String,
    /// The folder it works in.
    pub(crate) root: PathBuf,
    /// The agent that leads; nobody if a person does.
    pub(crate) lead: Option<MemberSpec>,
    /// Who may answer requests for leave and plans.
    pub(crate) answers: Answers,
    pub(crate) members: Vec<MemberSpec>,
    pub(crate) tasks: Vec<TaskSpec>,
}

/// Who may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answers {
    /// A person, on the command line or a dashboard.
    #[default]
    Person,
    /// A person, or the agent that leads.
    Lead,
}

impl Answers {
    /// In a word, for a variable.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Lead => "lead",
        }
    }
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberSpec {
    pub(crate) name: MemberName,
    /// Which agent: a name of the table, or `acp:COMMAND`.
    pub(crate) agent: String,
    /// Its program, if it is not the one on the path.
    #[serde(default)]
    pub(crate) program: Option<PathBuf>,
    pub(crate) model: Option<String>,
    /// What it is told first.
    pub(crate) prompt: Option<String>,
    /// Whether nothing may be changed before its plan is approved.
    pub(crate) plan: bool,
    /// What it may do without asking.
    pub(crate) access: AccessWord,
    /// What is said to its requests for leave, first rule first.
    pub(crate) rules: Vec<Rule>,
    /// Where it works.
    pub(crate) cwd: PathBuf,
    /// Whether it works in a git worktree of its own, on a branch of its own.
    pub(crate) worktree: bool,
    /// Which variables it inherits, beside the few no program can do without; all if not said.
    pub(crate) env: Option<Vec<String>>,
    pub(crate) place: Place,
    pub(crate) restart: Restart,
}

/// What a member may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccessWord {
    /// What its agent's own rules allow.
    #[default]
    Ask,
    /// Everything.
    Full,
}

/// Where a member runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
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
pub(crate) enum Restart {
    /// It is started again, each time later, and given up after five times in a row.
    #[default]
    Always,
    /// It stays dead; its tasks go back to the board.
    Never,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskSpec {
    /// Its name in the file, by which others wait for it.
    pub(crate) key: String,
    pub(crate) subject: String,
    pub(crate) description: String,
    /// The tasks it waits for, which stand before it.
    pub(crate) after: Vec<String>,
    /// Whose it is from the start.
    pub(crate) owner: Option<MemberName>,
}
