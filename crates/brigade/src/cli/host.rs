//! `brigade stop`, `brigade down`, `brigade resume`

use brigade_wire::name::{MemberName, TeamName};
use clap::Args;

/// Arguments of `brigade stop`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StopArgs {
    /// The member to stop
    pub(crate) name: MemberName,
    #[command(flatten)]
    pub(crate) how: ShutdownArgs,
}

/// Arguments of `brigade down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DownArgs {
    /// The team [default: the only one running, or the team of this folder's brigade.toml]
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
}

/// Arguments of `brigade resume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResumeArgs {
    /// The team [default: every team that was running]
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
}
