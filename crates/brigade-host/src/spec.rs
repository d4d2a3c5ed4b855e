//! The settings of a team and its members, from `brigade.toml` and the command line, with defaults filled in.

use std::path::PathBuf;

use brigade_agents::driver::Access;
use brigade_core::policy::Rule;
use brigade_wire::name::{MemberName, TeamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSpec {
    /// The team's name.
    pub team: TeamName,
    /// The purpose of the team.
    pub description: String,
    /// The folder that the team works in.
    pub root: PathBuf,
    /// The agent that leads the team. `None` if a person leads it.
    pub lead: Option<MemberSpec>,
    /// Determines who approves or rejects plans and permission requests.
    pub answers: ApprovalAuthority,
    /// The members, in the order of `brigade.toml`.
    pub members: Vec<MemberSpec>,
    /// The initial tasks. Each task comes after the tasks that it depends on.
    pub tasks: Vec<TaskSpec>,
}

impl TeamSpec {
    /// Creates the settings of a team that has no `brigade.toml`. The members are added later.
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

/// Determines who approves or rejects plans and permission requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalAuthority {
    /// Only a person, on the command line or a dashboard.
    #[default]
    Person,
    /// A person, or the agent that leads the team.
    Lead,
}

impl ApprovalAuthority {
    /// Returns the value for the environment variable `BRIGADE_ANSWERS`.
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
    /// The agent: a name that `brigade agents` lists, or `acp:COMMAND`.
    pub agent: String,
    /// The path of the agent's program, if brigade should not search `PATH` for it.
    #[serde(default)]
    pub program: Option<PathBuf>,
    /// The model. `None` lets the agent choose.
    pub model: Option<String>,
    /// The first message that the member gets.
    pub prompt: Option<String>,
    /// Whether the member must not change anything before its plan is approved.
    pub plan: bool,
    /// The actions that the member may take without asking.
    pub access: AccessLevel,
    /// The rules that answer the member's permission requests. The first matching rule applies.
    pub rules: Vec<Rule>,
    /// The folder that the member works in.
    pub cwd: PathBuf,
    /// Whether the member works in its own git worktree, on its own branch.
    pub worktree: bool,
    /// The environment variables that the member inherits, in addition to those that every program needs. `None`
    /// means those of build tools and of the agent's vendor.
    pub env: Option<Vec<String>>,
    /// Where the member runs.
    pub place: MemberPlace,
    /// Whether the member is restarted when its process dies.
    pub restart: Restart,
}

impl MemberSpec {
    /// Returns the settings of a member with defaults.
    pub fn new(name: MemberName, agent: String, cwd: PathBuf) -> Self {
        Self {
            name,
            agent,
            program: None,
            model: None,
            prompt: None,
            plan: false,
            access: AccessLevel::Ask,
            rules: Vec::new(),
            cwd,
            worktree: false,
            env: None,
            place: MemberPlace::Headless,
            restart: Restart::Always,
        }
    }

    /// Returns what the agent may do without asking, as its driver understands it. In plan mode, it may only read.
    pub fn driver_access(&self) -> Access {
        match self.access {
            _ if self.plan => Access::ReadOnly,
            AccessLevel::Ask => Access::Ask,
            AccessLevel::Full => Access::Full,
        }
    }
}

/// Returns whether this is the name of an environment variable. `*` at the end stands for any rest.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = name.strip_suffix('*').unwrap_or(name);
    let begins_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    start.chars().all(is_allowed) && !name.is_empty() && !begins_with_digit
}

/// The actions that a member may take without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLevel {
    /// Only the actions that the agent's own rules allow.
    #[default]
    Ask,
    /// All actions.
    Full,
}

/// Where a member runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberPlace {
    /// In the background; its output goes to a log file.
    #[default]
    Headless,
    /// In a tmux window.
    Tmux,
    /// As the real Claude Code, in a tmux window.
    Native,
    /// In a pane or window that Claude Code opened. Claude Code started the member.
    Pane,
}

/// The supervisor's reaction to the death of a member's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// Restart the member with growing delays, and mark it as failed after five failures in a row.
    #[default]
    Always,
    /// Do not restart the member, and release its tasks.
    Never,
}

/// An initial task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The name of the task in `brigade.toml`. Other tasks refer to this name with `after`.
    pub key: String,
    /// The title of the task.
    pub subject: String,
    /// The full description of the task.
    pub description: String,
    /// The keys of the tasks that this task waits for. Those tasks come earlier in the list.
    pub after: Vec<String>,
    /// The initial owner of the task.
    pub owner: Option<MemberName>,
}
