//! `brigade store …`

use brigade_host::profile::StoreName;
use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade store add work tls://nats.example.org:4222 --ca ca.pem --creds alice.creds
  brigade store check work
  brigade store use work                use it whenever no other store is named
  brigade --store work team list        use it for one command
  brigade store use --none              go back to files";

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Name a NATS server, with its CA and your credentials
    ///
    /// Give the files with --ca and --creds. A store of the same name is replaced. The configuration
    /// contains only the paths of the files.
    Add(StoreAddArgs),

    /// List the stores you have named
    ///
    /// Exits with code 4 if there are none.
    List,

    /// Choose the store for commands that name none
    Use {
        /// The store
        #[arg(required_unless_present = "none")]
        name: Option<StoreName>,
        /// Go back to the files of this host
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },

    /// Forget a store you have named
    ///
    /// Changes nothing on the server, and deletes no files of the store. If the store was the default, the files of
    /// this host are the default again.
    Remove {
        /// The store
        name: StoreName,
    },

    /// Connect to a store and show what works
    ///
    /// Shows the server, whether the connection is encrypted, whose credentials you use and until when
    /// they are valid, what they permit, and whether the streams are in order.
    Check {
        /// The store [default: the store that other commands use here]
        name: Option<StoreName>,
    },
}

/// Arguments of `brigade store add`.
#[derive(Args, Debug)]
pub(crate) struct StoreAddArgs {
    /// The name: letters, digits, hyphens, underscores and dots
    pub(crate) name: StoreName,
    /// The servers, as nats://HOST:PORT or tls://HOST:PORT, separated by commas
    pub(crate) url: String,
    /// Also make it the default, as `brigade store use` does
    #[arg(long = "use")]
    pub(crate) is_default: bool,
}
