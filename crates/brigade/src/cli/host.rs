//! The commands for teams that run on this host.

use brigade_wire::name::{MemberName, TeamName};
use clap::Args;

/// Asking members to stop.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stop {
    /// The member to stop
    pub(crate) name: MemberName,
    #[command(flatten)]
    pub(crate) how: Ending,
}

/// Taking a team down.
#[derive(Args, Clone, Debug)]
pub(crate) struct Down {
    /// The team; if not given the only one that is up, or that of the brigade.toml of this folder
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
    #[command(flatten)]
    pub(crate) how: Ending,
}

/// How members are ended.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ending {
    /// End it after this many seconds, whatever it answers
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) limit: u64,
    /// Do not ask, end it at once
    #[arg(long)]
    pub(crate) now: bool,
    /// Tell it why
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
}

/// Bringing teams back.
#[derive(Args, Clone, Debug)]
pub(crate) struct Resume {
    /// The team; all that were up if not given
    #[arg(value_name = "TEAM")]
    pub(crate) which: Option<TeamName>,
}
