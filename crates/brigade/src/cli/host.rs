//! `brigade stop`, `brigade down`, `brigade resume`

use brigade_wire::name::{MemberName, TeamName};
use clap::Args;

/// Arguments of `brigade stop`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stop {
    /// The member to stop
    pub(crate) name: MemberName,
    #[command(flatten)]
    pub(crate) how: Ending,
}

/// Arguments of `brigade down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Down {
    /// The team [default: the only one running, or the team of this folder's brigade.toml]
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
    #[command(flatten)]
    pub(crate) how: Ending,
}

/// How to stop members; shared by `stop` and `down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ending {
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
pub(crate) struct Resume {
    /// The team [default: every team that was running]
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
}
