//! `brigade team …`

use std::path::PathBuf;

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

    /// Write a whole team into a file
    ///
    /// Its members, tasks, mail with what was read of it, and the notes of its members, as lines of
    /// JSON: to be kept, or to move the team with `brigade team import`. The team stays as it is; take
    /// it down first if the file is to hold all of it.
    #[command(after_help = "\
Examples:
  brigade team export demo demo.team
  brigade --store nats://engine team export demo - | gzip > demo.team.gz")]
    Export {
        /// Which one
        name: TeamName,
        /// Where to; - for standard output. A file that is there is kept
        file: PathBuf,
    },

    /// Make a team of such a file, here or elsewhere
    ///
    /// A team that is there is never overwritten. What nobody had read is unread, once; times in the log
    /// are those of the import. An import that was cut off is gone on with by running it again.
    #[command(after_help = "\
Examples:
  brigade --store nats://engine team import demo.team
  brigade team import demo.team --rename copy")]
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Make it under another name
        #[arg(long, value_name = "NAME")]
        rename: Option<TeamName>,
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
