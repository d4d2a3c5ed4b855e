//! The command line as `clap` reads it. The comments here are the help.

mod task;
mod team;

use std::path::PathBuf;

use brigade_core::store::file::Durability;
use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::task::{GraphFormat, TaskAdd, TaskCommand, TaskList, TaskUpdate};
pub(crate) use self::team::{ActivityWord, TeamCommand, TeamJoin};
use crate::exit;

/// Coding agents of any vendor on one team
///
/// Brigade works on the files Claude Code's agent teams use, so that what it does is seen by every
/// member, whoever made it. Without a command it shows where you are: the teams, who has unread
/// messages, and which tasks could be begun.
#[derive(Debug, Parser)]
#[command(
    name = "brigade",
    version,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP),
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  brigade team create demo              make a team and lead it
  brigade team join bob                 add a member
  brigade send bob \"please review\"      write to it
  brigade --as bob inbox --mark-read    be bob, and read it
  brigade task add \"Write the docs\"     put work on the board
  brigade task graph                    see what waits for what";

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::doc_markdown, reason = "the help shows the names of variables as they are")]
pub(crate) struct Global {
    /// Work on this team [env: BRIGADE_TEAM]
    ///
    /// Without it, the only team there is.
    #[arg(long, global = true, value_name = "TEAM")]
    pub(crate) team: Option<TeamName>,

    /// Act as this member [env: BRIGADE_AS]
    ///
    /// Without it, `team-lead` in a team that brigade created; in a team of Claude Code you have to
    /// say who you are. Commands that only look do not ask.
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(crate) me: Option<MemberName>,

    /// Find the teams in this folder of Claude Code [env: CLAUDE_CONFIG_DIR] [default: ~/.claude]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) claude_dir: Option<PathBuf>,

    /// Print JSON instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Choose what an acknowledged message survives [env: BRIGADE_DURABILITY] [default: process]
    #[arg(long, global = true, value_name = "WHAT")]
    pub(crate) durability: Option<DurabilityWord>,
}

/// What an acknowledged message survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityWord {
    /// It survives kill -9 of any process, at any moment
    Process,
    /// It also survives the loss of power: it is synced to the disk before it is acknowledged, which
    /// takes about one fsync longer
    Power,
}

impl From<DurabilityWord> for Durability {
    fn from(word: DurabilityWord) -> Self {
        match word {
            DurabilityWord::Process => Self::Process,
            DurabilityWord::Power => Self::Power,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, show and delete teams; join and leave them
    #[command(subcommand)]
    Team(TeamCommand),

    /// Send a message to a member
    ///
    /// When the command succeeds the message is safe: it will stand in the inbox exactly once,
    /// even if this process, or the reader's, is killed the next moment.
    #[command(after_help = "\
Examples:
  brigade send bob \"the tests pass\"
  git diff | brigade send bob - --summary \"my diff\"")]
    Send {
        /// The member it is for
        to: String,
        #[command(flatten)]
        words: MessageText,
    },

    /// Send a message to every other member
    #[command(after_help = "\
Example:
  brigade broadcast \"main is frozen until six\"")]
    Broadcast {
        #[command(flatten)]
        words: MessageText,
    },

    /// Show the messages in an inbox
    ///
    /// Looking marks nothing. Exit code 4 says that there is nothing to show.
    #[command(after_help = "\
Examples:
  brigade --as bob inbox --unread --mark-read
  brigade inbox alice --json | jq -r '.[].text'")]
    Inbox {
        /// Whose inbox; yours if not given
        name: Option<MemberName>,
        /// Show only what is not marked read
        #[arg(long)]
        unread: bool,
        /// Mark what is shown as read; only in your own inbox
        #[arg(long)]
        mark_read: bool,
    },

    /// Show what happened in the team
    ///
    /// One line for each thing that happened; a message's line says when it was read, and when it
    /// was shown to the reader's model. With --json each line is a record of the journal. The
    /// history of a team that was deleted is still there.
    Log {
        /// Go on with what happens from now on, until interrupted
        #[arg(long, short)]
        follow: bool,
    },

    /// Work on the shared task board
    #[command(subcommand)]
    Task(TaskCommand),

    /// Serve the team's tools to an agent, on standard input and output
    ///
    /// This is a server for the Model Context Protocol: an agent's program starts it and speaks
    /// with it. Who the agent is in which team is said here, by --team and --as or their variables,
    /// and nothing the agent says changes it. Without a team, or with one that is not there, the
    /// agent may create it and lead it.
    #[command(after_help = "\
Examples:
  gemini mcp add --scope user --trust team brigade mcp --team demo --as bob
  claude mcp add --scope user team -- brigade mcp --team demo --as bob")]
    Mcp,

    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  brigade completions bash > ~/.local/share/bash-completion/completions/brigade")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },

    /// Print the manual page, or write all of them into a directory
    Man {
        /// Where to write the pages of all commands
        dir: Option<PathBuf>,
    },
}

/// What to say.
#[derive(Args, Debug)]
pub(crate) struct MessageText {
    /// The message; `-` reads it from standard input, less one line break at its end
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Give a few words that people see in its place
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
}
