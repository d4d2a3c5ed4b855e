//! What a message says, as far as a picture needs it. Read by the hundred thousand, and so without the
//! care of [`brigade_wire`], which is asked where this does not do.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Kind;
use crate::mail::with_message;

/// An entry of an inbox.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'m> {
    #[serde(borrow, default)]
    pub(super) from: Cow<'m, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'m, str>,
}

impl<'m> Message<'m> {
    pub(super) fn of(json: &'m RawValue) -> Option<Self> {
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

/// The kind of a message, and what it is about if it is one of the protocol.
#[derive(Debug)]
pub(super) struct Said<'t> {
    pub(super) kind: Kind,
    pub(super) request_id: Option<Cow<'t, str>>,
    pub(super) yes: bool,
}

/// The fields of all messages of the protocol that matter here.
#[derive(Deserialize)]
struct Fields<'t> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'t, str>,
    #[serde(borrow, default, rename = "requestId", alias = "request_id")]
    request_id: Option<Cow<'t, str>>,
    #[serde(default)]
    approved: Option<bool>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'t, str>>,
}

impl<'t> Said<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let words = Self { kind: Kind::Words, request_id: None, yes: false };
        if !text.trim_start().starts_with('{') {
            return words;
        }
        let Ok(fields) = serde_json::from_str::<Fields<'t>>(text) else { return words };
        let yes = fields.approved.unwrap_or(fields.subtype.as_deref() == Some("success"));
        Self { kind: Kind::of(&fields.kind), request_id: fields.request_id, yes }
    }
}
