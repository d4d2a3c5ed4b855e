//! `brigade link`

use brigade_wire::name::TeamName;
use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade link demo --store nats://server:4222      on each host of the team
  brigade link --store tls://server:4222 --creds bob.creds
  brigade link --list
  brigade link --stop demo
  brigade link demo --store nats://server:4222 --foreground";

/// Arguments of `brigade link`.
#[derive(Args, Debug)]
pub(crate) struct LinkArgs {
    /// The teams [default: all teams on the NATS server]
    ///
    /// A team that exists only on this host and is led by Claude Code is created on the server. A team
    /// that exists only on the server is created on this host.
    #[arg(value_name = "TEAM")]
    pub(crate) teams: Vec<TeamName>,
    /// Name of this host; must be unique among the team's hosts
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Run in this terminal until interrupted, and print one line for each action
    #[arg(long, conflicts_with_all = ["once", "stop", "list"])]
    pub(crate) foreground: bool,
    /// Synchronize once and exit
    #[arg(long, conflicts_with_all = ["stop", "list"])]
    pub(crate) once: bool,
    /// End the links of these teams on this host
    #[arg(long, requires = "teams", conflicts_with_all = ["host", "list"])]
    pub(crate) stop: bool,
    /// List the links of this host with their state
    #[arg(long, conflicts_with_all = ["teams", "host"])]
    pub(crate) list: bool,
}
