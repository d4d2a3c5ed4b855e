//! What a message means: plain words, or a message of the protocol.

use crate::document::{Document, Fields};
use crate::legible::whole_pairs;
use crate::protocol::Protocol;

/// The meaning of a message's text. Any text has one; none is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Words for the reader; also JSON that has no `type`, and text that only looks like JSON.
    Text,
    /// A message of the protocol.
    Protocol(Protocol),
    /// JSON of a type we do not know. Claude Code shows such a text to the model as it stands.
    Unknown {
        /// The type it names.
        kind: String,
    },
    /// JSON of a type we know that does not have the fields of that type. It is never acted upon.
    Malformed {
        /// The type it names.
        kind: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Body {
    /// Reads a text.
    pub fn parse(text: &str) -> Self {
        if !text.trim_start().starts_with('{') {
            return Self::Text;
        }
        let text = whole_pairs(text);
        let document = Document::new(text.as_bytes());
        let Ok(object) = document.root_object("a body") else {
            return Self::Text;
        };
        let fields = Fields { document: &document, object: &object };
        let Some(kind) = fields.string("type") else {
            return Self::Text;
        };
        match Protocol::read(&kind, &text) {
            Some(Ok(protocol)) => Self::Protocol(protocol),
            Some(Err((kind, error))) => Self::Malformed { kind, reason: error.to_string() },
            None => Self::Unknown { kind: kind.into_owned() },
        }
    }
}
