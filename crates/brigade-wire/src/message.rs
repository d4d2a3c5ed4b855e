//! One entry of an inbox: as it stands, and as we write a new one.
//!
//! ```
//! use brigade_wire::message::{NewMessage, Stamp};
//!
//! let message = NewMessage {
//!     from: "bob",
//!     text: "done",
//!     summary: None,
//!     timestamp: "2026-11-15T12:00:00.000Z",
//!     color: None,
//!     read: false,
//!     stamp: Stamp::Old { msg_id: None },
//! };
//! let mut inbox = brigade_wire::inbox::EMPTY.to_vec();
//! brigade_wire::inbox::append(&mut inbox, &[message]).expect("an inbox");
//! ```

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::body::Body;
use crate::color::Color;
use crate::document::{Document, Fields, Kind, Object, Span};

/// An entry of an inbox.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'i> {
    /// It has what every message has.
    Message(Message<'i>),
    /// It lacks a string `from`, `text` (or `content`) or `timestamp`, or a boolean `read`. The new
    /// generation deletes such an entry when it next writes the inbox.
    Other(&'i [u8]),
}

impl<'i> Entry<'i> {
    /// The entry, byte for byte.
    pub fn json(&self) -> &'i [u8] {
        match self {
            Self::Message(message) => message.json(),
            Self::Other(json) => json,
        }
    }
}

/// A message in an inbox.
#[derive(Clone, Copy, Debug)]
pub struct Message<'i> {
    document: &'i Document<'i>,
    pub(crate) places: &'i Places,
    index: usize,
}

/// Where the parts of a message stand.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) object: Object,
    from: Span,
    text: Span,
    timestamp: Span,
    pub(crate) read: Span,
}

impl Places {
    /// The places of a message, or `None` where `span` holds something else.
    pub(crate) fn find(document: &Document<'_>, span: Span) -> Option<Self> {
        let object = document.object(span)?;
        let string = |key| {
            let value = document.get(&object, key)?;
            (document.kind(value) == Kind::String).then_some(value)
        };
        let (from, timestamp) = (string("from")?, string("timestamp")?);
        let text = string("text").or_else(|| string("content"))?;
        let read = document.get(&object, "read")?;
        document.boolean(read)?;
        Some(Self { object, from, text, timestamp, read })
    }
}

impl<'i> Message<'i> {
    pub(crate) fn new(document: &'i Document<'i>, places: &'i Places, index: usize) -> Self {
        Self { document, places, index }
    }

    /// Its place among the entries of the inbox, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Who it says it is from.
    pub fn from(&self) -> Cow<'i, str> {
        self.document.string(self.places.from).unwrap_or_default()
    }

    /// What it says, under `text` or `content`.
    pub fn text(&self) -> Cow<'i, str> {
        self.document.string(self.places.text).unwrap_or_default()
    }

    /// When it was sent, as its sender wrote it.
    pub fn timestamp(&self) -> Cow<'i, str> {
        self.document.string(self.places.timestamp).unwrap_or_default()
    }

    /// Whether its reader has taken it.
    pub fn read(&self) -> bool {
        self.document.boolean(self.places.read).unwrap_or_default()
    }

    /// A few words for people.
    pub fn summary(&self) -> Option<Cow<'i, str>> {
        self.fields().string("summary")
    }

    /// The sender's colour, as written.
    pub fn color(&self) -> Option<Cow<'i, str>> {
        self.fields().string("color")
    }

    /// The id the new generation gives each message.
    pub fn msg_id(&self) -> Option<Cow<'i, str>> {
        self.fields().string("msg_id")
    }

    /// The lead's signature.
    pub fn lead_sig(&self) -> Option<Cow<'i, str>> {
        self.fields().string("lead_sig")
    }

    /// What it means: plain words or a message of the protocol.
    pub fn body(&self) -> Body {
        Body::parse(&self.text())
    }

    /// The JSON of any field, as it stands.
    pub fn field(&self, key: &str) -> Option<&'i str> {
        self.fields().json(key)
    }

    /// The whole entry, byte for byte.
    pub fn json(&self) -> &'i [u8] {
        self.document.original(self.places.object.span)
    }

    fn fields(&self) -> Fields<'i> {
        Fields { document: self.document, object: &self.places.object }
    }
}

/// A message to be written.
#[derive(Clone, Debug)]
pub struct NewMessage<'m> {
    /// The sender's name.
    pub from: &'m str,
    /// Plain words, or [`Protocol::to_text`](crate::protocol::Protocol::to_text).
    pub text: &'m str,
    /// A few words for people.
    pub summary: Option<&'m str>,
    /// ISO 8601 in UTC with milliseconds.
    pub timestamp: &'m str,
    /// The sender's colour; the lead has none.
    pub color: Option<Color>,
    /// Whether it counts as read from the start.
    pub read: bool,
    /// The fields that differ between the generations.
    pub stamp: Stamp<'m>,
}

/// The part of a message that only one generation writes.
#[derive(Clone, Debug)]
pub enum Stamp<'m> {
    /// The old generation has no message id, but keeps one it finds: it goes last.
    Old {
        /// An id of our own.
        msg_id: Option<&'m str>,
    },
    /// The new generation.
    New {
        /// A UUID.
        msg_id: &'m str,
        /// The lead's signature, if the lead signs for this reader.
        lead_sig: Option<&'m str>,
    },
}

impl Serialize for NewMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("from", self.from)?;
        map.serialize_entry("text", self.text)?;
        if let Some(summary) = self.summary {
            map.serialize_entry("summary", summary)?;
        }
        map.serialize_entry("timestamp", self.timestamp)?;
        if let Some(color) = self.color {
            map.serialize_entry("color", &color)?;
        }
        let last = match self.stamp {
            Stamp::Old { msg_id } => ("msg_id", msg_id),
            Stamp::New { msg_id, lead_sig } => {
                map.serialize_entry("msgV", &1)?;
                map.serialize_entry("msg_id", msg_id)?;
                map.serialize_entry("type", "message")?;
                ("lead_sig", lead_sig)
            }
        };
        map.serialize_entry("read", &self.read)?;
        if let (key, Some(value)) = last {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
