//! The events that a link reports.

use std::fmt;

use brigade_core::text;
use serde::Serialize;

/// Something that a link did or could not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
#[non_exhaustive]
pub enum LinkEvent {
    /// The team existed only in the files or only in the shared store, and the link created it in
    /// the other one.
    Made {
        /// Where the team was created.
        side: &'static str,
    },
    /// A member on this host was added to the shared roster.
    Joined {
        /// The member.
        member: String,
    },
    /// A member on another host was added to the local roster.
    Mirrored {
        /// The member.
        member: String,
        /// The member's host, if known.
        home: Option<String>,
    },
    /// A member was removed from one roster, and the link removed the member from the other roster
    /// too.
    Left {
        /// The member.
        member: String,
    },
    /// A message was sent to another host.
    Out {
        /// The sender.
        from: String,
        /// The recipient.
        to: String,
        /// The message id.
        id: String,
    },
    /// A message was received from another host.
    In {
        /// The sender.
        from: String,
        /// The recipient.
        to: String,
        /// The message id.
        id: String,
    },
    /// A message was not forwarded.
    Refused {
        /// The claimed sender.
        from: String,
        /// The recipient.
        to: String,
        /// The reason.
        why: String,
    },
    /// A task created or changed on this host was written to the shared board.
    TaskOut {
        /// The task's number.
        id: u64,
        /// The task's previous number on this host, if it was renumbered.
        was: Option<u64>,
    },
    /// A task was copied from the shared board to this host.
    TaskIn {
        /// The task's number.
        id: u64,
    },
    /// A task was deleted from one board, and the link deleted the task from the other board too.
    TaskGone {
        /// The task's number.
        id: u64,
    },
    /// A local change to a task was rejected, because the task was changed in the shared store first.
    Lost {
        /// The task's number.
        id: u64,
        /// The member that was informed.
        told: Option<String>,
    },
    /// The files and the shared store are synchronized, for the first time or with other members than
    /// before.
    Synced {
        /// The members on this host.
        local: Vec<String>,
        /// The members on other hosts.
        remote: Vec<String>,
    },
    /// The team has ended on this host, where its lead ran. A member on another host was asked to stop.
    AskedToStop {
        /// The member.
        member: String,
    },
    /// The link deleted its copy of a team that has ended.
    Deleted {
        /// Where the copy was deleted.
        side: &'static str,
    },
    /// The shared store cannot be reached. Local changes are sent after reconnecting.
    Cut {
        /// The reason.
        why: String,
    },
    /// The shared store can be reached again.
    Back,
    /// A problem that may need a person's attention.
    Trouble {
        /// The problem.
        why: String,
    },
}

impl fmt::Display for LinkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made { side } => write!(f, "created the team {side}"),
            Self::Joined { member } => write!(f, "{member} runs on this host"),
            Self::Mirrored { member, home: Some(home) } => {
                write!(f, "{member} runs on host {home}")
            }
            Self::Mirrored { member, home: None } => write!(f, "{member} runs on another host"),
            Self::Left { member } => write!(f, "{member} left"),
            Self::Out { from, to, .. } => write!(f, "mail out: {from} to {to}"),
            Self::In { from, to, .. } => write!(f, "mail in: {from} to {to}"),
            Self::Refused { from, to, why } => {
                write!(f, "mail not forwarded: {from} to {to}: {why}")
            }
            Self::TaskOut { id, was: None } => write!(f, "task {id} sent"),
            Self::TaskOut { id, was: Some(was) } => write!(f, "task {was} sent as task {id}"),
            Self::TaskIn { id } => write!(f, "task {id} received"),
            Self::TaskGone { id } => write!(f, "task {id} deleted"),
            Self::Lost { id, told: Some(told) } => {
                write!(f, "a change to task {id} was rejected; {told} was informed")
            }
            Self::Lost { id, told: None } => write!(f, "a change to task {id} was rejected"),
            Self::Synced { local, remote } => {
                let (here, others) = (text::count(local.len(), "member"), remote.len());
                write!(f, "synchronized: {here} on this host, {others} on other hosts")
            }
            Self::AskedToStop { member } => write!(f, "asked {member} to stop: the team has ended"),
            Self::Deleted { side } => write!(f, "deleted the team {side}"),
            Self::Cut { why } => {
                write!(f, "connection lost: {why}; local changes are sent after reconnecting")
            }
            Self::Back => f.write_str("reconnected to the NATS store"),
            Self::Trouble { why } => f.write_str(why),
        }
    }
}
