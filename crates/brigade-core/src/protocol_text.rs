//! Renders protocol messages as text, for people and for models.
//!
//! ```
//! use brigade_core::wire::body::Body;
//! use brigade_core::{handshake, mail, protocol_text};
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! handshake::request_shutdown(&lead, "bob", Some("all is done")).await?;
//! let mail = mail::inbox(&bob, &bob.name, mail::InboxFilter::Unread).await?;
//! if let Some(Body::Protocol(protocol)) = mail[0].read_with(|message| message.body()) {
//!     assert_eq!(protocol_text::render(&protocol), "asks you to shut down: all is done");
//! }
//! # Ok(())
//! # }
//! ```

use brigade_wire::permission::{PermissionRequest, PermissionResponse, PermissionVerdict};
use brigade_wire::protocol::{IdleNotification, IdleReason, PlanApprovalResponse, Protocol};

use crate::action::{AgentAction, text_of};
use crate::text;

/// Renders a protocol message as a predicate: the text completes a sentence whose subject is the sender.
pub fn render(protocol: &Protocol) -> String {
    match protocol {
        Protocol::IdleNotification(idle) => idle_text(idle),
        Protocol::TaskAssignment(task) => {
            let head = format!("assigns you task {}: {}", task.task_id, task.subject);
            with_body(head, &task.description)
        }
        Protocol::ShutdownRequest(asked) => with_reason("asks you to shut down", &asked.reason),
        Protocol::ShutdownApproved(_) => "agrees to shut down".to_owned(),
        Protocol::ShutdownRejected(answer) => with_reason("declines to shut down", &answer.reason),
        Protocol::PlanApprovalRequest(asked) => {
            with_body("submits a plan for approval".to_owned(), &asked.plan_content)
        }
        Protocol::PlanApprovalResponse(answer) => plan_answer_text(answer),
        Protocol::PermissionRequest(asked) => {
            let text = text_of(&AgentAction::from_message(asked).render(None));
            with_body(permission_head(asked), &text)
        }
        Protocol::PermissionResponse(answer) => permission_answer_text(answer),
        Protocol::TeammateTerminated(notice) => notice.message.clone(),
        other => format!("sends {}", other.kind()),
    }
}

/// Returns the first line of a permission request. The lines below it show the action.
pub fn permission_head(asked: &PermissionRequest) -> String {
    let tool = asked.brigade.as_ref().map_or(&asked.tool_name, |original| &original.tool);
    let (tool, why) = (text::one_line(tool), text::one_line(&asked.description));
    format!("asks for permission to use {tool}: {why}")
}

/// Returns the request id that an answer must name; `None` if the message is not a request.
pub fn request_id(protocol: &Protocol) -> Option<&str> {
    match protocol {
        Protocol::ShutdownRequest(asked) => Some(&asked.request_id),
        Protocol::PlanApprovalRequest(asked) => Some(&asked.request_id),
        Protocol::PermissionRequest(asked) => Some(&asked.request_id),
        _ => None,
    }
}

fn idle_text(idle: &IdleNotification) -> String {
    let head = match &idle.idle_reason {
        IdleReason::Available => "is idle".to_owned(),
        IdleReason::Interrupted => "was interrupted and is idle".to_owned(),
        IdleReason::Failed => with_reason("failed and is idle", &idle.failure_reason),
        IdleReason::Other(reason) => format!("is idle ({reason})"),
    };
    let head = match (&idle.completed_task_id, &idle.completed_status) {
        (Some(task), Some(status)) => format!("{head}; task {task} {status}"),
        (Some(task), None) => format!("{head}; task {task} completed"),
        _ => head,
    };
    let head = match &idle.summary {
        Some(summary) => format!("{head}; last wrote {summary}"),
        None => head,
    };
    with_body(head, idle.result.as_deref().unwrap_or_default())
}

fn plan_answer_text(answer: &PlanApprovalResponse) -> String {
    if answer.approved {
        return "approves your plan; go ahead".to_owned();
    }
    with_reason("rejects your plan", &answer.feedback)
}

fn permission_answer_text(answer: &PermissionResponse) -> String {
    match &answer.verdict {
        PermissionVerdict::Success(_) => "grants the permission you asked for".to_owned(),
        PermissionVerdict::Error(why) => format!("denies the permission you asked for: {why}"),
    }
}

fn with_reason(what: &str, why: &Option<String>) -> String {
    match why.as_deref().filter(|why| !why.is_empty()) {
        Some(why) => format!("{what}: {why}"),
        None => what.to_owned(),
    }
}

fn with_body(head: String, text: &str) -> String {
    if text.is_empty() { head } else { format!("{head}\n{text}") }
}
