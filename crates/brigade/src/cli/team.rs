//! `brigade team …`

use std::path::PathBuf;

use brigade_core::roster::Activity;
use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Subcommand, ValueEnum};

use super::RevokeArgs;

pub(super) const USE_EXAMPLES: &str = "\
Examples:
  brigade use demo
  brigade use                   show the team, and why
  brigade use --clear";

/// Arguments of `brigade use`.
#[derive(Args, Debug)]
pub(crate) struct UseArgs {
    /// The team to use from now on
    #[arg(value_name = "TEAM", conflicts_with = "clear")]
    pub(crate) which: Option<TeamName>,
    /// Forget the default team
    #[arg(long)]
    pub(crate) clear: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Create a team and lead it
    #[command(after_help = "\
Example:
  brigade team create demo --description \"Ship the parser\"")]
    Create {
        /// Team name: a-z, 0-9 and hyphens
        name: TeamName,
        /// Purpose of the team
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            allow_hyphen_values = true
        )]
        description: String,
    },

    /// List teams
    List,

    /// Show a team and its members
    Show {
        /// The team [default: the team of --team]
        name: Option<TeamName>,
    },

    /// Delete a team: its members, inboxes and board
    ///
    /// Fails while members are working or Claude Code runs the team. `brigade log` still shows the
    /// history of a deleted team.
    Delete {
        /// The team [default: the team of --team]
        name: Option<TeamName>,
        /// Delete the team even if members are working or Claude Code runs it
        #[arg(long)]
        force: bool,
    },

    /// Export a team to a file
    ///
    /// Writes the team's members, tasks, mail with read marks, and members' notes as JSON lines,
    /// for backup or for `brigade team import`. The team itself is not changed. Stop the team first
    /// if the file must be complete.
    #[command(after_help = "\
Examples:
  brigade team export demo demo.team
  brigade --store nats://server team export demo - | gzip > demo.team.gz")]
    Export {
        /// The team
        name: TeamName,
        /// The new file; - for standard output. Fails if the file exists
        file: PathBuf,
    },

    /// Create a team from an exported file
    ///
    /// Never overwrites an existing team. Unread messages stay unread and arrive once. The log shows
    /// the time of the import. If an import is interrupted, run it again to continue.
    #[command(after_help = "\
Examples:
  brigade --store nats://server team import demo.team
  brigade team import demo.team --rename copy")]
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Use another team name
        #[arg(long, value_name = "NAME")]
        rename: Option<TeamName>,
    },

    /// Add a member to the team
    ///
    /// Adds the member to the roster, so that it can receive messages and own tasks. Does not start
    /// an agent.
    Join(TeamJoinArgs),

    /// Remove a member from the team and unassign its unfinished tasks
    Leave {
        /// The member
        name: MemberName,
        #[command(flatten)]
        credentials: RevokeArgs,
    },

    /// Set whether a member is working or idle
    Activity {
        /// The member
        name: MemberName,
        /// The member's new activity
        activity: ActivityWord,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TeamJoinArgs {
    /// Member name: letters, digits, hyphens and underscores
    pub(crate) name: MemberName,
    /// Agent type
    #[arg(long, value_name = "TYPE", default_value = "general-purpose")]
    pub(crate) agent_type: String,
    /// Model that the member runs
    #[arg(long, default_value = "unknown")]
    pub(crate) model: String,
    /// The member's initial prompt
    #[arg(long, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(crate) prompt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActivityWord {
    /// Working on a turn
    Active,
    /// Waiting for a message
    Idle,
}

impl From<ActivityWord> for Activity {
    fn from(word: ActivityWord) -> Self {
        match word {
            ActivityWord::Active => Self::Active,
            ActivityWord::Idle => Self::Idle,
        }
    }
}
