//! Progress of a long operation, for the front end to show.

use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_wire::name::{MemberName, TeamName};

use crate::worktree::{Removed, Worktree};

/// How the shutdown of a member ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It agreed, and left the team.
    Agreed,
    /// It was not running any more.
    WasGone,
    /// It was killed.
    Forced,
    /// It refused for this reason, and keeps running.
    Refused(String),
}

/// One step of an operation that takes a while.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The state of a starting member has changed.
    Member {
        /// The member.
        name: MemberName,
        /// Its state.
        liveness: Liveness,
        /// The observation that the state is derived from.
        evidence: String,
    },
    /// A member was asked to stop. It has this long to agree.
    AskedToStop(MemberName, Duration),
    /// A member refused to stop, with this reason. It is stopped anyway.
    Refuses(MemberName, String),
    /// The process of a member got SIGTERM.
    ToldToEnd(MemberName),
    /// The worktree of a stopped member, or its branch, was kept.
    WorktreeKept(MemberName, Removed, Worktree),
    /// The shutdown of a member is complete.
    Ended(MemberName, Ended),
    /// A member was not started here because another host runs it.
    RunsElsewhere(MemberName, String),
    /// A member was not stopped because another host runs it.
    StaysElsewhere(MemberName, String, TeamName),
    /// A program that a member needs is not installed here.
    NotInstalled(String, String),
    /// A deleted team was restored from its journal, with these numbers of members, tasks and unread messages.
    Restored(TeamName, usize, usize, usize),
    /// A member of a restored team was a native Claude Code, which brigade does not start.
    NativeNotRestored(MemberName),
    /// The lead of the team reads mail only while a teammate that it started itself is running.
    LeadDoesNotListen(TeamName, MemberName),
    /// The NATS servers at these addresses have not answered yet.
    WaitingForServer(Vec<String>),
}

/// Receives the progress of an operation.
pub type ReportProgress<'r> = &'r (dyn Fn(Progress) + Send + Sync);

/// A receiver that drops every report.
pub fn silent(_: Progress) {}

/// Receives the lines of a log.
pub type Log<'l> = &'l (dyn Fn(&str) + Send + Sync);
