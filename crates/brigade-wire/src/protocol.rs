//! The protocol messages, each named after its `type`.
//!
//! One table, [`Protocol`], and one struct per row; the structs about permissions are in
//! [`permission`](crate::permission). The fields are in the order in which Claude Code writes them. A field that
//! only one generation or one outcome has is optional. Both spellings of a request's id are read. A body with a
//! duplicate field is malformed, because it is ambiguous.
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
            /// All types.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// Its `type`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $kind,)*
                }
            }

            /// The text of the message, with the bytes that Claude Code would write.
            pub fn to_text(&self) -> String {
                let fields = match self {
                    $(Self::$name(body) => compact(body),)*
                };
                let fields = fields.strip_prefix('{').unwrap_or_default();
                format!("{{\"type\":\"{}\",{fields}", self.kind())
            }

            /// Parses the JSON of a body of type `kind`; `None` if the type is unknown.
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
    /// The lead asks a teammate to stop.
    ShutdownRequest = "shutdown_request",
    /// The teammate stops.
    ShutdownApproved = "shutdown_approved",
    /// The teammate continues to work.
    ShutdownRejected = "shutdown_rejected",
    /// A teammate submits its plan.
    PlanApprovalRequest = "plan_approval_request",
    /// The lead approves or rejects a plan.
    PlanApprovalResponse = "plan_approval_response",
    /// A teammate requests permission to use a tool.
    PermissionRequest = "permission_request",
    /// The answer to a permission request.
    PermissionResponse = "permission_response",
    /// A teammate has ended. Claude Code delivers it as a turn from `system`, not through an inbox.
    TeammateTerminated = "teammate_terminated",
}

/// `idle_notification`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    /// The idle member.
    pub from: String,
    /// Since when.
    pub timestamp: String,
    /// Why.
    pub idle_reason: IdleReason,
    /// The recipient and summary of the last message that it sent: `[to bob] …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The task it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_task_id: Option<String>,
    /// How that task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_status: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The last text of the turn; new generation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Why a teammate is idle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum IdleReason {
    /// It has nothing to do.
    Available,
    /// A person stopped it.
    Interrupted,
    /// Its turn ended in an error.
    Failed,
    /// An unknown reason.
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

/// `task_assignment`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// The task, as written.
    pub task_id: String,
    /// Its subject.
    pub subject: String,
    /// Its description.
    pub description: String,
    /// The member that assigned it.
    pub assigned_by: String,
    /// When.
    pub timestamp: String,
}

/// `shutdown_request`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRequest {
    /// Its id, as written.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that asks.
    pub from: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub timestamp: String,
}

/// `shutdown_approved`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownApproved {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that stops.
    pub from: String,
    /// When.
    pub timestamp: String,
    /// The tmux pane that becomes free. Omitted by a teammate of the new generation that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// Where the member ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
}

/// `shutdown_rejected`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRejected {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// The member that continues.
    pub from: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub timestamp: String,
}

/// `plan_approval_request`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalRequest {
    /// The member whose plan it is.
    pub from: String,
    /// When it was submitted.
    pub timestamp: String,
    /// The path of the plan file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file_path: Option<String>,
    /// The full plan.
    pub plan_content: String,
    /// Its id, as written.
    #[serde(alias = "request_id")]
    pub request_id: String,
}

/// `plan_approval_response`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalResponse {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: String,
    /// Whether the plan is approved.
    pub approved: bool,
    /// What to improve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// When.
    pub timestamp: String,
    /// The permission mode that the teammate switches to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// SHA-256 of the approved plan, in hexadecimal; new generation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
}

/// `teammate_terminated`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeammateTerminated {
    /// A sentence that names the member.
    pub message: String,
}
