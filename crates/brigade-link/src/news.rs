//! What a link says of its doings.

use std::fmt;

use serde::Serialize;

/// One thing a link did, or could not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
#[non_exhaustive]
pub enum News {
    /// A team was made on one side, after that of the other.
    Made {
        /// On which.
        side: &'static str,
    },
    /// A member of this host is known to the others.
    Joined {
        /// Who.
        member: String,
    },
    /// A member of another host is known here.
    Mirrored {
        /// Who.
        member: String,
        /// Where it lives, if that is said.
        home: Option<String>,
    },
    /// A member that left on one side left on the other.
    Left {
        /// Who.
        member: String,
    },
    /// A message went to another host.
    Out {
        /// From whom.
        from: String,
        /// To whom.
        to: String,
        /// Which.
        id: String,
    },
    /// A message came from another host.
    In {
        /// From whom.
        from: String,
        /// To whom.
        to: String,
        /// Which.
        id: String,
    },
    /// A message was not carried.
    Refused {
        /// From whom it says it is.
        from: String,
        /// To whom.
        to: String,
        /// Why not.
        why: String,
    },
    /// A task of this host is on the board of all.
    TaskOut {
        /// Its number.
        id: u64,
        /// Its number here before, if it had another.
        was: Option<u64>,
    },
    /// A task of the board of all is as it is there.
    TaskIn {
        /// Its number.
        id: u64,
    },
    /// A task was deleted on one side and then on the other.
    TaskGone {
        /// Its number.
        id: u64,
    },
    /// A change made here did not count: somebody was first.
    Lost {
        /// Which task.
        id: u64,
        /// Who was told.
        told: Option<String>,
    },
    /// The far store cannot be reached. What happens here waits.
    Cut {
        /// Why.
        why: String,
    },
    /// The far store is there again.
    Back,
    /// Something that a person may want to see to.
    Trouble {
        /// What.
        why: String,
    },
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made { side } => write!(f, "made the team {side}"),
            Self::Joined { member } => write!(f, "{member} lives here"),
            Self::Mirrored { member, home: Some(home) } => write!(f, "{member} lives on {home}"),
            Self::Mirrored { member, home: None } => write!(f, "{member} lives elsewhere"),
            Self::Left { member } => write!(f, "{member} left"),
            Self::Out { from, to, .. } => write!(f, "mail out: {from} to {to}"),
            Self::In { from, to, .. } => write!(f, "mail in: {from} to {to}"),
            Self::Refused { from, to, why } => write!(f, "not carried: {from} to {to}: {why}"),
            Self::TaskOut { id, was: None } => write!(f, "task {id} out"),
            Self::TaskOut { id, was: Some(was) } => write!(f, "task {was} out, as number {id}"),
            Self::TaskIn { id } => write!(f, "task {id} in"),
            Self::TaskGone { id } => write!(f, "task {id} deleted"),
            Self::Lost { id, told: Some(told) } => {
                write!(f, "a change to task {id} did not count; {told} was told")
            }
            Self::Lost { id, told: None } => write!(f, "a change to task {id} did not count"),
            Self::Cut { why } => write!(f, "cut off: {why}; what happens here waits"),
            Self::Back => f.write_str("reached the engine again"),
            Self::Trouble { why } => f.write_str(why),
        }
    }
}
