//! The command line, parsed with `clap`. The doc comments in this module are the text of `--help`.

mod approvals;
mod ask;
mod attach;
mod deferred;
mod demo;
mod doctor;
mod duration;
mod global;
mod history;
mod host;
mod link;
mod logs;
#[cfg(feature = "nats")]
mod org;
mod policy;
mod search;
mod service;
mod steer;
#[cfg(feature = "nats")]
mod store;
mod task;
mod team;
mod trust;
mod ui;
mod up;
mod wait;
mod web;

use std::ffi::OsString;
use std::path::PathBuf;

use brigade_wire::name::MemberName;
use clap::{Args, FromArgMatches as _, Parser, Subcommand};

pub(crate) use self::approvals::{ApprovalsArgs, ApproveArgs, DenyArgs, NewRuleArgs};
pub(crate) use self::ask::AskArgs;
pub(crate) use self::attach::AttachArgs;
pub(crate) use self::deferred::Deferred;
pub(crate) use self::demo::DemoArgs;
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::global::{DurabilityWord, GlobalArgs};
pub(crate) use self::history::{HistoryCommand, HistoryCompactArgs};
pub(crate) use self::host::{
    DownArgs, ResumeArgs, RevokeArgs, ShutdownArgs, SpawnArgs, SpawnPlace, StatusArgs, StopArgs,
};
pub(crate) use self::link::LinkArgs;
pub(crate) use self::logs::LogsArgs;
#[cfg(feature = "nats")]
pub(crate) use self::org::{
    EngineCommand, OrgAddMemberArgs, OrgAssignShardArgs, OrgCommand, OrgFolderArgs, OrgInitArgs,
    OrgRevokeArgs, OrgShardArgs,
};
pub(crate) use self::policy::{PolicyCommand, PolicyTestArgs};
pub(crate) use self::search::SearchArgs;
pub(crate) use self::service::ServiceCommand;
pub(crate) use self::steer::{MembersArgs, RestartArgs};
#[cfg(feature = "nats")]
pub(crate) use self::store::{StoreAddArgs, StoreCommand};
pub(crate) use self::task::{
    GraphFormat, StateWord, TaskAddArgs, TaskArgs, TaskCommand, TaskEditArgs, TaskFileFormat,
    TaskListArgs,
};
pub(crate) use self::team::{ActivityWord, TeamCommand, TeamJoinArgs, UseArgs};
pub(crate) use self::trust::TrustArgs;
pub(crate) use self::ui::UiArgs;
pub(crate) use self::up::{NewArgs, STARTER, UpArgs};
pub(crate) use self::wait::WaitArgs;
pub(crate) use self::web::{WebArgs, WebCommand, WebLinkArgs, WebServeArgs, WebTokenCommand};
use crate::{exit, version};

/// Run coding agents from any vendor as one team
///
/// Brigade works on the files of Claude Code's agent teams, so all members see brigade's changes.
/// Without a command it prints an overview: the teams, members with unread messages, and the tasks
/// that are ready to start.
#[derive(Debug, Parser)]
#[command(
    name = "brigade",
    version = version::SHORT,
    long_version = version::LONG,
    after_help = format!("{EXAMPLES}\n\n{ALIASES}"),
    after_long_help = format!("{EXAMPLES}\n\n{ALIASES}\n\n{}", exit::HELP),
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

impl Cli {
    /// Parses a command line.
    pub(crate) fn parse_line(args: &[OsString]) -> Result<Self, clap::Error> {
        Self::parse_one_command(args).map_or_else(|| Self::try_parse_from(args), Ok)
    }

    /// Parses a command line that begins with the name of a command, and describes only this command to `clap`. Returns `None` if
    /// the line is not valid or asks for help: then `clap` has to know all commands.
    ///
    /// Agents and scripts run a command for each message, and describing all commands takes longer than the rest of it.
    fn parse_one_command(args: &[OsString]) -> Option<Self> {
        let name = args.get(1)?.to_str()?;
        let all =
            deferred::names_only(|| CliCommand::augment_subcommands(clap::Command::new("brigade")));
        let command = GlobalArgs::augment_args(clap::Command::new("brigade"))
            .disable_help_subcommand(true)
            .subcommand(all.find_subcommand(name)?.clone());
        let mut matches = command.try_get_matches_from(args).ok()?;
        Self::from_arg_matches_mut(&mut matches).ok()
    }
}

/// Rewrites command lines that `clap` cannot parse.
///
/// Claude Code starts a teammate with Claude Code's own options and without a command name, so this function
/// inserts `teammate`. It also turns `help task add` into `task add --help`.
pub(crate) fn normalize_args(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = given.collect();
    if args.get(1).is_some_and(|arg| arg == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    if args.get(1).is_some_and(|arg| arg == "--agent-id") {
        args.insert(1, "teammate".into());
    }
    args
}

const EXAMPLES: &str = "\
Examples:
  brigade init                                  let Claude Code start teammates of other vendors
  brigade new && brigade up                     write brigade.toml and start the team it defines
  brigade team create demo                      create a team and lead it
  brigade spawn bob --agent codex               start an agent as a member
  brigade send bob \"please review the parser\"   send bob a message
  brigade task add \"Write docs\" --owner bob     assign bob a task
  brigade ui                                    watch the team
  brigade down                                  stop all members and delete the team";

/// The other names of commands. The help lists them only here.
pub(crate) const ALIASES: &str = "\
Short forms:
  s, ps = status    t, tasks = task    a = approvals    log = logs
  task create = task add    task ls = task list    task update = task edit    task rm = task delete";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Set up Claude Code to use brigade (--undo reverts this)
    ///
    /// Afterwards, the lead of a Claude Code session can start teammates of other vendors.
    ///
    /// Shows a diff of every file it would change and asks for confirmation. Configures Claude Code
    /// to start its teammates through brigade, in tmux, and adds an agent type for each installed
    /// agent. Adds the team's MCP tools to Codex and Gemini CLI. Leaves all other settings in these
    /// files alone. Running it again only adds what is new, such as an agent installed since.
    #[command(after_help = "\
Examples:
  brigade init              show the changes and ask before making them
  brigade init --yes        make the changes without asking
  brigade init --undo       undo the changes")]
    Init {
        /// Make the changes without asking
        #[arg(long, short)]
        yes: bool,
        /// Restore every file to its state before `brigade init`
        ///
        /// If a file was edited since, only brigade's settings are removed and the edits stay. Exits
        /// with code 4 if there is nothing to undo.
        #[arg(long)]
        undo: bool,
    },

    /// Write a brigade.toml for this repository, from a template
    ///
    /// On a terminal, asks for the template, the agents and the team name, unless options give them. In a
    /// pipe it asks nothing: the folder's name becomes the team name (with a number if another file on
    /// this host uses the name), and the installed agents become the members. The usual commands of the
    /// languages in the repository are allowed. You trust the new file (see `brigade trust`). Does not
    /// overwrite an existing file without --force.
    #[command(after_help = "\
Templates:
  starter     A builder and a reviewer; explains every setting in comments
  review      Two agents review the current branch, and one summarizes their findings
  feature     Plan a feature, build it with tests, and review it
  bugfix      Reproduce a bug with a test, fix it, and verify the fix
  research    Two agents answer a question independently, then agree on one answer
  port        Port code to another language, library or version, step by step

Examples:
  brigade new && brigade up --check     write the file and preview the team
  brigade new --template review --agent codex,gemini
  brigade new --schema                  also write a schema for editor completion")]
    New(Deferred<NewArgs>),

    /// Watch a team of scripted agents work for two minutes
    ///
    /// Needs no agent and no model. The agents are scripted; the team's files, mail, board and permission
    /// requests are real, in a temporary folder that is removed at the end. You lead the team in the
    /// dashboard: answer the requests of ben and ada there (`4`, then `a` or `d`). A request that you do not
    /// answer within 40 seconds is approved by the demo. Press `q` to leave. Without a terminal, prints the
    /// log of the demo as text. Does not touch your teams.
    #[command(after_help = "\
Examples:
  brigade demo
  brigade demo --text --speed 10        the log of the demo in about 15 seconds")]
    Demo(Deferred<DemoArgs>),

    /// List supported agents, and whether they are installed and logged in
    ///
    /// Asks each installed program whether you are logged in, for at most five seconds and without starting a
    /// turn: logged out, credentials present, or unknown. Shows for each agent whether new messages are delivered during a turn or after it, what keeps
    /// the agent read-only in plan mode, which usage it reports, and, if it is not installed, the
    /// command that installs it.
    #[command(after_help = "\
Example:
  brigade agents --json | jq -r '.[] | select(.installed) | .name'")]
    Agents,

    /// Create, show and delete teams; add and remove members
    #[command(subcommand)]
    Team(Deferred<TeamCommand>),

    /// Choose your default team
    ///
    /// Sets your default team on this host, for this store. A command uses the team of --team, else of
    /// BRIGADE_TEAM, else of the brigade.toml of the folder, else of the Claude Code session in which it
    /// runs, else your default team, else the only team. If there was a choice, it prints which team it took.
    /// Without a team, shows the team that a command here uses, and why.
    #[command(after_help = team::USE_EXAMPLES)]
    #[expect(clippy::doc_markdown, reason = "the help shows names of variables without backticks")]
    Use(Deferred<UseArgs>),

    /// Send a message to a member
    ///
    /// Once the command succeeds, the message is stored: it appears in the inbox exactly once, even
    /// if this process or the recipient's is killed right afterwards.
    #[command(after_help = "\
Examples:
  brigade send bob \"the tests pass\"
  git diff | brigade send bob - --summary \"my diff\"")]
    Send {
        /// The recipient
        to: String,
        #[command(flatten)]
        message: MessageArgs,
    },

    /// Send a question to a member and print its reply
    ///
    /// The reply is the first message from the member after the question or, if the agent sends none, the
    /// text with which it ends the turn. The question is sent as `brigade send` does.
    #[command(after_help = ask::EXAMPLES)]
    Ask(Deferred<AskArgs>),

    /// Send a message to every other member
    #[command(after_help = "\
Example:
  brigade broadcast \"main is frozen until six\"")]
    Broadcast {
        #[command(flatten)]
        message: MessageArgs,
    },

    /// Read messages
    ///
    /// Shows messages, requests, and the texts with which agents ended their turns. Leaves out notices that
    /// say only that a member is idle, and counts them. Messages stay unread unless you add --mark-read.
    /// Exits with code 4 if there is nothing to show. With --json, prints all entries of the inbox.
    #[command(after_help = "\
Examples:
  brigade inbox --follow
  brigade --as bob inbox --unread --mark-read
  brigade inbox alice --json | jq -r '.[].text'")]
    Inbox(Deferred<InboxArgs>),

    /// Wait until a task is done, a member is idle, or a request or message arrives
    ///
    /// Returns at once if the conditions hold already. Prints what was found on one line. The command is
    /// woken by events of the team; it does not poll.
    #[command(after_help = wait::EXAMPLES)]
    Wait(Deferred<WaitArgs>),

    /// Show what happened in the team
    ///
    /// Prints one line per event, with times of your time zone. The line of a message includes when it was
    /// read and when it was shown to the recipient's model. With --json, prints the journal records,
    /// including records of members' work. The history of a deleted team is still available.
    #[command(alias = "log", after_help = logs::EXAMPLES)]
    Logs(Deferred<LogsArgs>),

    /// Search mail, tasks, and what agents said and did
    ///
    /// Finds records that contain all words. A word matches the beginning of a word, and upper or lower case does
    /// not matter: `parse` finds `Parser`. Text in double quotes matches only whole words. Prints the newest records first, each with
    /// the command that shows it. Searches the team that --team, BRIGADE_TEAM or this folder's brigade.toml
    /// chooses, else every team, also deleted ones. Exits with code 4 if nothing is found.
    #[expect(clippy::doc_markdown, reason = "the help shows names of variables without backticks")]
    #[command(after_help = search::EXAMPLES)]
    Search(Deferred<SearchArgs>),

    /// Show, limit, delete and export the history of teams
    ///
    /// The history is the log of a team: messages, requests, answers, changes of the roster and the board, and
    /// what agents said and did. Brigade keeps all of it, also after a team was deleted, unless you set a limit.
    #[command(subcommand, after_help = history::EXAMPLES)]
    History(Deferred<HistoryCommand>),

    /// Open the terminal dashboard
    ///
    /// Shows members, mail, the task board, approvals and a timeline, updated live. From there you
    /// can send messages, add and assign tasks, approve requests, and start and stop members. Press
    /// `?` for the keys of the current view.
    #[command(after_help = "\
Examples:
  brigade ui
  brigade ui --view approvals
  brigade log --json > monday.jsonl && brigade ui --replay monday.jsonl --speed 20")]
    Ui(Deferred<UiArgs>),

    /// Manage the shared task board
    ///
    /// Without a command, lists the tasks.
    #[command(aliases = ["t", "tasks"])]
    Task(Deferred<TaskArgs>),

    /// List plans and permission requests waiting for you
    ///
    /// Each request has a stable number and an id; `approve` and `deny` accept either. Only the lead
    /// of the team can answer. Requests wait until they are answered. Exits with code 4 if there are none.
    #[command(alias = "a", after_help = approvals::EXAMPLES)]
    Approvals(Deferred<ApprovalsArgs>),

    /// Approve a plan or permission request
    ///
    /// A permission covers only the one call that was requested. With --always, a rule in your own policy
    /// file allows such requests from now on: exactly this command in this folder, unless you choose
    /// another pattern. The command shows the lines that it will write, and which requests of the last 30 days the rule
    /// would also have answered. Some requests no rule may allow; then it gives the reason.
    #[command(after_help = approvals::APPROVE_EXAMPLES)]
    Approve(Deferred<ApproveArgs>),

    /// Deny a plan or permission request
    ///
    /// The teammate receives the reason and continues without the permission. With --always, a rule in your own
    /// policy file denies such requests from now on.
    #[command(after_help = approvals::DENY_EXAMPLES)]
    Deny(Deferred<DenyArgs>),

    /// List, test and remove rules for permission requests
    ///
    /// A rule answers a permission request before you are asked. Rules are in the brigade.toml of a team, and
    /// in your own policy file, which `approve --always` and `deny --always` write. Your rules that deny or ask
    /// are checked first, then those of the team, then your rules that allow.
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(Deferred<PolicyCommand>),

    /// Serve the team's tools to an agent over MCP (standard input and output)
    ///
    /// An agent starts this Model Context Protocol server itself. --team and --as, or their
    /// environment variables, set the agent's team and identity; the agent cannot change them. Without
    /// --team, or if the team does not exist, the agent can create the team and lead it.
    #[command(after_help = "\
Examples:
  gemini mcp add --scope user --trust team brigade mcp --team demo --as bob
  claude mcp add --scope user team -- brigade mcp --team demo --as bob")]
    Mcp,

    /// Start the team defined in brigade.toml
    ///
    /// Creates the team, adds its tasks to the board and starts its members. Anything that already
    /// exists stays unchanged, so a second `up` changes nothing: it lists what differs between the file and
    /// the running team. Members keep running after this command exits, even if their supervisor dies. If you have not trusted the file yet, shows what
    /// it would do and asks (see `brigade trust`).
    #[command(after_help = "\
Examples:
  brigade new && brigade up             write a brigade.toml and start the team
  brigade up --check                    only check the file, and compare it with the running team
  brigade up --recreate builder         restart builder with the settings of the file
  brigade up --until-done --json        for scripts: exit code 0 if every task is done")]
    Up(Deferred<UpArgs>),

    /// Show what a brigade.toml would do, and trust it
    ///
    /// `brigade up` starts only a team file that you trust, and only a trusted file sets `store` and
    /// `creds` for commands in its folder. Shows the programs that the file starts, their permissions,
    /// the server it connects to and the paths it uses, then asks. The answer is for this path and
    /// content: after a change of the file or of a prompt file in its folder, brigade asks again. A
    /// member with `plan = true` (plan mode) changes nothing before its plan is approved.
    #[command(after_help = trust::EXAMPLES)]
    Trust(Deferred<TrustArgs>),

    /// Synchronize this host's Claude Code teams with a NATS server
    ///
    /// Claude Code only reads and writes its own files. With a link on each host, Claude Code members on
    /// different hosts can be in one team: mail, tasks and the roster are synchronized in both
    /// directions. Changes made while a host is disconnected are sent when it reconnects. The link runs in
    /// the background, is restarted if its process dies, and ends with its team. The command returns
    /// after the first synchronization.
    #[command(after_help = link::EXAMPLES)]
    Link(Deferred<LinkArgs>),

    /// Show members, their work, and what waits for you
    ///
    /// For each member: its agent, its state and for how long, its task, unread messages, changes in its worktree, and tokens
    /// and cost of its agent's session, which begin at zero after `stop` and `restart --fresh`. Below them, what waits for you, the most urgent first, each with the command that settles it. Also shows
    /// the links of this host. Exits with code 4 if no team is up.
    #[command(aliases = ["s", "ps"], after_help = host::STATUS_EXAMPLES)]
    Status(Deferred<StatusArgs>),

    /// Stop a team and delete it
    ///
    /// Asks every member to stop and kills those still running after the limit. Then deletes the team
    /// and keeps its log. Does not touch processes that brigade did not start.
    #[command(after_help = "\
Examples:
  brigade down --limit 60 --reason \"enough for today\"
  brigade down --now")]
    Down(Deferred<DownArgs>),

    /// Restart teams after a crash or reboot
    ///
    /// Starts the supervisor and every member that is not running. Each agent continues its own
    /// session, keeps its tasks and receives the messages it has not seen. The members of an ended
    /// Claude Code session wait until the session is resumed, and then join its team again.
    #[command(after_help = "\
Examples:
  brigade resume
  brigade resume session-1a2b3c4d
  brigade resume session-1a2b3c4d --take-over parser")]
    Resume(Deferred<ResumeArgs>),

    /// Serve the HTTP API and a page for browsers
    ///
    /// Listens on this computer only. A browser logs in with the printed link, and a program sends a token.
    /// Everything that they do is done as you, and recorded with the name of the login or token. `brigade web`
    /// stores only digests of tokens.
    #[command(after_help = web::EXAMPLES)]
    Web(Deferred<WebArgs>),

    /// Start this host's teams again at every login
    ///
    /// Installs a systemd user unit, or a launchd agent on macOS (untested), that runs `brigade resume` when you
    /// log in. Teams that you took down stay down.
    #[command(subcommand, after_help = service::EXAMPLES)]
    Service(Deferred<ServiceCommand>),

    /// Start one agent as a team member
    ///
    /// Starts the agent's own program and talks to it over its protocol. Messages to the member
    /// become turns of the agent. The agent runs in the background, or in this terminal with
    /// --place here, where anything you type is sent to the agent as user input. If a member with
    /// this name already exists, the command continues that member. The options are the settings of a
    /// member in brigade.toml.
    #[command(after_help = host::SPAWN_EXAMPLES)]
    Spawn(Deferred<SpawnArgs>),

    /// Watch one member's work, write to it, and answer its requests
    ///
    /// Shows the member's live transcript. Text that you type is sent to the member as a message. Ctrl-C
    /// interrupts the member's turn, Ctrl-D detaches, F1 shows all keys. With --takeover, waits for the end of
    /// the turn and opens the agent's own program on the same session; when you leave it, the member
    /// continues the session and gets the mail that came meanwhile.
    #[command(after_help = attach::EXAMPLES)]
    Attach(Deferred<AttachArgs>),

    /// End a member's turn and keep its session
    ///
    /// Open permission requests of the turn are withdrawn, and commands that the agent was running are ended. If mail
    /// waits, the next turn starts at once. Exits with code 5 if the agent has not ended its turn after 10 seconds.
    #[command(after_help = steer::INTERRUPT_EXAMPLES)]
    Interrupt(Deferred<MembersArgs>),

    /// Let a member finish its turn and start no other
    ///
    /// Mail waits, and permission requests can still be answered. The member stays paused after a restart of its process or
    /// of this host.
    Pause(Deferred<MembersArgs>),

    /// Let a paused member continue
    Unpause(Deferred<MembersArgs>),

    /// Restart a member's agent, in the same session or a new one
    ///
    /// Waits until the agent is ready. A turn that was running continues in the same session.
    #[command(after_help = steer::RESTART_EXAMPLES)]
    Restart(Deferred<RestartArgs>),

    /// Stop members on this host and remove them from the team
    ///
    /// `brigade up` or `brigade spawn` starts a stopped member again, in a new session. To keep the session,
    /// use `brigade pause` or `brigade restart`. The member is asked first: a member that refuses keeps running; a member that does not answer within the limit is
    /// killed. --now kills the member without asking. The unfinished tasks of a stopped member
    /// become unassigned.
    #[command(after_help = "\
Examples:
  brigade stop bob --reason \"the work is done\"
  brigade stop bob ann --now
  brigade stop --all                            the team stays, without its members")]
    Stop(Deferred<StopArgs>),

    /// Show what a member changed in its worktree
    ///
    /// Includes committed and uncommitted changes since the worktree was created, and new files. Exits
    /// with code 4 if there are none.
    #[command(after_help = "\
Examples:
  brigade diff alice --stat
  brigade diff alice --name-only
  brigade diff alice -- src tests/lines.rs")]
    Diff(DiffArgs),

    /// Diagnose teams, members and this machine
    ///
    /// Checks every team in the Claude Code folder, the members on this host and the installed
    /// programs, without changing anything. For each problem it shows the location, the
    /// consequence, and what --fix would do or what you can do. Exits with code 1 if there are
    /// problems.
    #[command(after_help = "\
Examples:
  brigade doctor
  brigade doctor --fix
  brigade doctor --json | jq -r '.findings[] | \"\\(.check) \\(.place)\"'")]
    Doctor(Deferred<DoctorArgs>),

    /// Name NATS servers with their CA and credentials, and choose the default store
    ///
    /// The configuration is `brigade/config.toml` in $XDG_CONFIG_HOME, by default ~/.config. A command
    /// uses the store of --store, else of BRIGADE_STORE, else of a trusted brigade.toml, else the default
    /// that you chose here, else files.
    #[cfg(feature = "nats")]
    #[command(subcommand, after_help = store::EXAMPLES)]
    #[expect(clippy::doc_markdown, reason = "the help shows names of variables without backticks")]
    Store(Deferred<StoreCommand>),

    /// Manage NATS servers and credentials for an organisation
    ///
    /// For operators who run NATS servers for teams on several hosts. The credentials contain each
    /// member's permissions and the servers enforce them: a member can send only as itself, read only
    /// its own mail, and use only its own team's board.
    #[cfg(feature = "nats")]
    #[command(subcommand, after_help = org::EXAMPLES)]
    Org(Deferred<OrgCommand>),

    /// Supervise the members of this host
    #[command(hide = true)]
    Supervise,

    /// Run a member on this host
    #[command(hide = true)]
    Play,

    /// Run as a teammate spawned by a Claude Code lead
    ///
    /// Claude Code runs this command in a pane when `CLAUDE_CODE_TEAMMATE_COMMAND` points to brigade.
    /// For an agent type that brigade supports, it starts that agent, delivers its mail and shows its
    /// activity in the pane. For any other type, it runs the real Claude Code.
    Teammate {
        /// The arguments Claude Code passes to a teammate
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<OsString>,
    },

    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  source <(brigade completions bash)      add this line to ~/.bashrc to make it permanent")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },

    /// Print the manual page, or write all manual pages to a directory
    ///
    /// On a terminal, the program `man` formats the page. In a pipe or a file, it is the source of the page.
    Man {
        /// Directory for the manual pages of all commands
        dir: Option<PathBuf>,
    },
}

/// Arguments of `brigade diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The member
    pub(crate) name: MemberName,
    /// Show only file names and the number of changed lines
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show only the names of changed files
    #[arg(long, conflicts_with = "stat")]
    pub(crate) name_only: bool,
    /// Show only the changes in these files and folders, relative to the worktree
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// Arguments of `brigade inbox`.
#[derive(Args, Debug)]
pub(crate) struct InboxArgs {
    /// The member whose inbox to show [default: you]
    pub(crate) name: Option<MemberName>,
    /// Show only unread messages
    #[arg(long)]
    pub(crate) unread: bool,
    /// Also show notices that say only that a member is idle
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep printing new messages until interrupted; with --json one entry per line
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Mark the shown messages and the left out notices as read (own inbox only)
    #[arg(long)]
    pub(crate) mark_read: bool,
}

/// The text of a message and its summary.
#[derive(Args, Debug)]
pub(crate) struct MessageArgs {
    /// The message; `-` reads it from standard input and strips one trailing newline
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Short summary, shown to people instead of the full text
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

    /// Lists the aliases below a command as `alias = command`.
    fn aliases(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
        let mut names = BTreeSet::new();
        for subcommand in command.get_subcommands() {
            let name = subcommand.get_name();
            for alias in subcommand.get_all_aliases() {
                assert!(names.insert(alias.to_owned()), "{path}{alias} has two meanings");
                found.insert(format!("{path}{alias} = {path}{name}"));
            }
            assert!(names.insert(name.to_owned()), "{path}{name} has two meanings");
            aliases(subcommand, &format!("{path}{name} "), found);
        }
    }

    #[test]
    fn the_help_lists_every_alias_and_none_has_two_meanings() {
        let mut defined = BTreeSet::new();
        aliases(&Cli::command(), "", &mut defined);
        let mut listed = BTreeSet::new();
        for entry in ALIASES.lines().skip(1).flat_map(|line| line.trim().split("    ")) {
            let (names, command) = entry.split_once(" = ").unwrap();
            listed.extend(names.split(", ").map(|name| format!("{name} = {command}")));
        }
        assert_eq!(listed, defined);
    }

    /// Adds the examples in the help of a command and its subcommands.
    fn examples(command: &clap::Command, found: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with("brigade "));
        // An explanation follows after several spaces.
        found.extend(lines.filter_map(|line| line.split("  ").next().map(str::to_owned)));
        for subcommand in command.get_subcommands() {
            examples(subcommand, found);
        }
    }

    #[test]
    fn a_command_is_parsed_alike_with_and_without_the_others() {
        let mut lines = Vec::new();
        examples(&Cli::command(), &mut lines);
        lines.extend(
            [
                "brigade s --json --team demo",
                "brigade t rm 3 4",
                "brigade send bob -- --not-an-option",
                "brigade send bob",
                "brigade logs --nonsense",
                "brigade task",
                "brigade task nonsense",
                "brigade nonsense",
                "brigade inbox --help",
                "brigade --json inbox",
                "brigade",
            ]
            .map(str::to_owned),
        );
        // A time that is relative to now differs between two parsers.
        lines.retain(|line| !line.contains("--since") && !line.contains("--until"));
        let mut alone = 0;
        for line in lines {
            let args: Vec<OsString> =
                crate::complete::split_line(&line).into_iter().map(OsString::from).collect();
            let one = Cli::parse_one_command(&args);
            alone += usize::from(one.is_some());
            let text = |cli: Result<Cli, clap::Error>| {
                cli.map_or_else(|error| format!("{:?}", error.kind()), |cli| format!("{cli:?}"))
            };
            let (given, expected) = (Cli::parse_line(&args), Cli::try_parse_from(&args));
            assert_eq!(text(given), text(expected), "{line}");
        }
        assert!(alone > 80, "{alone}");
    }
}
