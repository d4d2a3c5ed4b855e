//! `brigade team …`

use brigade_core::roster::Activity;
use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Create a team and lead it
    #[command(after_help = "\
Example:
  brigade team create demo --description \"Ship the parser\"")]
    Create {
        /// Its name: a-z, 0-9 and hyphens
        name: TeamName,
        /// Say what it is for
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            allow_hyphen_values = true
        )]
        description: String,
    },

    /// List the teams there are
    List,

    /// Show a team and its members
    Show {
        /// Which one; the team of --team if not given
        name: Option<TeamName>,
    },

    /// Delete a team: its members, inboxes and board
    ///
    /// Refused while members are at work or Claude Code runs it. Its history stays, see `brigade log`.
    Delete {
        /// Which one; the team of --team if not given
        name: Option<TeamName>,
        /// Delete it even if members are at work, or Claude Code runs it
        #[arg(long)]
        force: bool,
    },

    /// Add a member to the team
    ///
    /// This only puts it on the roster, so that it can be written to and own tasks. It starts
    /// nothing.
    Join(TeamJoin),

    /// Take a member off the team, and give its open tasks back
    Leave {
        /// Who leaves
        name: MemberName,
    },

    /// Say whether a member is at work
    Activity {
        /// Who
        name: MemberName,
        /// What it does
        activity: ActivityWord,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TeamJoin {
    /// Its name: letters, digits, hyphens and underscores
    pub(crate) name: MemberName,
    /// Say what kind of agent it is
    #[arg(long, value_name = "TYPE", default_value = "general-purpose")]
    pub(crate) agent_type: String,
    /// Say which model it runs
    #[arg(long, default_value = "unknown")]
    pub(crate) model: String,
    /// Say what it was told at the start
    #[arg(long, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(crate) prompt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActivityWord {
    /// It is in a turn
    Active,
    /// It waits for a message
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
