//! The text of a message in the history.

use brigade_core::protocol_text;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use serde_json::value::RawValue;

/// Returns the sender of a message, and what it says: the summary or text of a message in plain text, or the report of any other.
pub(super) fn sender_and_text(message: &RawValue) -> (String, String) {
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let text = || message.summary().unwrap_or_else(|| message.text()).into_owned();
        let text = protocol_text::headline(&message.body()).unwrap_or_else(text);
        Some((message.from().into_owned(), text))
    });
    read.ok().flatten().unwrap_or_else(|| ("(unknown)".into(), message.get().to_owned()))
}

/// Returns the whole text of a message. Returns `None` if it cannot be read.
pub(crate) fn full_text(message: &RawValue) -> Option<String> {
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let body = message.body();
        let text = message.text();
        let summary = message.summary().unwrap_or_default();
        Some(match body {
            // Some senders repeat the beginning of the text as the summary.
            Body::Text if text.starts_with(summary.trim_end_matches('…')) => text.into_owned(),
            Body::Text => format!("{summary}\n{text}"),
            Body::Unknown { .. } | Body::Malformed { .. } => {
                let headline = protocol_text::headline(&body).unwrap_or_default();
                format!("{headline}\n{text}")
            }
            Body::Protocol(_) => protocol_text::full_text(&body)?,
        })
    });
    read.ok().flatten()
}
