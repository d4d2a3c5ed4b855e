//! `brigade spawn`, `brigade stop`, `brigade down`, `brigade resume`

use std::path::PathBuf;

use brigade_host::member_options::MemberOptions;
use brigade_host::spec::{AccessLevel, MemberPlace, Restart};
use brigade_wire::name::{MemberName, TeamName};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::steer::MembersArgs;

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  brigade status --watch                        keep the view on the screen
  brigade status --all                          every team of this host
  brigade status --json | jq -r '.[].members[] | select(.liveness == \"dead\") | .name'
  brigade --store nats://server status --metrics";

pub(super) const SPAWN_EXAMPLES: &str = "\
Examples:
  brigade spawn bob --agent codex --prompt \"Take a task from the board\"
  brigade spawn bob --agent codex --worktree --allow \"cargo test *\" --deny \"git push*\"
  brigade spawn bob2 --like bob --model gpt-5
  brigade --team session-1a2b3c4d spawn bob --agent gemini --plan --place here";

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
    /// The agent: codex, gemini, …, or acp:COMMAND (see `brigade agents`)
    #[arg(long, value_name = "AGENT", required_unless_present = "like")]
    pub(crate) agent: Option<String>,
    /// Copy the settings of this member; other options override
    #[arg(long, value_name = "MEMBER")]
    pub(crate) like: Option<MemberName>,
    /// Model to use [default: the agent's own default]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// First message to the agent
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// File with the first message to the agent
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Where the agent runs: headless, tmux, native or here [default: headless]
    #[arg(long, value_name = "PLACE", hide_possible_values = true)]
    pub(crate) place: Option<SpawnPlace>,
    /// Start in plan mode: no changes until the lead approves a plan
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) plan: Option<bool>,
    /// Folder that the agent works in [default: this folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Work in an own git worktree, on an own branch
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) worktree: Option<bool>,
    /// `ask` before actions that the agent does not allow itself, or `full` [default: ask]
    #[arg(long, value_name = "LEVEL", hide_possible_values = true)]
    pub(crate) access: Option<AccessWord>,
    /// Allow a command, such as "cargo test *"; can be repeated
    #[arg(long, value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) allow: Vec<String>,
    /// Ask for a command, even if --allow matches it; can be repeated
    #[arg(long, value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) ask: Vec<String>,
    /// Deny a command; can be repeated
    #[arg(long, value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) deny: Vec<String>,
    /// Inherit this environment variable (NAME or NAME*); can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// Path of the agent's program [default: searched in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Restart the agent if its process dies: always or never [default: always]
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) restart: Option<RestartWord>,
}

impl SpawnArgs {
    /// Returns the settings of the new member. `here` is no place of a member that the supervisor runs.
    pub(crate) fn options(&self) -> MemberOptions {
        MemberOptions {
            like: self.like.clone(),
            agent: self.agent.clone(),
            program: self.program.clone(),
            model: self.model.clone(),
            prompt: self.prompt.clone(),
            prompt_file: self.prompt_file.clone(),
            plan: self.plan,
            access: self.access.map(|word| match word {
                AccessWord::Ask => AccessLevel::Ask,
                AccessWord::Full => AccessLevel::Full,
            }),
            allow: self.allow.clone(),
            ask: self.ask.clone(),
            deny: self.deny.clone(),
            dir: self.dir.clone(),
            worktree: self.worktree,
            env: self.env.clone(),
            place: self.place.and_then(|place| match place {
                SpawnPlace::Headless => Some(MemberPlace::Headless),
                SpawnPlace::Tmux => Some(MemberPlace::Tmux),
                SpawnPlace::Native => Some(MemberPlace::Native),
                SpawnPlace::Here => None,
            }),
            restart: self.restart.map(|word| match word {
                RestartWord::Always => Restart::Always,
                RestartWord::Never => Restart::Never,
            }),
        }
    }
}

/// The actions that need permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessWord {
    /// Ask for every action that the agent's own rules do not allow
    Ask,
    /// Never ask
    Full,
}

/// Whether an agent is restarted when its process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RestartWord {
    /// Restart it
    Always,
    /// Release its tasks
    Never,
}

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpawnPlace {
    /// In the background, with output to a file
    Headless,
    /// In a tmux window
    Tmux,
    /// As the real Claude Code, in a tmux window
    Native,
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
