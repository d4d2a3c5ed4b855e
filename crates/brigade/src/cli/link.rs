//! `brigade link`

use brigade_wire::name::TeamName;
use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade link demo --store nats://engine:4222      on each host of the team
  brigade link --store tls://engine:4222 --creds bob.creds
  brigade link demo --store nats://engine:4222 --once";

/// What is linked.
#[derive(Args, Debug)]
pub(crate) struct Link {
    /// The teams; those of the engine if none is named
    ///
    /// A team that is only here, led by a native, is made in the engine; one that is only in the engine is
    /// made here.
    #[arg(value_name = "TEAM")]
    pub(crate) teams: Vec<TeamName>,
    /// Call this host so; no two hosts of a team may be called the same
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Bring both sides into step once, and end
    #[arg(long)]
    pub(crate) once: bool,
}
