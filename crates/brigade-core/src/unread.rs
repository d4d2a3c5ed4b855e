//! The rule for counts of unread messages. Every view uses it, so that their numbers agree.
//!
//! A count includes every unread message except two kinds: notices that contain only that a member is idle, and plan and permission
//! requests, which count as approvals.

use brigade_wire::body::Body;
use brigade_wire::protocol::{IdleReason, Protocol};

use crate::store::Mail;

/// Returns how many of these messages are unread and counted.
pub fn count(mail: &[Mail]) -> usize {
    mail.iter().filter(|mail| mail.is_unread() && is_counted(mail)).count()
}

fn is_counted(mail: &Mail) -> bool {
    let is_counted = mail.read_with(|message| match message.body() {
        Body::Text => true,
        Body::Protocol(Protocol::IdleNotification(idle)) => {
            let text = idle.result.as_deref().unwrap_or_default();
            counts_idle(idle.idle_reason == IdleReason::Failed, text)
        }
        Body::Protocol(body) => counts(body.kind()),
        Body::Unknown { kind } | Body::Malformed { kind, .. } => counts(&kind),
    });
    is_counted.unwrap_or_default()
}

/// Returns whether a count includes protocol messages of this type. For a notice that a member is idle, see [`counts_idle`].
pub(crate) fn counts(kind: &str) -> bool {
    !matches!(kind, "plan_approval_request" | "permission_request" | "idle_notification")
}

/// Returns whether a count includes a notice that a member is idle: if its turn failed, or if the notice has the text with which
/// the turn ended.
pub(crate) fn counts_idle(has_failed: bool, text: &str) -> bool {
    has_failed || !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::MessageKey;

    #[test]
    fn idle_notices_and_requests_are_not_counted() {
        let idle = |fields: serde_json::Value| {
            let mut body = json!({ "type": "idle_notification", "from": "bob", "timestamp": "t" });
            body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            body.to_string()
        };
        let plan = json!({
            "type": "plan_approval_request", "from": "bob", "timestamp": "t", "planFilePath": "",
            "planContent": "x", "requestId": "p",
        });
        let agreed = json!({
            "type": "shutdown_approved", "requestId": "s", "from": "bob", "timestamp": "t",
        });
        for (text, is_counted) in [
            ("hello".to_owned(), 1),
            (idle(json!({ "idleReason": "available" })), 0),
            (idle(json!({ "idleReason": "available", "result": " " })), 0),
            (idle(json!({ "idleReason": "available", "result": "done" })), 1),
            (idle(json!({ "idleReason": "failed" })), 1),
            (plan.to_string(), 0),
            (agreed.to_string(), 1),
        ] {
            for (read, expected) in [(false, is_counted), (true, 0)] {
                let entry = json!({ "from": "bob", "text": text, "timestamp": "t", "read": read });
                let mail = Mail { key: MessageKey::from_id("m"), json: entry.to_string().into() };
                assert_eq!(count(&[mail]), expected, "{text}");
            }
        }
    }
}
