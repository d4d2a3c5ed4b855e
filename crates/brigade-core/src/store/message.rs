//! A message on its way into a store, and in it.

use std::borrow::Cow;

use brigade_wire::body::Body;
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::message::{Message, NewMessage, Stamp};
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::event::MessageKey;
use crate::mail::with_message;

/// A message to be sent, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Its id, a UUID: sending it twice is sending it once.
    pub msg_id: String,
    /// The sender's name.
    pub from: String,
    /// What it says.
    pub text: String,
    /// A few words for people.
    pub summary: Option<String>,
    /// When, as on the wire.
    pub timestamp: String,
    /// The sender's colour.
    #[serde(default, with = "color")]
    pub color: Option<Color>,
    /// `Some(1)` for the form of the new generation.
    #[serde(default, rename = "msgV")]
    pub msg_v: Option<u8>,
    /// The lead's signature.
    #[serde(default)]
    pub lead_sig: Option<String>,
    /// When the team it is meant for was created, as its `config.json` says.
    #[serde(skip)]
    pub team_created: u64,
}

impl Outgoing {
    /// The message as an entry of an inbox.
    pub fn as_new(&self) -> NewMessage<'_> {
        let stamp = match self.msg_v {
            Some(_) => Stamp::New { msg_id: &self.msg_id, lead_sig: self.lead_sig.as_deref() },
            None => Stamp::Old { msg_id: Some(&self.msg_id) },
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

    /// The words of a message by their author, to be sent once more under this id. Nothing is signed.
    pub fn again(message: &Message<'_>, msg_id: String) -> Self {
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

    /// Which message of the mailbox it becomes.
    pub fn key(&self) -> MessageKey {
        MessageKey::of_id(&self.msg_id)
    }

    /// The form for a team of this generation.
    pub fn msg_v(generation: Generation) -> Option<u8> {
        (generation == Generation::New).then_some(1)
    }
}

/// A colour in the journal: one we do not know is none.
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
        let word = Option::<String>::deserialize(deserializer)?;
        Ok(word.and_then(|word| word.parse().ok()))
    }
}

/// What a sender gets back: the message is safe.
#[derive(Debug)]
pub struct Receipt {
    /// The message's id.
    pub msg_id: String,
    /// Why it does not stand in the inbox yet, if it does not. It will, without the sender: whoever
    /// next does anything with this inbox puts it there.
    pub waits: Option<StoreError>,
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Which one.
    pub key: MessageKey,
    /// The entry, byte for byte.
    pub json: Vec<u8>,
}

impl Mail {
    /// Who it says it is from; nobody if the entry is no message.
    pub fn from(&self) -> String {
        self.look(|message| message.from().into_owned()).unwrap_or_default()
    }

    /// What it says, words or a message of the protocol; nothing if the entry is no message.
    pub fn text(&self) -> String {
        self.look(|message| message.text().into_owned()).unwrap_or_default()
    }

    /// What it says, if that is words: no message of the protocol.
    pub fn words(&self) -> Option<String> {
        let words = |message: Message<'_>| match message.body() {
            Body::Text => Some(message.text().into_owned()),
            _ => None,
        };
        self.look(words).flatten()
    }

    /// Whether it is a message that is not marked read.
    pub fn is_unread(&self) -> bool {
        self.look(|message| !message.read()).unwrap_or_default()
    }

    /// Looks at the whole message; `None` if the entry is none.
    pub fn look<T>(&self, look: impl FnOnce(Message<'_>) -> T) -> Option<T> {
        with_message(&self.json, |message| message.map(look)).ok().flatten()
    }
}

/// A step in the life of a message after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its reader has taken it.
    Read,
    /// Its reader's model has seen it. It counts as read, too.
    Shown,
}
