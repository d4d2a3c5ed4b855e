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
fn advised(error: &dyn std::error::Error, advice: &str) -> Refusal {
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

fn members_are(members: &[String]) -> String {
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
        advised(&error, advice)
    }
}

impl From<Denied> for Refusal {
    fn from(error: Denied) -> Self {
        match &error {
            Denied::NotAMember { who, members, .. } => {
                let join = format!("a person can add it with `brigade team join {who}`");
                advised(&error, &format!("{}; {join}", members_are(members)))
            }
            Denied::LeadOnly { .. } => advised(&error, "ask the lead with send_message"),
            Denied::PersonOnly { .. } => {
                advised(&error, "leave it open, a person answers with `brigade approvals`")
            }
            _ => advised(&error, ""),
        }
    }
}

impl From<MailError> for Refusal {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Store(error) => error.into(),
            MailError::Denied(error) => error.into(),
            MailError::NoMember { ref members, .. } => advised(&error, &members_are(members)),
            MailError::Protocol { .. } => advised(
                &error,
                "use the tool for it (request_shutdown, answer_shutdown, answer_plan, …), or put \
                 text around the JSON",
            ),
            MailError::TooLong { .. } => advised(&error, "write a file and send its path"),
            MailError::Partly { .. } => advised(&error, "send it to the others again"),
            MailError::Envelope => advised(&error, "spell the tag in another way"),
            _ => advised(&error, ""),
        }
    }
}

impl From<BoardError> for Refusal {
    fn from(error: BoardError) -> Self {
        match error {
            BoardError::Store(error) => error.into(),
            BoardError::Denied(error) => error.into(),
            BoardError::NoMember { ref members, .. } => advised(&error, &members_are(members)),
            BoardError::NoTask(_) => advised(&error, "task_list shows the existing tasks"),
            BoardError::Taken { .. } => {
                advised(&error, "choose another with task_list, or write to its owner")
            }
            BoardError::Blocked { .. } | BoardError::Done(_) => {
                advised(&error, "choose another with task_list")
            }
            BoardError::TooLong { .. } => advised(&error, "write a file and pass its path"),
            BoardError::NotTold { .. } => advised(&error, "notify it with send_message"),
            _ => advised(&error, ""),
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
                advised(&error, "ask them to stop with request_shutdown first")
            }
            _ => advised(&error, ""),
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
                advised(&error, "no request is open")
            }
            HandshakeError::NoRequest { ref open, .. } => {
                advised(&error, &format!("open requests: {}", open.join(", ")))
            }
            HandshakeError::Answered { first: Some(ref first), .. } => {
                advised(&error, &first.to_string())
            }
            _ => advised(&error, ""),
        }
    }
}
