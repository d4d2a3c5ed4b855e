//! The command line as `clap` reads it. The comments here are the help.

mod approvals;
mod doctor;
mod host;
mod link;
#[cfg(feature = "nats")]
mod org;
mod task;
mod team;
mod ui;
mod up;

use std::ffi::OsString;
use std::path::PathBuf;

use brigade_files::Durability;
use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::approvals::{Approvals, Approve, Deny};
pub(crate) use self::doctor::Doctor;
pub(crate) use self::host::{Down, Ending, Resume, Stop};
pub(crate) use self::link::Link;
#[cfg(feature = "nats")]
pub(crate) use self::org::{
    EngineCommand, OrgAddMember, OrgCommand, OrgFolder, OrgInit, OrgRevoke,
};
pub(crate) use self::task::{GraphFormat, TaskAdd, TaskCommand, TaskList, TaskUpdate};
pub(crate) use self::team::{ActivityWord, TeamCommand, TeamJoin};
pub(crate) use self::ui::Ui;
pub(crate) use self::up::{New, Up};
use crate::{exit, version};
use brigade_host::location::{Address, Location};

/// Coding agents of any vendor on one team
///
/// Brigade works on the files Claude Code's agent teams use, so that what it does is seen by every
/// member, whoever made it. Without a command it shows where you are: the teams, who has unread
/// messages, and which tasks could be begun.
#[derive(Debug, Parser)]
#[command(
    name = "brigade",
    version = version::SHORT,
    long_version = version::LONG,
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

/// The command line as it was meant: Claude Code starts a teammate's program with its own options and
/// no command. `help task add` is what many type for `task add --help`.
pub(crate) fn words(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = given.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    if words.get(1).is_some_and(|word| word == "--agent-id") {
        words.insert(1, "teammate".into());
    }
    words
}

const EXAMPLES: &str = "\
Examples:
  brigade init                                  let Claude Code start teammates of other vendors
  brigade new && brigade up                     a team from a file, of the agents installed here
  brigade team create demo                      make a team and lead it
  brigade spawn bob --agent codex               start an agent as a member of it
  brigade send bob \"please review the parser\"   write to it
  brigade task add \"Write docs\" --owner bob     give it work
  brigade ui                                    see who does what
  brigade down                                  end everybody, and the team";

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::doc_markdown, reason = "the help shows the names of variables as they are")]
pub(crate) struct Global {
    /// Work on this team [env: BRIGADE_TEAM]
    ///
    /// Without it, the only team there is, or that of the brigade.toml of this folder.
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

    /// Find the teams in `files`, or at nats://HOST:PORT [env: BRIGADE_STORE] [default: files]
    ///
    /// An engine is for a team on several hosts. tls:// insists on encryption; several servers stand
    /// with a comma between them. What is said here counts before the `store` of a brigade.toml.
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<Address>,

    /// Be known to the engine by the credentials in this file [env: BRIGADE_CREDS]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) creds: Option<PathBuf>,

    /// Trust an engine that this certificate authority vouches for [env: BRIGADE_CA]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Show the engine this certificate [env: BRIGADE_CERT]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) cert: Option<PathBuf>,

    /// Prove the certificate with this key [env: BRIGADE_KEY]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) key: Option<PathBuf>,

    /// Where the teams live, all things considered.
    #[arg(skip)]
    pub(crate) home: Location,
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
    /// Switch brigade on in Claude Code, and off again
    ///
    /// From then on the lead of a Claude Code session can ask for teammates of other vendors.
    ///
    /// Shows the change to each file as a diff, and asks. Claude Code is told to start its teammates
    /// with brigade, in tmux, and gets an agent type for each agent that is installed; Codex and
    /// Gemini CLI get the team's tools. Everything else in these files stays as it is. Running it
    /// again changes nothing, unless there is something new to tell.
    #[command(after_help = "\
Examples:
  brigade init              look at the change, then say yes or no
  brigade init --yes        do not ask
  brigade init --undo       put everything back as it was")]
    Init {
        /// Make the change without asking
        #[arg(long, short)]
        yes: bool,
        /// Put back every file as it was
        ///
        /// A file that was changed since keeps that change, and loses only what brigade put in. Exit
        /// code 4 says that there is nothing to undo.
        #[arg(long)]
        undo: bool,
    },

    /// Write a first brigade.toml for the repository you stand in
    ///
    /// Looks at what is there: the folder's name becomes the team's, agents that are installed become
    /// its members, and the usual commands of the languages in use are allowed. Every line can be
    /// changed; what is not used is there as a comment. A file that is there already is kept.
    #[command(after_help = "\
Examples:
  brigade new && brigade up --check     begin, and look at what it would be
  brigade new --schema                  with completion for editors")]
    New(New),

    /// List the agents brigade drives, and which are installed
    ///
    /// Tells of each what it can do: whether a message joins the turn that is on or waits for its end,
    /// what keeps it from changing anything before its plan is approved, and what it tells of its use
    /// of the model; and how to install it, if it is not there.
    #[command(after_help = "\
Example:
  brigade agents --json | jq -r '.[] | select(.installed) | .name'")]
    Agents,

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
    /// was shown to the reader's model. With --json each line is a record of the journal, those of
    /// members' work among them. The history of a team that was deleted is still there.
    Log {
        /// Go on with what happens from now on, until interrupted
        #[arg(long, short)]
        follow: bool,
        /// Show also what members' agents say and do
        #[arg(long)]
        work: bool,
    },

    /// Show the team on the whole terminal: members, mail, board, approvals, who worked when
    ///
    /// It shows what happens as it happens, and does what you order: send, add and assign tasks, approve,
    /// start and stop members. `?` shows the keys of where you are. It changes nothing by itself.
    #[command(after_help = "\
Examples:
  brigade ui
  brigade ui --view approvals
  brigade log --json > monday.jsonl && brigade ui --replay monday.jsonl --speed 20")]
    Ui(Ui),

    /// Work on the shared task board
    #[command(subcommand)]
    Task(TaskCommand),

    /// Show the plans and requests for leave that wait for your answer
    ///
    /// Each has a number, which stays the same, and an id; `approve` and `deny` take either. They wait
    /// for as long as it takes, and are for the lead of the team to answer. Exit code 4 says that
    /// nothing waits.
    #[command(after_help = approvals::EXAMPLES)]
    Approvals(Approvals),

    /// Say yes to a plan, or to a request for leave
    ///
    /// What is granted is this one call, as it was asked for; an approved plan is gone on with. A
    /// request is answered once: who comes later is told who was first.
    #[command(after_help = approvals::APPROVE_EXAMPLES)]
    Approve(Approve),

    /// Say no to a plan, or to a request for leave
    ///
    /// The teammate goes on without it, and is told why.
    #[command(after_help = approvals::DENY_EXAMPLES)]
    Deny(Deny),

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

    /// Bring up the team that a file describes
    ///
    /// Makes the team, puts its tasks on the board and starts its members. What is there already stays
    /// as it is, so that a second `up` changes nothing. Members run on when this command has ended, and
    /// when the process that supervises them dies.
    #[command(after_help = "\
Examples:
  brigade new && brigade up             write a brigade.toml, and bring it up
  brigade up --check                    only look whether the file is right
  brigade up --until-done --json        in a script: exit code 0 if every task was done")]
    Up(Up),

    /// Keep the Claude Code files of this host in step with an engine
    ///
    /// Claude Code knows its own files and nothing else. With a link on each host its teammates are of
    /// one team with those of other hosts: mail, tasks and the roster go both ways. What is written
    /// while a host is cut off goes over when it is back. Runs until it is interrupted.
    #[command(after_help = link::EXAMPLES)]
    Link(Link),

    /// Show how the teams on this host are
    ///
    /// Each member is starting, working, idle, waiting for approval, rate-limited, hung or dead; the
    /// last column says what that rests on. Exit code 4 says that no team is up.
    #[command(after_help = "\
Example:
  brigade status --json | jq -r '.[].members[] | select(.liveness == \"dead\") | .name'
  brigade --store nats://engine status --metrics")]
    Status {
        /// Show what an operator watches: how much waits in each mailbox and for how long, the board, and
        /// how the engine is
        #[arg(long)]
        metrics: bool,
    },

    /// Take a team down
    ///
    /// Every member is asked to stop; those that have not left after a while are ended. Then the team
    /// is deleted; its log stays. Nothing is touched that brigade did not start.
    #[command(after_help = "\
Examples:
  brigade down --limit 60 --reason \"enough for today\"
  brigade down --now")]
    Down(Down),

    /// Bring back what was up, after a crash or a reboot
    ///
    /// Starts the supervising process and every member that is not there: each goes on with its agent's
    /// own session, the mail it has not seen and the tasks it had.
    Resume(Resume),

    /// Start an agent as a member of the team
    ///
    /// The agent's own program is started and spoken to by its protocol; its mail becomes its turns.
    /// It runs in the background, or with --place here in this terminal, where what you type goes to it
    /// as its user's words. A member of that name that is there already is gone on with.
    #[command(after_help = "\
Examples:
  brigade spawn bob --agent codex --prompt \"Take a task from the board\"
  brigade --team session-1a2b3c4d spawn bob --agent gemini --plan --place here")]
    Spawn(Spawn),

    /// Ask a member that runs on this host to stop
    ///
    /// It may refuse, and then stays; --now ends it without asking. Its open tasks go back to the board.
    #[command(after_help = "\
Examples:
  brigade stop bob --reason \"the work is done\"
  brigade stop bob --now")]
    Stop(Stop),

    /// Show what a member changed in its worktree
    ///
    /// All since it branched off, committed or not, new files included. Exit code 4 says that there is
    /// nothing.
    #[command(after_help = "\
Example:
  brigade diff alice --stat")]
    Diff {
        /// The member
        name: MemberName,
        /// Only the files, and how much
        #[arg(long)]
        stat: bool,
    },

    /// Look for what is wrong with teams, members and this machine
    ///
    /// Looks at every team of the Claude Code folder, whoever made it, at the members of this host and
    /// at what is installed, and changes nothing. Of each finding it tells where it is, what comes of
    /// it, and what --fix would do or you can. Exit code 1 says that something is to be seen to.
    #[command(after_help = "\
Examples:
  brigade doctor
  brigade doctor --fix
  brigade doctor --json | jq -r '.findings[] | \"\\(.check) \\(.place)\"'")]
    Doctor(Doctor),

    /// Set up the engine for an organisation: servers, credentials, who may do what
    ///
    /// For whoever runs the servers of teams on several hosts. Who can do what is in the credentials, and
    /// the servers see to it: a member sends only as itself, reads only its own mail, and works only on
    /// its own team's board.
    #[cfg(feature = "nats")]
    #[command(subcommand, after_help = org::EXAMPLES)]
    Org(OrgCommand),

    /// Supervise the members of this host
    #[command(hide = true)]
    Supervise,

    /// Be a member that runs on this host
    #[command(hide = true)]
    Play,

    /// Be a teammate that a lead of Claude Code's asked for
    ///
    /// Claude Code starts this in a pane, in place of itself, if `CLAUDE_CODE_TEAMMATE_COMMAND` names
    /// brigade. For an agent type that brigade drives it starts that agent's program, brings it its
    /// mail and shows in the pane what it does; for every other type it becomes the real Claude Code.
    Teammate {
        /// The arguments Claude Code gives to a teammate
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<OsString>,
    },

    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  source <(brigade completions bash)      in this shell; in ~/.bashrc for every one")]
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

/// An agent to be started.
#[derive(Args, Debug)]
pub(crate) struct Spawn {
    /// The member's name
    pub(crate) name: MemberName,
    /// Which agent: codex, gemini, opencode, …, or acp:COMMAND
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    /// Use this model, if not the agent's own choice
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Tell it this first
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Where it runs
    #[arg(long, value_name = "PLACE", default_value = "headless")]
    pub(crate) place: Where,
    /// Let it change nothing until the lead has approved its plan
    #[arg(long)]
    pub(crate) plan: bool,
}

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Where {
    /// In the background; what it would show is in a file
    Headless,
    /// In a window of tmux
    Tmux,
    /// In this terminal, until it leaves or the command is ended
    Here,
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
