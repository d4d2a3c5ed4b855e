//! A message in the engine: the entry of an inbox, under a subject that says who wrote it.

use std::sync::OnceLock;

use brigade_core::event::MessageKey;
use brigade_core::mail::with_message;
use brigade_core::store::Outgoing;
use brigade_wire::body::Body;
use brigade_wire::inbox::Inbox;

use crate::layout::Weight;
use crate::read::Stored;
use crate::write::LIFE;

/// When the team it was meant for was created, in milliseconds.
pub(crate) const CREATED: &str = "Brigade-Created";

/// What asks for more than to be read. Only who may answer can send it; from anybody else it is
/// nothing.
const ANSWERS: [&str; 5] = [
    "plan_approval_response",
    "permission_response",
    "sandbox_permission_response",
    "mode_set_request",
    "team_permission_update",
];

/// How much a text asks for.
pub(crate) fn weight(text: &str) -> Weight {
    let answers = |kind: &str| ANSWERS.contains(&kind);
    let is_answer = match Body::parse(text) {
        Body::Text => false,
        Body::Protocol(protocol) => answers(protocol.kind()),
        Body::Unknown { kind } | Body::Malformed { kind, .. } => answers(&kind),
    };
    if is_answer { Weight::Answer } else { Weight::Words }
}

/// The entry that a message becomes.
pub(crate) fn entry(message: &Outgoing) -> String {
    serde_json::to_string(&message.as_new()).unwrap_or_default()
}

/// A message that was found in a mailbox, and is what it says it is.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) seq: u64,
    pub(crate) key: MessageKey,
    pub(crate) to: String,
    pub(crate) from: String,
    pub(crate) life: String,
    pub(crate) created: u64,
    /// The entry, not read.
    pub(crate) json: String,
    /// The entry, read, once somebody asked for it.
    read_json: OnceLock<Vec<u8>>,
}

impl Letter {
    /// Reads one. `None` for what no program of ours sends: who wrote it is what the server says, and
    /// a message that says otherwise, or that orders what its writer may not, is not delivered.
    pub(crate) fn read(stored: &Stored) -> Option<Self> {
        let tokens = stored.tokens();
        if !stored.subject.starts_with("mb.") {
            return None;
        }
        let [to, from, weight_token] = tokens.as_slice() else { return None };
        let json = str::from_utf8(&stored.payload).ok()?;
        let look = with_message(json.as_bytes(), |message| {
            let message = message?;
            let key = MessageKey::of(&message, 0);
            let honest = message.from() == *from
                && !message.read()
                && (*weight_token == Weight::Answer.token()
                    || weight(&message.text()) == Weight::Words);
            honest.then_some(key)
        });
        let Ok(Some(key)) = look else {
            tracing::warn!(
                subject = stored.subject,
                seq = stored.seq,
                "not delivered: not what it says"
            );
            return None;
        };
        Some(Self {
            seq: stored.seq,
            key,
            to: (*to).to_owned(),
            from: (*from).to_owned(),
            life: stored.header(LIFE).unwrap_or_default().to_owned(),
            created: stored.header(CREATED).and_then(|word| word.parse().ok()).unwrap_or_default(),
            json: json.to_owned(),
            read_json: OnceLock::new(),
        })
    }

    /// The entry with its mark.
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

#[cfg(test)]
mod tests {
    use super::{Weight, weight};

    #[test]
    fn what_grants_something_weighs_more_than_words() {
        let check = |text: &str, expected| assert_eq!(weight(text), expected, "{text}");
        check("hello", Weight::Words);
        check("permission_response", Weight::Words);
        check(r#"{"type":"permission_response","request_id":"1"}"#, Weight::Answer);
        check(r#" {"type":"plan_approval_response"}"#, Weight::Answer);
        check(r#"{"type":"shutdown_request","requestId":"1"}"#, Weight::Words);
        check(r#"{"type":"mode_set_request","nonsense":[]}"#, Weight::Answer);
    }
}
