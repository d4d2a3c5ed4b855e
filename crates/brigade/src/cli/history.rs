//! `brigade history …`

use std::path::PathBuf;

use brigade_host::history::Keep;
use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade history size                  how much space each team's history uses
  brigade history keep 90d              delete history that is older than 90 days, from now on
  brigade history compact --keep 30d    delete history that is older than 30 days, once
  brigade history export log.jsonl      write the history of this team to a file";

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Show how much space the history of each team uses
    ///
    /// Includes teams that were deleted. With --team, shows one team. Exits with code 4 if there is no history.
    Size,

    /// Show or set how much history to keep
    ///
    /// The limit is for each team on this host. The supervisor deletes older history a minute after it starts, and
    /// then every six hours. It keeps every unread message of a member, every request without an answer, and
    /// everything after them. What was deleted cannot be restored. Without an argument, shows the limit.
    Keep {
        /// A number of days such as 90d, a size such as 10GB, or all
        keep: Option<Keep>,
    },

    /// Delete old history now
    ///
    /// Deletes the messages, requests and work of members that are older than the limit, and frees their space. Keeps
    /// every unread message of a member, every request without an answer, and everything after them; also the last
    /// 128 kB of each journal, and all changes of the roster and the board. A team that does not exist any more is
    /// deleted as a whole when nothing has happened in it for that many days. With --team, for one team. What was
    /// deleted cannot be restored: export it first if you may need it.
    Compact(HistoryCompactArgs),

    /// Write the history of a team to a file
    ///
    /// One JSON record per line, as `brigade log --json` prints them. `brigade ui --replay FILE` shows the file.
    /// The file must not exist yet.
    Export {
        /// The file to write
        file: PathBuf,
    },
}

/// Arguments of `brigade history compact`.
#[derive(Args, Debug)]
pub(crate) struct HistoryCompactArgs {
    /// How much to keep, only this time: 90d, 10GB or all [default: as `brigade history keep` shows]
    #[arg(long)]
    pub(crate) keep: Option<Keep>,
}
