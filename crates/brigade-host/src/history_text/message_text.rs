//! The text of a message in the history.

use brigade_core::action::AgentAction;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::permission::PermissionVerdict;
use brigade_wire::protocol::Protocol;
use serde_json::value::RawValue;

/// Returns the sender of a message, and the summary or text of the message.
pub(super) fn sender_and_text(message: &RawValue) -> (String, String) {
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let kind = match message.body() {
            Body::Text => None,
            Body::Protocol(Protocol::PermissionRequest(asked)) => {
                let summary = AgentAction::from_message(&asked).summary();
                Some(format!("[permission_request] {summary}"))
            }
            Body::Protocol(Protocol::PermissionResponse(answer)) => {
                let answer = match &answer.verdict {
                    PermissionVerdict::Success(_) => "yes".to_owned(),
                    PermissionVerdict::Error(why) => format!("no: {why}"),
                };
                Some(format!("[permission_response] {answer}"))
            }
            Body::Protocol(Protocol::PlanApprovalResponse(answer)) => {
                let word = if answer.approved { "yes" } else { "no" };
                let why = answer.feedback.as_ref().map(|why| format!(": {why}"));
                Some(format!("[plan_approval_response] {word}{}", why.unwrap_or_default()))
            }
            Body::Protocol(protocol) => Some(format!("[{}]", protocol.kind())),
            Body::Unknown { kind } | Body::Malformed { kind, .. } => Some(format!("[{kind}]")),
        };
        let text = || message.summary().unwrap_or_else(|| message.text()).into_owned();
        Some((message.from().into_owned(), kind.unwrap_or_else(text)))
    });
    read.ok().flatten().unwrap_or_else(|| ("(unknown)".into(), message.get().to_owned()))
}

/// Returns the summary and the whole text of a message in plain text; `None` for any other message.
pub(super) fn full_text(message: &RawValue) -> Option<String> {
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let text = message.text();
        let summary = message.summary().unwrap_or_default();
        match message.body() {
            // Some senders repeat the beginning of the text as the summary.
            Body::Text if text.starts_with(summary.trim_end_matches('…')) => {
                Some(text.into_owned())
            }
            Body::Text => Some(format!("{summary}\n{text}")),
            _ => None,
        }
    });
    read.ok().flatten()
}
