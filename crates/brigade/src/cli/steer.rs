//! `brigade interrupt`, `brigade pause`, `brigade unpause`, `brigade restart`

use brigade_wire::name::MemberName;
use clap::Args;

pub(super) const INTERRUPT_EXAMPLES: &str = "\
Examples:
  brigade interrupt bob
  brigade pause bob && brigade interrupt bob    also keep waiting mail from starting the next turn";

pub(super) const RESTART_EXAMPLES: &str = "\
Examples:
  brigade restart bob                    the agent resumes its session
  brigade restart bob --fresh            the agent begins a new session, with a briefing
  brigade restart bob --model opus       the same session with another model";

/// The members that a command is for.
#[derive(Args, Clone, Debug)]
pub(crate) struct MembersArgs {
    /// The members
    #[arg(value_name = "MEMBER", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<MemberName>,
    /// All members that run on this host
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `brigade restart`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) members: MembersArgs,
    /// Begin a new session; its first text lists the member's tasks, last messages and changes
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Use this model from now on
    #[arg(long)]
    pub(crate) model: Option<String>,
}
