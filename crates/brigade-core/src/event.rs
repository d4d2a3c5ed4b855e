//! The events of a team, as recorded in the journal and reported by a watch.
//!
//! ```
//! use brigade_core::event::Event;
//! use brigade_core::mail;
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let mut watch = lead.store.watch(&lead.team).await?;
//! mail::send(&lead, "bob", "hello").await?;
//! let record = watch.next().await.ok_or("the watch has ended")?;
//! assert!(matches!(&record.event, Event::Sent { to, .. } if to == "bob"));
//! # Ok(())
//! # }
//! ```

mod about;
mod authenticated;
mod text;
mod topic;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use brigade_wire::inbox::with_message;
use brigade_wire::member::Member;
use brigade_wire::message::Message;
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

pub use self::about::RecordKind;
pub use self::authenticated::{
    Authenticated, EventAuthor, Record, RefusedEvent, RefusedEvents, WITHDRAWN,
};
pub use self::topic::{Topic, TopicKind};
use crate::hash::Fnv;
use crate::rights::EventKind;
pub use crate::work_event::{TurnOutcome, WorkEvent};

/// An event as it was recorded. Its author has not been checked: see [`Record`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UncheckedRecord {
    /// When the event was recorded. Other programs' actions are recorded slightly after they happen.
    pub at: Timestamp,
    /// The member that acted, if it acted through brigade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What happened.
    pub event: Event,
}

impl UncheckedRecord {
    /// Returns whether the record belongs to the team that was created at `created`, not to an earlier team with
    /// the same name. `created` is in milliseconds.
    pub fn belongs_to_team(&self, created: u64) -> bool {
        match self.event {
            Event::Sent { team_created, .. } => team_created == created,
            _ => self.millis() >= created,
        }
    }

    /// Returns whether the record was made after the member joined. `joined_at` is in milliseconds. Older records
    /// may be about an earlier member with the same name.
    pub fn belongs_to_member(&self, joined_at: u64) -> bool {
        self.millis() >= joined_at
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.at.as_millisecond()).unwrap_or_default()
    }
}

/// Something that happened in a team. An embedded wire document is put on one line and otherwise unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A member sent a message through brigade, and the store acknowledged it.
    Sent {
        /// The recipient.
        to: String,
        /// Identifies the message in the recipient's mailbox.
        key: MessageKey,
        /// When the message's team was created, in milliseconds. Distinguishes that team from a later team with
        /// the same name.
        team_created: u64,
        /// Whether brigade promised the sender that the message survives a power failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        power_safe: bool,
        /// The message as an inbox entry.
        message: Box<RawValue>,
    },
    /// A message from another program was found in an inbox.
    Seen {
        /// The owner of the inbox.
        to: String,
        /// Identifies the message in the owner's mailbox.
        key: MessageKey,
        /// The message as an inbox entry.
        message: Box<RawValue>,
    },
    /// A message was marked as read, or removed from the inbox.
    Read {
        /// The owner of the inbox.
        to: String,
        /// Identifies the message in the owner's mailbox.
        key: MessageKey,
        /// Whether the message disappeared from the inbox. Claude Code 2.1.325 removes messages that it has read.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
    },
    /// A message was shown to the member's model.
    Shown {
        /// The owner of the inbox.
        to: String,
        /// Identifies the message in the owner's mailbox.
        key: MessageKey,
    },
    /// A member answered a request through brigade.
    Answered {
        /// The id of the request.
        request_id: String,
        /// The kind of request: `shutdown`, `plan` or `permission`.
        kind: String,
        /// The member that made the request.
        to: String,
        /// Whether the answer is yes.
        yes: bool,
        /// The reason, if the answer is no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The decider: `person`, `agent` or `rule N of NAME`. The value is `taken back` if the asking member
        /// withdrew the request.
        hand: String,
    },
    /// An inbox file was damaged. brigade copied the file and kept the readable messages.
    Salvaged {
        /// The owner of the inbox.
        to: String,
        /// The path of the copy.
        copy: String,
        /// The number of messages kept.
        kept: usize,
    },
    /// A task was created or changed.
    Task {
        /// The task number.
        id: u64,
        /// The new content of the task.
        task: Box<RawValue>,
    },
    /// A task was deleted.
    TaskDeleted {
        /// The task number.
        id: u64,
    },
    /// The team was created.
    TeamCreated {
        /// The team's `config.json`.
        team: Box<RawValue>,
    },
    /// The team was deleted.
    TeamDeleted {},
    /// A member joined, or its roster entry changed.
    Member {
        /// The member's name.
        name: String,
        /// The member's entry in `config.json`.
        member: Box<RawValue>,
        /// Whether the member is new.
        joined: bool,
    },
    /// A member left.
    MemberLeft {
        /// The member's name.
        name: String,
    },
    /// A person took over the session of a member in the agent's own program, or that program has ended and the member continues the
    /// session.
    TakenOver {
        /// The member's name.
        name: String,
        /// The display name of the program.
        program: String,
        /// The agent's id of the session, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Whether the program has ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ended: bool,
    },
    /// A member's agent did something.
    Worked {
        /// The member's name.
        name: String,
        /// The work event.
        act: WorkEvent,
    },
}

impl Event {
    /// Returns the kind of the event.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Sent { .. } => EventKind::Sent,
            Self::Seen { .. } => EventKind::Seen,
            Self::Read { .. } => EventKind::Read,
            Self::Shown { .. } => EventKind::Shown,
            Self::Answered { .. } => EventKind::Answered,
            Self::Salvaged { .. } => EventKind::Salvaged,
            Self::Task { .. } => EventKind::Task,
            Self::TaskDeleted { .. } => EventKind::TaskDeleted,
            Self::TeamCreated { .. } => EventKind::TeamCreated,
            Self::TeamDeleted {} => EventKind::TeamDeleted,
            Self::Member { .. } => EventKind::Member,
            Self::MemberLeft { .. } => EventKind::MemberLeft,
            Self::TakenOver { .. } => EventKind::TakenOver,
            Self::Worked { .. } => EventKind::Worked,
        }
    }

    /// Returns the owner of the mailbox that the event is about, if any.
    pub fn mailbox(&self) -> Option<&str> {
        match self {
            Self::Sent { to, .. }
            | Self::Seen { to, .. }
            | Self::Read { to, .. }
            | Self::Shown { to, .. }
            | Self::Salvaged { to, .. } => Some(to),
            _ => None,
        }
    }

    /// Returns the key of the message that the event added to a mailbox, if any.
    pub fn message(&self) -> Option<MessageKey> {
        match self {
            Self::Sent { key, .. } | Self::Seen { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// Returns the sender of the message that the event added to a mailbox, if any.
    pub fn sender(&self) -> Option<String> {
        let (Self::Sent { message, .. } | Self::Seen { message, .. }) = self else { return None };
        let sender = |message: Option<Message<'_>>| Some(message?.from().into_owned());
        with_message(message.get().as_bytes(), sender).ok().flatten()
    }
}

/// Identifies a message in a mailbox. Derived from the message id or, if there is none, from the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageKey(u64);

impl MessageKey {
    /// Creates the key of a message with this id.
    pub fn from_id(msg_id: &str) -> Self {
        Self(Fnv::default().field(msg_id.as_bytes()).finish() & !1)
    }

    /// Creates a message's key. `nth` is the number of identical messages that precede the message in its inbox.
    pub fn of_message(message: &Message<'_>, nth: usize) -> Self {
        if let Some(id) = message.msg_id() {
            return Self::from_id(&id);
        }
        let hash = Fnv::default()
            .field(message.from().as_bytes())
            .field(message.timestamp().as_bytes())
            .field(message.text().as_bytes());
        Self(hash.field(&nth.to_le_bytes()).finish() & !1)
    }

    /// Pairs each message of an inbox with its key, in order.
    pub fn all<'m>(messages: impl Iterator<Item = Message<'m>>) -> Vec<(Self, Message<'m>)> {
        let mut seen = HashMap::new();
        let key = |message: Message<'m>| {
            let first = Self::of_message(&message, 0);
            if message.msg_id().is_some() {
                return (first, message);
            }
            let nth: &mut usize = seen.entry(first).or_default();
            let key = if *nth == 0 { first } else { Self::of_message(&message, *nth) };
            *nth += 1;
            (key, message)
        };
        messages.map(key).collect()
    }

    /// Returns the key as a number whose lowest bit is zero. Callers may store a flag in that bit.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Creates a key from [`MessageKey::bits`]. Ignores the lowest bit.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & !1)
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The error for a string that is not a message key.
#[derive(Debug, Error)]
#[error("not a message key: expected sixteen hexadecimal digits")]
pub struct NotAMessageKey;

impl FromStr for MessageKey {
    type Err = NotAMessageKey;

    fn from_str(text: &str) -> Result<Self, NotAMessageKey> {
        let bits = u64::from_str_radix(text, 16).map_err(|_| NotAMessageKey)?;
        if text.len() == 16 { Ok(Self::from_bits(bits)) } else { Err(NotAMessageKey) }
    }
}

impl Serialize for MessageKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'_, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Puts a JSON document on one line without changing its meaning. Invalid JSON becomes a JSON string.
pub fn one_line(json: &[u8]) -> Box<RawValue> {
    // JSON strings contain no raw line breaks, so every line break is whitespace between tokens.
    let text = String::from_utf8_lossy(json).replace(['\n', '\r'], " ");
    RawValue::from_string(text).unwrap_or_else(|_| {
        let text = serde_json::Value::from(String::from_utf8_lossy(json));
        RawValue::from_string(text.to_string()).unwrap_or_default()
    })
}

/// Compares two versions of `config.json` and returns the changes to the roster as events.
pub fn roster_events(before: &[u8], after: &[u8]) -> Vec<Event> {
    let (Ok(before), Ok(after)) = (Team::read(before), Team::read(after)) else {
        return Vec::new();
    };
    // Index the members by name: comparing every member with every other member is slow in large teams.
    let (old, new) = (by_name(&before), by_name(&after));
    let mut events = Vec::new();
    for member in after.members() {
        let Some(name) = member.name() else { continue };
        let previous = old.get(&name);
        if previous.is_none_or(|previous| previous.json() != member.json()) {
            let (name, member) = (name.into_owned(), one_line(member.json()));
            events.push(Event::Member { name, member, joined: previous.is_none() });
        }
    }
    for member in before.members() {
        let Some(name) = member.name() else { continue };
        if !new.contains_key(&name) {
            events.push(Event::MemberLeft { name: name.into_owned() });
        }
    }
    events
}

/// Indexes the members by name. If two members share a name, the first one wins.
fn by_name<'t>(team: &'t Team<'t>) -> HashMap<Cow<'t, str>, Member<'t>> {
    let mut members = HashMap::new();
    for member in team.members() {
        if let Some(name) = member.name() {
            members.entry(name).or_insert(member);
        }
    }
    members
}
