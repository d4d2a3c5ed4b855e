//! Progress reports of long operations, which the front end shows.

use std::path::PathBuf;
use std::time::Duration;

use brigade_core::clock::Timestamp;
use brigade_core::pulse::Liveness;
use brigade_wire::name::{MemberName, TeamName};

use crate::worktree::{Removed, Worktree};

/// How the shutdown of a member ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The member agreed and left the team.
    Agreed,
    /// The member's process had already ended.
    WasGone,
    /// The member was killed.
    Forced,
    /// The member refused for this reason, and keeps running.
    Refused(String),
}

/// One step of an operation that takes a while.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The state of a starting member has changed.
    Member {
        /// The member.
        name: MemberName,
        /// The new state of the member.
        liveness: Liveness,
        /// The observation that the state is derived from.
        evidence: String,
    },
    /// A member was asked to stop, and has this long to agree.
    AskedToStop(MemberName, Duration),
    /// A member cannot answer a request to stop, for this reason. It is stopped without an answer.
    CannotAnswer(MemberName, String),
    /// A member refused to stop, with this reason. It will be stopped anyway.
    Refuses(MemberName, String),
    /// SIGTERM was sent to the process of a member.
    ToldToEnd(MemberName),
    /// The worktree or the branch of a stopped member was kept.
    WorktreeKept(MemberName, Removed, Worktree),
    /// The shutdown of a member is complete.
    Ended(MemberName, Ended),
    /// A member was started again, and its inbox has this many unread texts from before it was stopped.
    HasUnreadMail(MemberName, usize),
    /// A member was not started on this host, because another host runs it.
    RunsElsewhere(MemberName, String),
    /// A member was not stopped, because another host runs it.
    StaysElsewhere(MemberName, String, TeamName),
    /// A program that a member needs is not installed on this host.
    NotInstalled(String, String),
    /// A deleted team was restored from its journal, with this many members, tasks and unread messages.
    Restored(TeamName, usize, usize, usize),
    /// A member of a restored team is a native Claude Code teammate, which brigade does not start.
    NativeNotRestored(MemberName),
    /// A member was not restored, because it runs on another host.
    RemoteNotRestored(MemberName),
    /// The agent of a member of a restored team is a command that the roster names. Only a person starts it.
    CommandNotRestored(MemberName, String),
    /// Claude Code leads the team, and reads mail only while a teammate that it started itself is running.
    LeadDoesNotListen(TeamName, MemberName),
    /// Another command brings the team up or down. Its process id is unknown if the command has not written it yet.
    WaitingForCommand(TeamName, Option<u32>),
    /// A person interrupted a command that stops the team when it ends. The members are asked to stop.
    StoppingInterrupted(TeamName),
    /// A person interrupted the command again. The members are killed.
    KillingInterrupted(TeamName),
    /// The key of a member was from this time, which is ahead of the clock. The key now has the current time.
    KeyWasAhead(MemberName, Timestamp),
    /// The link of a team has not finished its first synchronization with the NATS servers at these addresses.
    LinkStarts(TeamName, Vec<String>),
    /// The supervisor and the members of this host had credentials that cannot be used any more. They are restarted with those
    /// in this file.
    NewCredentials(PathBuf),
    /// The NATS servers at these addresses have not answered yet. Brigade waits this long for the first connection.
    WaitingForServer(Vec<String>, Duration),
}

/// Receives the progress of an operation.
pub type ReportProgress<'r> = &'r (dyn Fn(Progress) + Send + Sync);

/// Drops every report.
pub fn silent(_: Progress) {}

/// Receives lines for a log.
pub type Log<'l> = &'l (dyn Fn(&str) + Send + Sync);
