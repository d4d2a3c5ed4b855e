//! What the commands around `brigade.toml` take.

use std::path::PathBuf;

use clap::Args;

/// A team to be brought up.
#[derive(Args, Clone, Debug)]
pub(crate) struct Up {
    /// Only say whether the file is right and what the team would be
    ///
    /// Every mistake is told with its line. Nothing is started and nothing is changed.
    #[arg(long, conflicts_with = "until_done")]
    pub(crate) check: bool,
    /// Take this file instead of the brigade.toml of this folder, or of the nearest above
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Stay until every task is done, then take the team down
    ///
    /// What happens is shown as it happens, with --json as lines of JSON. The exit code is 0 only if
    /// every task is done.
    #[arg(long)]
    pub(crate) until_done: bool,
    /// Give up after this many seconds; only with --until-done
    #[arg(long, value_name = "SECONDS", requires = "until_done")]
    pub(crate) limit: Option<u64>,
}

/// A file to be begun.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct New {
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Also write brigade.schema.json beside it, for editors that complete and check TOML
    #[arg(long)]
    pub(crate) schema: bool,
}
