//! Progress of a long operation, for the front end to show.

use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_wire::name::{MemberName, TeamName};

use crate::worktree::{Removed, Worktree};

/// How the shutdown of a member ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It agreed, and left.
    Agreed,
    /// It was not running any more.
    WasGone,
    /// It was killed.
    Forced,
    /// It refused, for this reason, and stays.
    Refused(String),
}

/// One step of an operation that takes a while.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A member that is being started is in another state now.
    Member {
        /// The member.
        name: MemberName,
        /// Its state.
        liveness: Liveness,
        /// Where that is known from.
        evidence: String,
    },
    /// A member was asked to stop, and has this long to agree.
    AskedToStop(MemberName, Duration),
    /// A member was asked to stop and refuses; it is stopped all the same.
    Refuses(MemberName, String),
    /// The process of a member was told to end.
    ToldToEnd(MemberName),
    /// The worktree of a stopped member, or its branch, was kept.
    WorktreeKept(MemberName, Removed, Worktree),
    /// A member is stopped, or stays.
    Ended(MemberName, Ended),
    /// A member that is not started here because another host runs it.
    RunsElsewhere(MemberName, String),
    /// A member of a team that is taken down stays, because another host runs it.
    StaysElsewhere(MemberName, String, TeamName),
    /// A program that a member needs is not installed here.
    NotInstalled(String, String),
    /// A deleted team was restored from its journal: members, tasks, unread messages.
    Restored(TeamName, usize, usize, usize),
    /// A member of a restored team was a native Claude Code, which is not started here.
    NativeNotRestored(MemberName),
    /// The lead of the team reads mail only while a teammate that it started itself is there.
    LeadDoesNotListen(TeamName, MemberName),
    /// The NATS servers at these addresses did not answer yet.
    WaitingForServer(Vec<String>),
}

/// Receives the progress of an operation.
pub type Report<'r> = &'r (dyn Fn(Progress) + Send + Sync);

/// A receiver that drops every report.
pub fn silent(_: Progress) {}

/// Receives the lines of a log.
pub type Log<'l> = &'l (dyn Fn(&str) + Send + Sync);
