//! The result of a tool call: text for the model, and the same as structured content.

use brigade_core::authority::Denied;
use brigade_core::board::BoardError;
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::MailError;
use brigade_core::roster::RosterError;
use brigade_core::store::StoreError;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::{Value, json};

/// The result of a successful call.
pub(super) struct Reply {
    text: String,
    data: Value,
}

/// Structured content of a call that only reports success.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    success: bool,
    message: String,
}

impl Reply {
    /// A result with this text and this structured content.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        // Replies are plain data; this cannot fail.
        Self { text: text.into(), data: serde_json::to_value(data).unwrap_or_default() }
    }

    /// A result that is only a message.
    pub(super) fn done(message: String) -> Self {
        Self::new(message.clone(), &Done { success: true, message })
    }
}

impl From<Reply> for CallToolResult {
    fn from(reply: Reply) -> Self {
        let mut result = Self::success(vec![ContentBlock::text(reply.text)]);
        result.structured_content = Some(reply.data);
        result
    }
}

/// Why a call failed, in words the model can act on.
#[derive(Debug)]
pub(super) struct Refusal(String);

impl Refusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<Refusal> for CallToolResult {
    fn from(refusal: Refusal) -> Self {
        let data = json!({ "success": false, "message": refusal.0 });
        let mut result = Self::error(vec![ContentBlock::text(refusal.0)]);
        result.structured_content = Some(data);
        result
    }
}

/// An error with its causes, followed by advice.
fn with_advice(error: &dyn std::error::Error, advice: &str) -> Refusal {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    if !advice.is_empty() {
        text = format!("{text}; {advice}");
    }
    Refusal(text)
}

fn list_members(members: &[String]) -> String {
    format!("members are {}", members.join(", "))
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let advice = match &error {
            StoreError::Locked(_) => "another program is using it; try again in a moment",
            StoreError::NoTeam { .. } => "the team was deleted or does not exist yet",
            StoreError::TeamExists { .. } => "choose another name",
            _ => "",
        };
        with_advice(&error, advice)
    }
}

impl From<Denied> for Refusal {
    fn from(error: Denied) -> Self {
        match &error {
            Denied::NotAMember { who, members, .. } => {
                let join = format!("a person can add it with `brigade team join {who}`");
                with_advice(&error, &format!("{}; {join}", list_members(members)))
            }
            Denied::LeadOnly { .. } => with_advice(&error, "ask the lead with send_message"),
            Denied::PersonOnly { .. } => {
                with_advice(&error, "leave it open, a person answers with `brigade approvals`")
            }
            _ => with_advice(&error, ""),
        }
    }
}

impl From<MailError> for Refusal {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Store(error) => error.into(),
            MailError::Denied(error) => error.into(),
            MailError::NoMember { ref members, .. } => with_advice(&error, &list_members(members)),
            MailError::Protocol { .. } => with_advice(
                &error,
                "use the tool for it (request_shutdown, answer_shutdown, answer_plan, …), or put \
                 text around the JSON",
            ),
            MailError::TooLong { .. } => with_advice(&error, "write a file and send its path"),
            MailError::Partly { .. } => with_advice(&error, "send it to the others again"),
            MailError::Envelope => with_advice(&error, "spell the tag in another way"),
            _ => with_advice(&error, ""),
        }
    }
}

impl From<BoardError> for Refusal {
    fn from(error: BoardError) -> Self {
        match error {
            BoardError::Store(error) => error.into(),
            BoardError::Denied(error) => error.into(),
            BoardError::NoMember { ref members, .. } => with_advice(&error, &list_members(members)),
            BoardError::NoTask(_) => with_advice(&error, "task_list shows the existing tasks"),
            BoardError::Taken { .. } => {
                with_advice(&error, "choose another with task_list, or write to its owner")
            }
            BoardError::Blocked { .. } | BoardError::Done(_) => {
                with_advice(&error, "choose another with task_list")
            }
            BoardError::TooLong { .. } => with_advice(&error, "write a file and pass its path"),
            BoardError::NotTold { .. } => with_advice(&error, "notify it with send_message"),
            _ => with_advice(&error, ""),
        }
    }
}

impl From<RosterError> for Refusal {
    fn from(error: RosterError) -> Self {
        match error {
            RosterError::Store(error) => error.into(),
            RosterError::Denied(error) => error.into(),
            RosterError::Release(error) => error.into(),
            RosterError::StillActive { .. } => {
                with_advice(&error, "ask them to stop with request_shutdown first")
            }
            _ => with_advice(&error, ""),
        }
    }
}

impl From<HandshakeError> for Refusal {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Store(error) => error.into(),
            HandshakeError::Denied(error) => error.into(),
            HandshakeError::Send(error) => error.into(),
            HandshakeError::NoRequest { ref open, .. } if open.is_empty() => {
                with_advice(&error, "no request is open")
            }
            HandshakeError::NoRequest { ref open, .. } => {
                with_advice(&error, &format!("open requests: {}", open.join(", ")))
            }
            HandshakeError::Answered { first: Some(ref first), .. } => {
                with_advice(&error, &first.to_string())
            }
            _ => with_advice(&error, ""),
        }
    }
}
