//! `brigade trust`

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade trust                         show what ./brigade.toml would do, and ask
  brigade trust ../other/brigade.toml --yes
  brigade trust --list
  brigade trust --remove                ask again before using ./brigade.toml";

/// Arguments of `brigade trust`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrustArgs {
    /// Team file [default: brigade.toml in this folder or the nearest parent folder]
    pub(crate) file: Option<PathBuf>,
    /// Trust the file without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// With --yes: also accept the paths outside the folder of the file
    #[arg(long, requires = "yes")]
    pub(crate) outside: bool,
    /// List the files that you trust
    #[arg(long, conflicts_with_all = ["file", "yes", "remove"])]
    pub(crate) list: bool,
    /// Do not trust the file any more
    ///
    /// Exits with code 4 if the file was not trusted.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) remove: bool,
}
