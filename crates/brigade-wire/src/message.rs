//! An inbox entry: a view of an existing entry, and a new message to write.
//!
//! ```
//! use brigade_wire::message::{NewMessage, GenerationFields};
//!
//! let message = NewMessage {
//!     from: "bob",
//!     text: "done",
//!     summary: None,
//!     timestamp: "2026-11-15T12:00:00.000Z",
//!     color: None,
//!     read: false,
//!     stamp: GenerationFields::Old { msg_id: None },
//! };
//! let mut inbox = brigade_wire::inbox::EMPTY.to_vec();
//! brigade_wire::inbox::append(&mut inbox, &[message]).expect("an inbox");
//! ```

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::body::Body;
use crate::color::Color;
use crate::document::{ByteSpan, JsonDocument, JsonKind, Object, ObjectFields};

/// An entry of an inbox.
#[derive(Clone, Copy, Debug)]
pub enum InboxEntry<'i> {
    /// An entry that is a message.
    Message(Message<'i>),
    /// An entry that is not a message. A message has the strings `from`, `text` (or `content`) and `timestamp`, and
    /// the boolean `read`. Claude Code of the new generation deletes all other entries when it writes the inbox.
    Other(&'i [u8]),
}

impl<'i> InboxEntry<'i> {
    /// Returns the entry, byte for byte.
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
    document: &'i JsonDocument<'i>,
    pub(crate) spans: &'i MessageSpans,
    index: usize,
}

/// The positions of a message's fields.
#[derive(Clone, Debug)]
pub(crate) struct MessageSpans {
    pub(crate) object: Object,
    from: ByteSpan,
    text: ByteSpan,
    timestamp: ByteSpan,
    pub(crate) read: ByteSpan,
}

impl MessageSpans {
    /// Finds the fields of the message at `span`; `None` if the value there is not a message.
    pub(crate) fn find(document: &JsonDocument<'_>, span: ByteSpan) -> Option<Self> {
        let object = document.object(span)?;
        let string = |key| {
            let value = document.get(&object, key)?;
            (document.kind(value) == JsonKind::String).then_some(value)
        };
        let (from, timestamp) = (string("from")?, string("timestamp")?);
        let text = string("text").or_else(|| string("content"))?;
        let read = document.get(&object, "read")?;
        document.boolean(read)?;
        Some(Self { object, from, text, timestamp, read })
    }
}

impl<'i> Message<'i> {
    pub(crate) fn new(
        document: &'i JsonDocument<'i>,
        spans: &'i MessageSpans,
        index: usize,
    ) -> Self {
        Self { document, spans, index }
    }

    /// Returns the message's position among the entries of the inbox, counted from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the sender that the message names.
    pub fn from(&self) -> Cow<'i, str> {
        self.document.string(self.spans.from).unwrap_or_default()
    }

    /// Returns the text, from the field `text` or `content`.
    pub fn text(&self) -> Cow<'i, str> {
        self.document.string(self.spans.text).unwrap_or_default()
    }

    /// Returns the time at which the message was sent, as the sender wrote it.
    pub fn timestamp(&self) -> Cow<'i, str> {
        self.document.string(self.spans.timestamp).unwrap_or_default()
    }

    /// Returns whether the message is marked as read.
    pub fn read(&self) -> bool {
        self.document.boolean(self.spans.read).unwrap_or_default()
    }

    /// Returns the short summary for people.
    pub fn summary(&self) -> Option<Cow<'i, str>> {
        self.fields().string("summary")
    }

    /// Returns the sender's colour, exactly as it stands in the file.
    pub fn color(&self) -> Option<Cow<'i, str>> {
        self.fields().string("color")
    }

    /// Returns the message id, which the new generation always writes.
    pub fn msg_id(&self) -> Option<Cow<'i, str>> {
        self.fields().string("msg_id")
    }

    /// Returns the lead's signature.
    pub fn lead_sig(&self) -> Option<Cow<'i, str>> {
        self.fields().string("lead_sig")
    }

    /// Parses the text: plain text or a protocol message.
    pub fn body(&self) -> Body {
        Body::parse(&self.text())
    }

    /// Returns the JSON of the named field, exactly as it stands in the file.
    pub fn field(&self, key: &str) -> Option<&'i str> {
        self.fields().json(key)
    }

    /// Returns the whole entry, byte for byte.
    pub fn json(&self) -> &'i [u8] {
        self.document.original(self.spans.object.span)
    }

    fn fields(&self) -> ObjectFields<'i> {
        ObjectFields { document: self.document, object: &self.spans.object }
    }
}

/// A new message to add to an inbox.
#[derive(Clone, Debug)]
pub struct NewMessage<'m> {
    /// The sender's name.
    pub from: &'m str,
    /// The text: plain text, or the result of [`Protocol::to_text`](crate::protocol::Protocol::to_text).
    pub text: &'m str,
    /// A short summary for people.
    pub summary: Option<&'m str>,
    /// When the message was sent: ISO 8601 in UTC with milliseconds.
    pub timestamp: &'m str,
    /// The sender's colour; the lead has none.
    pub color: Option<Color>,
    /// Whether the message is already marked as read when it is added.
    pub read: bool,
    /// The fields that differ between the generations.
    pub stamp: GenerationFields<'m>,
}

/// The fields of a message that differ between the generations.
#[derive(Clone, Debug)]
pub enum GenerationFields<'m> {
    /// The old generation writes no message id, but keeps an existing id. The id is the last field.
    Old {
        /// The message id, if brigade adds one.
        msg_id: Option<&'m str>,
    },
    /// The fields of the new generation.
    New {
        /// The message id, a UUID.
        msg_id: &'m str,
        /// The lead's signature, if the lead signs messages for this recipient.
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
            GenerationFields::Old { msg_id } => ("msg_id", msg_id),
            GenerationFields::New { msg_id, lead_sig } => {
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
