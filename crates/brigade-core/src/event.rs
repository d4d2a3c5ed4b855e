//! What happened in a team: the records of the journal, and the events of a watch.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let mut watch = lead.store.watch(&lead.team).await?;
//! mail::send(&lead, "bob", "hello").await?;
//! let record = watch.next().await.ok_or("the watch has ended")?;
//! assert!(matches!(record.event, Event::Sent { to, .. } if to == "bob"));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use brigade_wire::member::Member;
use brigade_wire::message::Message;
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::hash::Fnv;
pub use crate::work_event::{Act, Ending};

/// One thing that happened, and when it was written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When it was written down. What another program did happened a little before.
    pub at: Timestamp,
    /// Who did it, where it was done through a seat of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What happened.
    pub event: Event,
}

/// What happened. Documents stand in it as they were on the wire, but on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A message was acknowledged to its sender, one of ours.
    Sent {
        /// Whose inbox it goes to.
        to: String,
        /// The message in this mailbox.
        key: MessageKey,
        /// When the team it was meant for was created, in milliseconds: a later team of the same
        /// name is another.
        team_created: u64,
        /// Whether the sender was promised that it survives a power cut.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        power_safe: bool,
        /// The message.
        message: Box<RawValue>,
    },
    /// A message by another program was found in an inbox.
    Seen {
        /// Whose inbox.
        to: String,
        /// The message in this mailbox.
        key: MessageKey,
        /// The message.
        message: Box<RawValue>,
    },
    /// A message was marked read, or taken out of the inbox.
    Read {
        /// Whose inbox.
        to: String,
        /// The message in this mailbox.
        key: MessageKey,
        /// Whether it was only found to be gone: its reader took it, as Claude Code 2.1.325 does.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
    },
    /// A message was put before the member's model.
    Shown {
        /// Whose inbox.
        to: String,
        /// The message in this mailbox.
        key: MessageKey,
    },
    /// A request was answered from a seat of ours.
    Answered {
        /// Its id.
        request_id: String,
        /// What was asked: `shutdown`, `plan` or `permission`.
        kind: String,
        /// Who had asked.
        to: String,
        /// Whether with yes.
        yes: bool,
        /// Why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// By whose hand: `person`, `agent`, or `rule N of NAME`; `taken back` if the asker no longer
        /// asks.
        hand: String,
    },
    /// An inbox could not be read as a whole: it was copied, and what was whole in it was kept.
    Salvaged {
        /// Whose inbox.
        to: String,
        /// Where the copy stands.
        copy: String,
        /// How many messages were kept.
        kept: usize,
    },
    /// A task was made or changed.
    Task {
        /// Its number.
        id: u64,
        /// The task as it is now.
        task: Box<RawValue>,
    },
    /// A task was deleted.
    TaskDeleted {
        /// Its number.
        id: u64,
    },
    /// The team was created.
    TeamCreated {
        /// Its `config.json`.
        team: Box<RawValue>,
    },
    /// The team was deleted.
    TeamDeleted {},
    /// A member joined, or changed.
    Member {
        /// Its name.
        name: String,
        /// Its entry.
        member: Box<RawValue>,
        /// Whether it was not there before.
        joined: bool,
    },
    /// A member left.
    MemberLeft {
        /// Its name.
        name: String,
    },
    /// A member's agent did something.
    Worked {
        /// The member's name.
        name: String,
        /// What.
        act: Act,
    },
}

impl Event {
    /// Whose mailbox it is about, if it is about one.
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

    /// Which message it brought into a mailbox, if it did.
    pub fn message(&self) -> Option<MessageKey> {
        match self {
            Self::Sent { key, .. } | Self::Seen { key, .. } => Some(*key),
            _ => None,
        }
    }
}

/// Which message of a mailbox: made of its id, or of what it says if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageKey(u64);

impl MessageKey {
    /// The key of a message with this id.
    pub fn of_id(msg_id: &str) -> Self {
        Self(Fnv::default().field(msg_id.as_bytes()).finish() & !1)
    }

    /// The key of a message in an inbox; `nth` counts those before it that say the very same.
    pub fn of(message: &Message<'_>, nth: usize) -> Self {
        if let Some(id) = message.msg_id() {
            return Self::of_id(&id);
        }
        let said = Fnv::default()
            .field(message.from().as_bytes())
            .field(message.timestamp().as_bytes())
            .field(message.text().as_bytes());
        Self(said.field(&nth.to_le_bytes()).finish() & !1)
    }

    /// The keys of all messages, in order.
    pub fn all<'m>(messages: impl Iterator<Item = Message<'m>>) -> Vec<(Self, Message<'m>)> {
        let mut seen = HashMap::new();
        let key = |message: Message<'m>| {
            let first = Self::of(&message, 0);
            if message.msg_id().is_some() {
                return (first, message);
            }
            let nth: &mut usize = seen.entry(first).or_default();
            let key = if *nth == 0 { first } else { Self::of(&message, *nth) };
            *nth += 1;
            (key, message)
        };
        messages.map(key).collect()
    }

    /// As a number whose lowest bit is free.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From [`MessageKey::bits`], whatever the lowest bit was used for.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & !1)
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Not sixteen hexadecimal digits.
#[derive(Debug, Error)]
#[error("not a message key; it has sixteen hexadecimal digits")]
pub struct NotAKey;

impl FromStr for MessageKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bits = u64::from_str_radix(text, 16).map_err(|_| NotAKey)?;
        if text.len() == 16 { Ok(Self::from_bits(bits)) } else { Err(NotAKey) }
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

/// A document of the wire on one line, meaning what it meant. What is no JSON becomes a string.
pub fn one_line(json: &[u8]) -> Box<RawValue> {
    // A line break stands between the parts of JSON, never inside one.
    let text = String::from_utf8_lossy(json).replace(['\n', '\r'], " ");
    RawValue::from_string(text).unwrap_or_else(|_| {
        let text = serde_json::Value::from(String::from_utf8_lossy(json));
        RawValue::from_string(text.to_string()).unwrap_or_default()
    })
}

/// What changed in the roster from one `config.json` to the next.
pub fn roster_events(before: &[u8], after: &[u8]) -> Vec<Event> {
    let (Ok(before), Ok(after)) = (Team::read(before), Team::read(after)) else {
        return Vec::new();
    };
    // By name, for to look for each of many members among all of them takes a while.
    let (were, are) = (by_name(&before), by_name(&after));
    let mut events = Vec::new();
    for member in after.members() {
        let Some(name) = member.name() else { continue };
        let was = were.get(&name);
        if was.is_none_or(|was| was.json() != member.json()) {
            let (name, member) = (name.into_owned(), one_line(member.json()));
            events.push(Event::Member { name, member, joined: was.is_none() });
        }
    }
    for member in before.members() {
        let Some(name) = member.name() else { continue };
        if !are.contains_key(&name) {
            events.push(Event::MemberLeft { name: name.into_owned() });
        }
    }
    events
}

/// The members by their names; of two with one name the first.
fn by_name<'t>(team: &'t Team<'t>) -> HashMap<Cow<'t, str>, Member<'t>> {
    let mut members = HashMap::new();
    for member in team.members() {
        if let Some(name) = member.name() {
            members.entry(name).or_insert(member);
        }
    }
    members
}
