//! What a message means: plain words, or a message of the protocol.
//!
//! ```
//! use brigade_wire::body::Body;
//! use brigade_wire::protocol::Protocol;
//!
//! assert!(matches!(Body::parse("please look at it"), Body::Text));
//! let stop = r#"{"type": "shutdown_request", "requestId": "shutdown-1@bob", "from": "team-lead",
//!     "timestamp": "2026-11-15T12:00:00.000Z"}"#;
//! assert!(matches!(Body::parse(stop), Body::Protocol(Protocol::ShutdownRequest(_))));
//! assert!(matches!(Body::parse(r#"{"type": "news"}"#), Body::Unknown { kind } if kind == "news"));
//! ```

use std::borrow::Cow;

use crate::document::{Document, Fields, Kind, Object};
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
        kind: String,
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
        let document = Document::new(text.as_bytes());
        let Ok(object) = document.root_object("a body") else {
            return Self::Text;
        };
        let Some(kind) = (Fields { document: &document, object: &object }).string("type") else {
            return Self::Text;
        };
        let kind = kind.into_owned();
        match Protocol::read(&kind, &readable(text, &document, &object)) {
            None => Self::Unknown { kind },
            Some(_) if object.members.iter().filter(|p| document.is_key(p, "type")).count() > 1 => {
                Self::Malformed { kind, reason: "it names its type more than once".to_owned() }
            }
            Some(Ok(protocol)) => Self::Protocol(protocol),
            Some(Err(error)) => Self::Malformed { kind, reason: error.to_string() },
        }
    }
}

/// The text with its own strings made legible, but not what is nested in it: that is somebody's
/// JSON, which must come out as it went in.
fn readable<'t>(text: &'t str, document: &Document<'_>, object: &Object) -> Cow<'t, str> {
    if document.text == text {
        return Cow::Borrowed(text);
    }
    let mut readable = text.to_owned();
    for pair in &object.members {
        if document.kind(pair.value) == Kind::String {
            readable.replace_range(pair.value.range(), document.raw(pair.value));
        }
    }
    Cow::Owned(readable)
}
