//! Reads the few message fields that a team projection needs. There may be hundreds of thousands of messages, and
//! this parser is faster than [`brigade_wire`]. If it cannot read a message, it falls back to [`brigade_wire`].

use brigade_wire::inbox::with_message;
use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::MessageKind;
use crate::unread;

/// The sender and the text of an inbox entry.
#[derive(Debug, Deserialize)]
pub(super) struct MessageFields<'m> {
    #[serde(borrow, default)]
    pub(super) from: Cow<'m, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'m, str>,
}

impl<'m> MessageFields<'m> {
    pub(super) fn parse(json: &'m RawValue) -> Option<Self> {
        if let Ok(message) = serde_json::from_str(json.get()) {
            return Some(message);
        }
        let read = |message: brigade_wire::message::Message<'_>| {
            let (from, text) = (message.from().into_owned(), message.text().into_owned());
            Self { from: from.into(), text: text.into() }
        };
        with_message(json.get().as_bytes(), |message| message.map(read)).ok().flatten()
    }
}

/// The type of a message and, for a request or an answer, the request id and whether the answer is yes.
#[derive(Debug)]
pub(super) struct MessageSummary<'t> {
    pub(super) kind: MessageKind,
    pub(super) request_id: Option<Cow<'t, str>>,
    pub(super) yes: bool,
    /// Whether the count of unread messages includes the message.
    pub(super) is_counted: bool,
}

/// The fields of a protocol message that a projection needs.
#[derive(Deserialize)]
struct ProtocolFields<'t> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'t, str>,
    #[serde(borrow, default, rename = "requestId", alias = "request_id")]
    request_id: Option<Cow<'t, str>>,
    #[serde(default)]
    approved: Option<bool>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'t, str>>,
    #[serde(borrow, default, rename = "idleReason")]
    idle_reason: Option<&'t RawValue>,
    #[serde(borrow, default)]
    result: Option<&'t RawValue>,
}

impl<'t> MessageSummary<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        let plain =
            Self { kind: MessageKind::Text, request_id: None, yes: false, is_counted: true };
        if !text.trim_start().starts_with('{') {
            return plain;
        }
        let Ok(fields) = serde_json::from_str::<ProtocolFields<'t>>(text) else { return plain };
        let yes = fields.approved.unwrap_or(fields.subtype.as_deref() == Some("success"));
        let kind = MessageKind::from_wire(&fields.kind);
        let is_counted = match kind {
            MessageKind::Idle => {
                let has_failed = fields.idle_reason.is_some_and(|why| why.get() == r#""failed""#);
                let text: Option<Cow<'_, str>> =
                    fields.result.and_then(|text| serde_json::from_str(text.get()).ok());
                unread::counts_idle(has_failed, &text.unwrap_or_default())
            }
            _ => unread::counts(&fields.kind),
        };
        Self { kind, request_id: fields.request_id, yes, is_counted }
    }
}
