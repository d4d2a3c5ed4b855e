//! The content of a message: plain text, or a protocol message.
//!
//! ```
//! use brigade_wire::body::Body;
//! use brigade_wire::protocol::Protocol;
//!
//! assert!(matches!(Body::parse("please review it"), Body::Text));
//! let stop = r#"{"type": "shutdown_request", "requestId": "shutdown-1@bob", "from": "team-lead",
//!     "timestamp": "2026-11-15T12:00:00.000Z"}"#;
//! assert!(matches!(Body::parse(stop), Body::Protocol(Protocol::ShutdownRequest(_))));
//! assert!(matches!(Body::parse(r#"{"type": "news"}"#), Body::Unknown { kind } if kind == "news"));
//! ```

use std::borrow::Cow;

use crate::document::{JsonDocument, JsonKind, Object, ObjectFields};
use crate::protocol::Protocol;

/// The meaning of a message's text. Parsing never fails: every text belongs to one of these variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Plain text, including JSON without a `type` and text that only looks like JSON.
    Text,
    /// A protocol message.
    Protocol(Protocol),
    /// JSON with an unknown `type`. Claude Code shows this text to the model unchanged.
    Unknown {
        /// The value of `type`.
        kind: String,
    },
    /// JSON with a known `type`, but without the fields that the type requires. Readers must not act on it.
    Malformed {
        /// The value of `type`.
        kind: String,
        /// Why the message is malformed.
        reason: String,
    },
}

impl Body {
    /// Parses a message's text.
    pub fn parse(text: &str) -> Self {
        if !text.trim_start().starts_with('{') {
            return Self::Text;
        }
        let document = JsonDocument::new(text.as_bytes());
        let Ok(object) = document.root_object("a body") else {
            return Self::Text;
        };
        let Some(kind) = (ObjectFields { document: &document, object: &object }).string("type")
        else {
            return Self::Text;
        };
        let kind = kind.into_owned();
        match Protocol::read(&kind, &parsable(text, &document, &object)) {
            None => Self::Unknown { kind },
            Some(_) if object.members.iter().filter(|p| document.is_key(p, "type")).count() > 1 => {
                Self::Malformed { kind, reason: "it has more than one field `type`".to_owned() }
            }
            Some(Ok(protocol)) => Self::Protocol(protocol),
            Some(Err(error)) => Self::Malformed { kind, reason: error.to_string() },
        }
    }
}

/// Makes the object's own string values parsable (see [`legible`](crate::legible)). Leaves nested values
/// unchanged, because they are another program's JSON.
fn parsable<'t>(text: &'t str, document: &JsonDocument<'_>, object: &Object) -> Cow<'t, str> {
    if document.text == text {
        return Cow::Borrowed(text);
    }
    let mut parsable = text.to_owned();
    for pair in &object.members {
        if document.kind(pair.value) == JsonKind::String {
            parsable.replace_range(pair.value.range(), document.raw(pair.value));
        }
    }
    Cow::Owned(parsable)
}
