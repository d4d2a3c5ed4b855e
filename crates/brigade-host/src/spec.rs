//! The settings of a team and its members, from `brigade.toml` and the command line, with defaults filled in.

use std::path::PathBuf;

use brigade_core::policy::Rule;
use brigade_wire::name::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// The settings of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSpec {
    /// The team's name.
    pub team: TeamName,
    /// The purpose of the team.
    pub description: String,
    /// The folder it works in.
    pub root: PathBuf,
    /// The agent that leads; `None` if a person does.
    pub lead: Option<MemberSpec>,
    /// The party that may answer permission requests and plans.
    pub answers: ApprovalAuthority,
    /// The members, in the order of the file.
    pub members: Vec<MemberSpec>,
    /// The initial tasks. A task comes after those it depends on.
    pub tasks: Vec<TaskSpec>,
}

impl TeamSpec {
    /// The settings of a team without a file. Its members are added later.
    pub(crate) fn new(team: TeamName, root: PathBuf) -> Self {
        Self {
            team,
            description: String::new(),
            root,
            lead: None,
            answers: ApprovalAuthority::Person,
            members: Vec::new(),
            tasks: Vec::new(),
        }
    }
}

/// The party that may answer permission requests and plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalAuthority {
    /// A person, on the command line or a dashboard.
    #[default]
    Person,
    /// A person, or the agent that leads.
    Lead,
}

impl ApprovalAuthority {
    /// Returns the value for the environment variable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Lead => "lead",
        }
    }
}

/// The settings of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// The member's name.
    pub name: MemberName,
    /// The agent: a known name, or `acp:COMMAND`.
    pub agent: String,
    /// The agent's program, if it is not the one on `PATH`.
    #[serde(default)]
    pub program: Option<PathBuf>,
    /// The model; the agent's own choice if absent.
    pub model: Option<String>,
    /// The first message it gets.
    pub prompt: Option<String>,
    /// Whether it must not change anything before its plan is approved.
    pub plan: bool,
    /// The actions it may take without asking.
    pub access: AccessLevel,
    /// The rules that answer its permission requests; the first that matches counts.
    pub rules: Vec<Rule>,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// Whether it works in its own git worktree, on its own branch.
    pub worktree: bool,
    /// The variables it inherits, in addition to those every program needs; `None` for all.
    pub env: Option<Vec<String>>,
    /// Where it runs.
    pub place: MemberPlace,
    /// Whether it is restarted when its process dies.
    pub restart: Restart,
}

/// The actions a member may take without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLevel {
    /// Those its agent's own rules allow.
    #[default]
    Ask,
    /// All actions.
    Full,
}

/// Where a member runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberPlace {
    /// In the background; its output goes to a log file.
    #[default]
    Headless,
    /// In a tmux window.
    Tmux,
    /// As the real Claude Code, in a tmux window.
    Native,
}

/// The reaction to the death of a member's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// Restart it with growing delays, and mark it failed after five failures in a row.
    #[default]
    Always,
    /// Do not restart it, and release its tasks.
    Never,
}

/// An initial task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Its name in the file, which `after` of other tasks refers to.
    pub key: String,
    /// The short title.
    pub subject: String,
    /// The full description.
    pub description: String,
    /// The keys of the tasks it waits for. They come earlier in the list.
    pub after: Vec<String>,
    /// Its initial owner.
    pub owner: Option<MemberName>,
}
