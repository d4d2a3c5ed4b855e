//! `brigade service …`

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade service install              show the file and ask
  brigade service status
  loginctl enable-linger               systemd: start the teams at boot, not only at login";

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install and enable the service
    ///
    /// Shows the file first and asks. Never overwrites a file that brigade did not write. The service is for
    /// the present store and finds programs in the present PATH: install it again after they change.
    Install {
        /// Install without asking
        #[arg(long, short)]
        yes: bool,
    },

    /// Show whether the service is installed and enabled
    ///
    /// Exits with code 4 if it is not installed.
    Status,

    /// Disable the service and delete its file
    ///
    /// Running members are not stopped.
    Remove,
}
