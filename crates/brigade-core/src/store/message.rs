//! Messages: before they are sent, and as stored in an inbox.

use std::borrow::Cow;

use brigade_wire::body::Body;
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::with_message;
use brigade_wire::message::{GenerationFields, Message, NewMessage};
use brigade_wire::protocol::{IdleReason, Protocol};
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::event::{Event, MessageKey};

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The message id, a UUID. Sending a message with the same id again stores no second message.
    pub msg_id: String,
    /// The sender's name.
    pub from: String,
    /// The text of the message.
    pub text: String,
    /// A short summary for people.
    pub summary: Option<String>,
    /// When the message was sent, in wire format.
    pub timestamp: String,
    /// The sender's color.
    #[serde(default, with = "color")]
    pub color: Option<Color>,
    /// `Some(1)` for the newer generation's message format.
    #[serde(default, rename = "msgV")]
    pub msg_v: Option<u8>,
    /// The lead's signature.
    #[serde(default)]
    pub lead_sig: Option<String>,
    /// When the recipient's team was created, according to its `config.json`.
    #[serde(skip)]
    pub team_created: u64,
}

impl Outgoing {
    /// Converts the message to an inbox entry.
    pub fn to_inbox_entry(&self) -> NewMessage<'_> {
        let stamp = match self.msg_v {
            Some(_) => {
                GenerationFields::New { msg_id: &self.msg_id, lead_sig: self.lead_sig.as_deref() }
            }
            None => GenerationFields::Old { msg_id: Some(&self.msg_id) },
        };
        NewMessage {
            from: &self.from,
            text: &self.text,
            summary: self.summary.as_deref(),
            timestamp: &self.timestamp,
            color: self.color,
            read: false,
            stamp,
        }
    }

    /// Copies a message with its original sender, but under a new id and without a signature.
    pub fn copy_of(message: &Message<'_>, msg_id: String) -> Self {
        Self {
            msg_id,
            from: message.from().into_owned(),
            text: message.text().into_owned(),
            summary: message.summary().map(Cow::into_owned),
            timestamp: message.timestamp().into_owned(),
            color: message.color().and_then(|color| color.parse().ok()),
            msg_v: message.field("msgV").map(|_| 1),
            lead_sig: None,
            team_created: 0,
        }
    }

    /// Returns whether an event added this message to a mailbox. The key alone does not identify a message, because any
    /// member can send a message with the id of another message.
    pub fn is_added_by(&self, event: &Event) -> bool {
        event.message() == Some(self.key())
            && event.sender().is_some_and(|sender| sender == self.from)
    }

    /// Returns the key that identifies the message in the recipient's mailbox.
    pub fn key(&self) -> MessageKey {
        MessageKey::from_id(&self.msg_id)
    }

    /// Returns the value of `msgV` for a team of this generation.
    pub fn msg_v(generation: Generation) -> Option<u8> {
        (generation == Generation::New).then_some(1)
    }
}

/// Serializes and deserializes a color. An unknown color is read as `None`.
mod color {
    use brigade_wire::color::Color;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        color: &Option<Color>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        color.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Color>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        Ok(name.and_then(|name| name.parse().ok()))
    }
}

/// Confirms to the sender that a message is stored.
#[derive(Debug)]
pub struct Receipt {
    /// The message id.
    pub msg_id: String,
    /// Why the message is not in the inbox yet; `None` if it is in the inbox. The sender need not do anything: the
    /// next process that uses the inbox delivers the message.
    pub pending: Option<StoreError>,
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Identifies the message in the mailbox.
    pub key: MessageKey,
    /// The inbox entry, byte for byte.
    pub json: Vec<u8>,
}

impl Mail {
    /// Returns the sender that the message names; empty if the entry is not a message.
    pub fn from(&self) -> String {
        self.read_with(|message| message.from().into_owned()).unwrap_or_default()
    }

    /// Returns the text of a plain or protocol message; empty if the entry is not a message.
    pub fn text(&self) -> String {
        self.read_with(|message| message.text().into_owned()).unwrap_or_default()
    }

    /// Returns the text of a plain message; `None` for a protocol message.
    pub fn plain_text(&self) -> Option<String> {
        let plain = |message: Message<'_>| match message.body() {
            Body::Text => Some(message.text().into_owned()),
            _ => None,
        };
        self.read_with(plain).flatten()
    }

    /// Returns the content as a person reads it; `None` if the entry is not a message.
    pub fn content(&self) -> Option<MailContent> {
        self.read_with(|message| MailContent::from_message(&message))
    }

    /// Returns whether the entry is a message that is not marked as read.
    pub fn is_unread(&self) -> bool {
        self.read_with(|message| !message.read()).unwrap_or_default()
    }

    /// Parses the message and passes it to `read`; `None` if the entry is not a message.
    pub fn read_with<T>(&self, read: impl FnOnce(Message<'_>) -> T) -> Option<T> {
        with_message(&self.json, |message| message.map(read)).ok().flatten()
    }
}

/// The content of a message, as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailContent {
    /// The text of a plain message.
    Text(String),
    /// The text with which a member's agent ended its turn, from the notice that the member is idle. Agents often answer in this
    /// way instead of sending a message.
    TurnText(String),
    /// A notice that a member is idle, and nothing else.
    IdleNotice,
    /// Any other message of the protocol: a request, an answer to one, a task, or a notice that a member failed.
    Protocol,
}

impl MailContent {
    /// Returns the content of a message.
    pub fn from_message(message: &Message<'_>) -> Self {
        match message.body() {
            Body::Text => Self::Text(message.text().into_owned()),
            Body::Protocol(Protocol::IdleNotification(idle)) => match idle.idle_reason {
                IdleReason::Failed => Self::Protocol,
                _ => match idle.result.filter(|text| !text.trim().is_empty()) {
                    Some(text) => Self::TurnText(text),
                    None => Self::IdleNotice,
                },
            },
            _ => Self::Protocol,
        }
    }

    /// Returns the text that the sender addressed to the reader, if any.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::TurnText(text) => Some(text),
            Self::IdleNotice | Self::Protocol => None,
        }
    }
}

/// A mark on a message in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The recipient's program has read the message.
    Read,
    /// The recipient's model has seen the message. A message that is marked as shown also counts as read.
    Shown,
}
