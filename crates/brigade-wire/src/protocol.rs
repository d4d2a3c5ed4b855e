//! The protocol messages, each named after its `type`.
//!
//! [`Protocol`] lists the messages. Each message has a struct; the structs about permissions are in
//! [`permission`](crate::permission). The fields are in the order in which Claude Code writes them. A field is
//! optional if only one generation or one outcome has it. Both spellings of the request id field are read. A
//! message with a duplicate field is malformed, because it is ambiguous.
//!
//! ```
//! use brigade_wire::protocol::{IdleNotification, IdleReason, Protocol};
//!
//! let idle = Protocol::from(IdleNotification {
//!     from: "bob".into(),
//!     timestamp: "2026-11-15T12:00:00.000Z".into(),
//!     idle_reason: IdleReason::Available,
//!     summary: None,
//!     completed_task_id: None,
//!     completed_status: None,
//!     failure_reason: None,
//!     result: None,
//! });
//! assert_eq!(idle.kind(), "idle_notification");
//! assert!(idle.to_text().starts_with(r#"{"type":"idle_notification","from":"bob""#));
//! ```

use serde::{Deserialize, Serialize};

use crate::layout::compact;
use crate::permission::{PermissionRequest, PermissionResponse};

macro_rules! protocol {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        /// A protocol message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Protocol {
            $($(#[$doc])* $name($name),)*
        }

        impl Protocol {
            /// The `type` values of all protocol messages.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// Returns the message's `type`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $kind,)*
                }
            }

            /// Returns the text of the message, byte for byte as Claude Code would write it.
            pub fn to_text(&self) -> String {
                let fields = match self {
                    $(Self::$name(body) => compact(body),)*
                };
                let fields = fields.strip_prefix('{').unwrap_or_default();
                format!("{{\"type\":\"{}\",{fields}", self.kind())
            }

            /// Parses the JSON of a message of type `kind`; `None` if the type is unknown.
            pub(crate) fn read(
                kind: &str,
                json: &str,
            ) -> Option<serde_json::Result<Self>> {
                match kind {
                    $($kind => Some(serde_json::from_str(json).map(Self::$name)),)*
                    _ => None,
                }
            }
        }

        $(impl From<$name> for Protocol {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

protocol! {
    /// A teammate has ended a turn.
    IdleNotification = "idle_notification",
    /// A task has a new owner.
    TaskAssignment = "task_assignment",
    /// The lead asks a teammate to shut down.
    ShutdownRequest = "shutdown_request",
    /// The teammate agrees and shuts down.
    ShutdownApproved = "shutdown_approved",
    /// The teammate declines and continues to work.
    ShutdownRejected = "shutdown_rejected",
    /// A teammate submits its plan for approval.
    PlanApprovalRequest = "plan_approval_request",
    /// The lead approves or rejects a plan.
    PlanApprovalResponse = "plan_approval_response",
    /// A teammate requests permission to use a tool.
    PermissionRequest = "permission_request",
    /// The answer to a permission request.
    PermissionResponse = "permission_response",
    /// A teammate has terminated. Claude Code delivers this message as a turn from `system`, not through an inbox.
    TeammateTerminated = "teammate_terminated",
}

/// The fields of an `idle_notification` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    /// The member that is idle.
    pub from: String,
    /// When the member became idle.
    pub timestamp: String,
    /// Why the member is idle.
    pub idle_reason: IdleReason,
    /// The recipient and summary of the member's last message: `[to bob] …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The id of the task that the member completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_task_id: Option<String>,
    /// The final status of the task in `completed_task_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_status: Option<String>,
    /// The error, if the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The last text of the turn; only in the new generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Why a teammate is idle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum IdleReason {
    /// The teammate has nothing to do.
    Available,
    /// A person interrupted the teammate.
    Interrupted,
    /// The teammate's turn failed.
    Failed,
    /// A reason that brigade does not know.
    Other(String),
}

impl From<String> for IdleReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            "available" => Self::Available,
            "interrupted" => Self::Interrupted,
            "failed" => Self::Failed,
            _ => Self::Other(text),
        }
    }
}

impl From<IdleReason> for String {
    fn from(reason: IdleReason) -> Self {
        match reason {
            IdleReason::Available => "available".to_owned(),
            IdleReason::Interrupted => "interrupted".to_owned(),
            IdleReason::Failed => "failed".to_owned(),
            IdleReason::Other(text) => text,
        }
    }
}

/// The fields of a `task_assignment` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// The task id exactly as it appears in the message.
    pub task_id: String,
    /// The task's subject.
    pub subject: String,
    /// The task's description.
    pub description: String,
    /// The member that assigned the task.
    pub assigned_by: String,
    /// When the task was assigned.
    pub timestamp: String,
}

/// The fields of a `shutdown_request` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRequest {
    /// The request id exactly as it appears in the message.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that asks.
    pub from: String,
    /// Why the member should shut down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the request was made.
    pub timestamp: String,
}

/// The fields of a `shutdown_approved` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownApproved {
    /// The id of the request that is answered.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that shuts down.
    pub from: String,
    /// When the member answered.
    pub timestamp: String,
    /// The tmux pane that becomes free. A teammate of the new generation without a pane omits this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// Where the member ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
}

/// The fields of a `shutdown_rejected` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRejected {
    /// The id of the request that is answered.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that continues to work.
    pub from: String,
    /// Why the member declines to shut down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the member answered.
    pub timestamp: String,
}

/// The fields of a `plan_approval_request` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalRequest {
    /// The member that submits the plan.
    pub from: String,
    /// When the plan was submitted.
    pub timestamp: String,
    /// The path of the plan file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file_path: Option<String>,
    /// The full text of the plan.
    pub plan_content: String,
    /// The request id exactly as it appears in the message.
    #[serde(alias = "request_id")]
    pub request_id: String,
}

/// The fields of a `plan_approval_response` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalResponse {
    /// The id of the request that is answered.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// Whether the plan is approved.
    pub approved: bool,
    /// The improvements that the lead wants in a rejected plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// When the lead answered.
    pub timestamp: String,
    /// The permission mode to which the teammate switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The SHA-256 digest of the approved plan, in hexadecimal; only in the new generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
}

/// The fields of a `teammate_terminated` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeammateTerminated {
    /// A sentence that names the member.
    pub message: String,
}
