//! Errors of this crate: what failed, why, and hints on what to do next.
//!
//! The front end decides how to show the errors.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use brigade_core::store::StoreError;
use brigade_core::text;
use brigade_wire::name::TaskId;
use thiserror::Error;

use crate::suggest;

/// The kind of an error, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operation was refused or failed.
    Failed,
    /// The command line, or an environment variable that replaces an option, is invalid.
    Usage,
    /// There is nothing to do, for example because no team is up.
    Nothing,
    /// A part of the operation was done. Repeating the operation would do that part again.
    Partly,
    /// Another process holds a lock.
    Locked,
    /// The program that reads the output closed the pipe. This is not shown as an error.
    BrokenPipe,
}

/// An error with its kind and hints.
#[derive(Debug, Error)]
#[error("{source}")]
pub struct HostError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What failed.
    pub source: Box<dyn Error + Send + Sync>,
    /// Suggested next steps.
    pub hints: Vec<String>,
    /// The hint for an agent, if it differs from `hints`. Agents call MCP tools instead of commands.
    pub agent_hint: Option<String>,
}

/// The errors that this crate itself raises.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum Trouble {
    #[error("there is no team yet")]
    NoTeams,
    #[error(
        "Claude Code's {} ended: team {}",
        if teams.len() == 1 { "session has" } else { "sessions have" },
        .teams.join(", team ")
    )]
    SessionEnded { teams: Vec<String> },
    #[error("team {team}, which you chose with `brigade use`, is not running or does not exist")]
    DefaultTeamGone { team: String },
    #[error("there are several teams: {}", .0.join(", "))]
    SeveralTeams(Vec<String>),
    #[error("Claude Code leads team {team}; name the member you act as")]
    WhoAreYou { team: String },
    #[error("unknown agent {name:?}")]
    NoAgent { name: String },
    #[error("Claude Code ended without leaving the team ({how})")]
    ClaudeEnded { how: String },
    #[error("cannot find the Claude Code program")]
    NoClaude,
    #[error("no member {name} in team {team}")]
    NoMember { name: String, team: String },
    #[error("no member {name} in any of {teams} teams")]
    NoMemberOfTeams { name: String, teams: usize },
    #[error("cannot {doing}")]
    Io { doing: String, source: io::Error },
    #[error("no team is up on this host")]
    NoneUp,
    #[error("there are no members to restart on this host")]
    NothingToResume,
    #[error("not installed: {}", .names.join(", "))]
    NotInstalled { names: Vec<String> },
    #[error("cannot create a worktree: {} {reason}", dir.display())]
    NoCommit { dir: PathBuf, reason: &'static str },
    #[error(
        "cannot create a worktree: files in {} use the {} {}, which only this repository configures",
        dir.display(),
        if filters.len() == 1 { "filter" } else { "filters" },
        filters.join(", ")
    )]
    DisabledFilters { dir: PathBuf, filters: Vec<String> },
    #[error("cannot read {}", task_names(.tasks))]
    UnreadableTasks { tasks: Vec<TaskId> },
    #[error("not started: {}", .names.join(", "))]
    DidNotStart { names: Vec<String> },
    #[error("{name} refused to stop: {why}")]
    Refuses { name: String, why: String },
    #[error("cannot stop {}: {}", .names.join(", "), .why)]
    StillRunning { names: Vec<String>, why: String },
    #[error("another command has been bringing team {team} up or down for {seconds} s")]
    TeamLocked { team: String, seconds: u64 },
    #[error("{name} has no worktree of its own")]
    NoWorktree { name: String },
    #[error("branch {branch} of the worktree has no folder {}", folder.display())]
    NotInWorktree { folder: PathBuf, branch: String },
    #[error("{} is not a worktree of the team's repository", dir.display())]
    NotAWorktree { dir: PathBuf },
    #[error("the folder {} leads to {} and no longer to {}", dir.display(), now.display(), recorded.display())]
    FolderChanged { dir: PathBuf, now: PathBuf, recorded: PathBuf },
    #[error("git: {said}")]
    Git { said: String },
    #[error("the supervisor did not start")]
    NoSupervisor,
    #[error("team {team} is not up on this host")]
    NotUp { team: String },
    #[error("{name} of team {team} does not run on this host")]
    NotHere { name: String, team: String },
    #[error("{name} of team {team} was stopped {ago} ago")]
    WasStopped { name: String, team: String, ago: String },
    #[error("{name} of team {team} is not running")]
    NotRunning { name: String, team: String },
    #[error("{name} did not do it: {why}")]
    NotSteered { name: String, why: String },
    #[error("no member {name} runs on this host")]
    NotOnHost { name: String },
    #[error("process {pid} already runs {name} of team {team} on this host")]
    RunsAlready { name: String, team: String, pid: u32 },
    #[error("{name} had already taken another answer to {id}; this one has no effect")]
    OtherAnswer { name: String, id: String },
    #[error("request {number} of {from} was already answered")]
    AnsweredBefore { number: usize, from: String },
    #[error("{from} no longer waits for an answer to request {number}")]
    RequestWithdrawn { number: usize, from: String },
    #[error("only a person may act beside Claude Code, which leads team {team}")]
    NotAPerson { team: String },
    #[error("only a person may {what}")]
    PersonOnly { what: &'static str },
    #[error("{} exists, and brigade did not write it", path.display())]
    ForeignService { path: PathBuf },
    #[error("there is no home directory, so there is no place for your rules")]
    NoConfigDir,
    #[error("{} is not valid: {why}", path.display())]
    BadPolicy { path: PathBuf, why: String },
    #[error("your policy file has no rule {number}")]
    NoPersonalRule { number: usize },
    #[error("brigade does not lead team {team} on this host, so no rule applies to it")]
    RulesNotApplied { team: String },
    #[error("Claude Code runs {name} of team {team}, so only Claude Code can {what}")]
    ClaudeRuns { name: String, team: String, what: &'static str },
    #[error("a running Claude Code session leads team {team}")]
    ClaudeLeads { team: String },
    #[error("brigade already leads team {team}")]
    IsOurs { team: String },
    #[error("brigade runs members of team {team} on this host")]
    RunsMembers { team: String },
    #[error("only Claude Code names its teams like {team}")]
    SessionName { team: String },
    #[error("a new member needs an agent")]
    AgentNeeded,
    #[error("no member {name} of team {team} whose settings could be copied")]
    NoMemberLike { name: String, team: String },
    #[error("{why}")]
    BadPlace { why: String },
    #[error("{why}")]
    BadPrompt { why: String },
    #[error("there is no folder {}", path.display())]
    NoFolder { path: PathBuf },
    #[error("the rule {pattern:?} can never allow a command: {reason}")]
    NeverAllows { pattern: String, reason: String },
    #[error("{name:?} is not the name of a variable")]
    NotAVariable { name: String },
    #[error("a member in this terminal has no supervisor, which {} needs", .options.join(", "))]
    NotInTerminal { options: Vec<&'static str> },
    #[error(
        "Claude Code leads team {team}, so only Claude Code can start {name} as a native member"
    )]
    NativeByClaude { name: String, team: String },
    #[error("{name} already runs on this host with other settings: {difference}")]
    OtherMember { name: String, difference: String },
    #[error("team {team} was not created by brigade, so brigade cannot lead it")]
    NotOurs { team: String },
    #[cfg(not(feature = "nats"))]
    #[error("this brigade was built without NATS support and cannot connect to {servers}")]
    NoEngine { servers: String },
    #[error("{} cannot join a team on NATS: Claude Code works in files of this host", .names.join(", "))]
    NativeInEngine { names: Vec<String> },
    #[error("{name} is the name of the lead of team {team}; no member can have it")]
    LeadsIt { name: String, team: String },
    #[error("{name} of team {team} runs on another host, {host}")]
    Elsewhere { name: String, team: String, host: String },
    #[error("cannot find the brigade program itself")]
    NoProgram,
    #[error("{} is not trusted", path.display())]
    Untrusted { path: PathBuf },
    #[error("{} has changed since you trusted it", path.display())]
    FileChanged { path: PathBuf },
    #[error("the file refers to {} outside its folder", text::count(*count, "path"))]
    OutsideNotAccepted { count: usize },
    #[error("only a person may trust a team file")]
    TrustByAgent,
    #[error("team {team} already exists and belongs to {}", owner.display())]
    OtherOwner { team: String, owner: PathBuf },
    #[error(
        "{} describes team {team}, but that team belongs to {}",
        file.display(),
        owner.display()
    )]
    FolderOfOther { team: String, file: PathBuf, owner: PathBuf },
    #[error("cannot tell which team {} describes", file.display())]
    UnclearFolder { file: PathBuf },
    #[error("team {team} exists neither on this host nor at {servers}")]
    NoTeamToLink { team: String, servers: String },
    #[error("the credentials are for team {of}, not for team {team}")]
    CredentialsOfOther { team: String, of: String },
    #[error("there is no team on the NATS server")]
    NoTeamOnServer,
    #[error("another process on this host already links team {team}")]
    LinkedAlready { team: String },
    #[error("team {team} is not linked on this host")]
    NotLinked { team: String },
    #[error("cannot link team {team}: {why}")]
    LinkFailed { team: String, why: String },
    #[error("the link of team {team} ended at once, because the team has ended")]
    LinkEnded { team: String },
    #[error("team {team} of {} is not up", file.display())]
    FolderNotStarted { team: String, file: PathBuf },
    #[error("the credentials are for {}, not for {name}", .members.join(", "))]
    NotInCredentials { name: String, members: Vec<String> },
    #[error("{name} is not on the roster of team {team}, and these credentials cannot add it")]
    NotOnRoster { name: String, team: String },
    #[error("the credentials are for several members: {}", .members.join(", "))]
    WhichMember { members: Vec<String> },
    #[error("no reply: {why}")]
    NoReply { why: String },
    #[error("there is nothing to wait for")]
    NoCondition,
    #[error("team {team} has no tasks to wait for")]
    NoTasks { team: String },
    #[error("there is no store named {name:?}")]
    NoStore { name: String },
    #[error("{} is not valid: {why}", path.display())]
    BadConfig { path: PathBuf, why: String },
    #[error("a client certificate needs its private key: give both --cert and --key, or neither")]
    HalfClient,
    /// The server comes from a `brigade.toml`, so brigade does not send it the credentials from the environment.
    #[error(
        "brigade does not send the credentials in {} to a server that only a brigade.toml names",
        crate::variables::CREDS
    )]
    CredsForAFile,
}

impl HostError {
    /// Creates an error of the given kind.
    pub fn new(kind: ErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into(), hints: Vec::new(), agent_hint: None }
    }

    /// Creates an error of the kind [`ErrorKind::Failed`].
    pub fn failed(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Failed, source)
    }

    /// Creates an error of the kind [`ErrorKind::Usage`].
    pub fn usage(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Usage, source)
    }

    /// Returns whether the connection to the NATS server failed.
    pub fn is_unreachable(&self) -> bool {
        let error = self.source.downcast_ref();
        matches!(error, Some(StoreError::Engine { doing, .. }) if doing.starts_with("connect"))
    }

    /// Returns whether the connection to the NATS server failed, and a later attempt may succeed.
    #[cfg(feature = "nats")]
    pub fn is_temporary(&self) -> bool {
        let error = self.source.downcast_ref();
        let failure = error.and_then(brigade_nats::connect_error::ConnectFailure::find);
        failure.is_some_and(|failure| !failure.is_final())
    }

    /// Returns false, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub fn is_temporary(&self) -> bool {
        false
    }

    /// Adds a hint on what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the hint for an agent. An empty hint means that agents get no hint.
    pub fn agent_hint(self, hint: impl Into<String>) -> Self {
        Self { agent_hint: Some(hint.into()), ..self }
    }

    /// Renders the error for an agent, with its causes and the agent's hint.
    pub fn to_agent_text(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source.source();
        while let Some(error) = cause {
            let _infallible = write!(text, ": {error}");
            cause = error.source();
        }
        let hints = self.agent_hint.as_slice();
        let hints = if hints.is_empty() { self.hints.as_slice() } else { hints };
        for hint in hints.iter().filter(|hint| !hint.is_empty()) {
            let _infallible = write!(text, "; {hint}");
        }
        text
    }

    /// Renders the error and its hints on one line.
    pub fn to_one_line(&self) -> String {
        let mut text = self.to_string();
        for hint in &self.hints {
            let _infallible = write!(text, "; {hint}");
        }
        text::one_line(&text)
    }
}

/// Converts an I/O error; `doing` completes the message "cannot …".
pub fn failed(doing: impl Into<String>, source: io::Error) -> HostError {
    HostError::failed(Trouble::Io { doing: doing.into(), source })
}

/// Converts an I/O error on a file; `doing` and the path complete the message "cannot …".
pub fn file_failed(doing: &str, path: &Path, source: io::Error) -> HostError {
    failed(format!("{doing} {}", path.display()), source)
}

/// Converts an error from writing the output. A closed pipe becomes [`ErrorKind::BrokenPipe`].
pub fn output_failed(source: io::Error) -> HostError {
    if source.kind() == io::ErrorKind::BrokenPipe {
        return HostError::new(ErrorKind::BrokenPipe, source);
    }
    failed("write the output", source)
}

/// Returns the hint that lists the members of a team.
pub(crate) fn members_hint(members: &[String]) -> String {
    format!("members: {}", members.join(", "))
}

/// Returns the hint for a name that no member of the team has: a similar name, and all members.
pub fn no_member_hint(name: &str, members: &[String]) -> String {
    format!("{}{}", suggest::question(name, members), members_hint(members))
}

fn task_names(tasks: &[TaskId]) -> String {
    let ids: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let noun = if ids.len() == 1 { "task" } else { "tasks" };
    format!("{noun} {}", ids.join(", "))
}
