//! `brigade spawn`, `brigade stop`, `brigade down`, `brigade resume`

#[cfg(feature = "nats")]
use std::path::PathBuf;

use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, ValueEnum};

use super::steer::MembersArgs;

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  brigade status --watch                        keep the view on the screen
  brigade status --all                          every team of this host
  brigade status --json | jq -r '.[].members[] | select(.liveness == \"dead\") | .name'
  brigade --store nats://server status --metrics";

/// Arguments of `brigade status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// The team [default: the team of this folder's brigade.toml, else every team of this host]
    #[arg(value_name = "TEAM", conflicts_with = "all")]
    pub(crate) which: Option<TeamName>,
    /// Show every team of this host
    #[arg(long)]
    pub(crate) all: bool,
    /// Refresh the view every second, until Ctrl-C
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Show metrics for operators: mailbox backlog and age, task counts, NATS server state
    #[arg(long)]
    pub(crate) metrics: bool,
}

/// Arguments of `brigade spawn`.
#[derive(Args, Debug)]
pub(crate) struct SpawnArgs {
    /// The member's name
    pub(crate) name: MemberName,
    /// The agent: codex, gemini, opencode, …, or acp:COMMAND (see `brigade agents`)
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    /// Model to use [default: the agent's own default]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// First message to the agent
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Where the agent runs
    #[arg(long, value_name = "PLACE", default_value = "headless")]
    pub(crate) place: SpawnPlace,
    /// Start in plan mode: no changes until the lead approves a plan
    #[arg(long)]
    pub(crate) plan: bool,
}

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpawnPlace {
    /// In the background, with output to a file
    Headless,
    /// In a tmux window
    Tmux,
    /// In this terminal, until the member stops or you interrupt the command
    Here,
}

/// Arguments of `brigade stop`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) members: MembersArgs,
    #[command(flatten)]
    pub(crate) how: ShutdownArgs,
    #[command(flatten)]
    pub(crate) credentials: RevokeArgs,
}

/// Arguments of `brigade down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DownArgs {
    /// The team [default: the team of this folder's brigade.toml, else the only one running]
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
    #[command(flatten)]
    pub(crate) how: ShutdownArgs,
}

/// How to stop members; shared by `stop` and `down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShutdownArgs {
    /// Kill a member that has not answered after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) limit: u64,
    /// Kill immediately, without asking
    #[arg(long)]
    pub(crate) now: bool,
    /// Reason sent with the request to stop
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// Also remove files in a worktree that git ignores, such as build output
    #[arg(long)]
    pub(crate) discard: bool,
}

/// How to end the credentials of a member that is stopped or removed; shared by `stop` and `team leave`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RevokeArgs {
    /// Also revoke the member's NATS credentials, with the operator's folder (see `brigade org`)
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "DIR")]
    pub(crate) revoke: Option<PathBuf>,
}

/// Arguments of `brigade resume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResumeArgs {
    /// The team [default: every team that was running]
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,

    /// Lead the team of an ended Claude Code session yourself, under this new name
    #[arg(long, value_name = "NAME", requires = "which")]
    pub(crate) take_over: Option<TeamName>,
}
