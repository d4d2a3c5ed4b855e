//! A mail message in a stream: an inbox entry, stored on a subject that contains the authenticated sender's name.

use std::sync::OnceLock;

use brigade_core::event::MessageKey;
use brigade_core::rights::{RefusedMessage, check_message, grants};
use brigade_core::store::Outgoing;
use brigade_core::wire::inbox::with_message;
use brigade_wire::inbox::Inbox;

use crate::layout::MessageClass;
use crate::read::StoredMessage;
use crate::write::INCARNATION;

/// The header with the creation time of the recipient's team, in milliseconds since 1970.
pub(crate) const CREATED: &str = "Brigade-Created";

/// Returns the class of a message. Only seats that may answer requests can send an answer; readers drop it if it
/// comes from any other sender.
pub(crate) fn weight(text: &str) -> MessageClass {
    if grants(text) { MessageClass::Answer } else { MessageClass::Text }
}

/// Returns whether a message claims to come from another member than its sender. Members never act on a message
/// that cannot be read, so such a message passes.
fn speaks_for_another(from: &str, text: &str) -> bool {
    use RefusedMessage::{ForAnother, NoMember};
    matches!(check_message(from, None, text), Err(ForAnother { .. } | NoMember { .. }))
}

/// Returns the inbox entry for an outgoing message, as JSON.
pub(crate) fn entry(message: &Outgoing) -> String {
    serde_json::to_string(&message.to_inbox_entry()).unwrap_or_default()
}

/// A mail message that was read from a stream, and that passed the checks of [`MailMessage::read`].
#[derive(Clone, Debug)]
pub(crate) struct MailMessage {
    pub(crate) seq: u64,
    pub(crate) key: MessageKey,
    pub(crate) to: String,
    pub(crate) from: String,
    pub(crate) incarnation: String,
    pub(crate) created: u64,
    /// The inbox entry, marked as unread.
    pub(crate) json: String,
    /// The inbox entry, marked as read. Computed on first use.
    read_json: OnceLock<Vec<u8>>,
}

impl MailMessage {
    /// Parses and checks a stored message. Returns `None` for a forged message: the `from` field must name the
    /// sender that the server authenticated, and an answer must be on a subject for answers.
    pub(crate) fn read(stored: &StoredMessage) -> Option<Self> {
        let tokens = stored.tokens();
        if !stored.subject.starts_with("mb.") {
            return None;
        }
        let [to, from, weight_token] = tokens.as_slice() else { return None };
        let json = str::from_utf8(&stored.payload).ok()?;
        let checked = with_message(json.as_bytes(), |message| {
            let message = message?;
            let key = MessageKey::of_message(&message, 0);
            let is_valid = message.from() == *from
                && !message.read()
                && !speaks_for_another(from, &message.text())
                && (*weight_token == MessageClass::Answer.token()
                    || weight(&message.text()) == MessageClass::Text);
            is_valid.then_some(key)
        });
        let Ok(Some(key)) = checked else {
            tracing::warn!(
                subject = stored.subject,
                seq = stored.seq,
                "message dropped: its content does not match its subject"
            );
            return None;
        };
        Some(Self {
            seq: stored.seq,
            key,
            to: (*to).to_owned(),
            from: (*from).to_owned(),
            incarnation: stored.header(INCARNATION).unwrap_or_default().to_owned(),
            created: stored
                .header(CREATED)
                .and_then(|value| value.parse().ok())
                .unwrap_or_default(),
            json: json.to_owned(),
            read_json: OnceLock::new(),
        })
    }

    /// Returns the inbox entry, marked as read or unread.
    pub(crate) fn marked(&self, read: bool) -> Vec<u8> {
        if !read {
            return self.json.clone().into_bytes();
        }
        let mark = || {
            let inbox = format!("[{}]", self.json).into_bytes();
            let Ok(inbox) = Inbox::read(&inbox) else { return self.json.clone().into_bytes() };
            let marked = inbox.with_read(|_| true);
            let inner = marked.get(1..marked.len().saturating_sub(1));
            inner.map(<[u8]>::to_vec).unwrap_or_default()
        };
        self.read_json.get_or_init(mark).clone()
    }
}
