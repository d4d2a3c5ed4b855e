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

use brigade_wire::body::Body;
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

/// Names what a message reports, without its sender: `task 3 assigned`. Returns `None` for plain text. The name of an unknown type is
/// untrusted text.
pub fn label(body: &Body) -> Option<String> {
    let protocol = match body {
        Body::Text => return None,
        Body::Unknown { kind } => return Some(format!("message of unknown type {kind}")),
        Body::Malformed { kind, .. } => return Some(format!("invalid message of type {kind}")),
        Body::Protocol(protocol) => protocol,
    };
    Some(match protocol {
        Protocol::IdleNotification(idle) => idle_label(idle),
        Protocol::TaskAssignment(task) => format!("task {} assigned", task.task_id),
        Protocol::ShutdownRequest(_) => "shutdown requested".to_owned(),
        Protocol::ShutdownApproved(_) => "shutdown accepted".to_owned(),
        Protocol::ShutdownRejected(_) => "shutdown declined".to_owned(),
        Protocol::PlanApprovalRequest(_) => "plan submitted".to_owned(),
        Protocol::PlanApprovalResponse(PlanApprovalResponse { approved: true, .. }) => {
            "plan approved".to_owned()
        }
        Protocol::PlanApprovalResponse(_) => "plan rejected".to_owned(),
        Protocol::PermissionRequest(_) => "permission requested".to_owned(),
        Protocol::PermissionResponse(PermissionResponse { verdict, .. }) => match verdict {
            PermissionVerdict::Success(_) => "permission granted".to_owned(),
            PermissionVerdict::Error(_) => "permission denied".to_owned(),
        },
        Protocol::TeammateTerminated(_) => "member terminated".to_owned(),
        other => format!("message of type {}", other.kind()),
    })
}

/// Describes a message without its sender: `task 3 assigned: Fix the parser`. Returns `None` for plain text. The text is untrusted and
/// may have several lines; the first one is enough for a list.
pub fn headline(body: &Body) -> Option<String> {
    let label = label(body)?;
    let protocol = match body {
        Body::Malformed { reason, .. } => return Some(format!("{label}: {reason}")),
        Body::Protocol(protocol) => protocol,
        _ => return Some(label),
    };
    let about = match protocol {
        Protocol::IdleNotification(idle) => idle_result(idle),
        Protocol::TaskAssignment(task) => Some(task.subject.clone()),
        Protocol::ShutdownRequest(asked) => asked.reason.clone(),
        Protocol::ShutdownRejected(answer) => answer.reason.clone(),
        Protocol::PlanApprovalRequest(asked) => {
            Some(asked.plan_content.trim_start_matches(['#', ' ', '\n']).to_owned())
        }
        Protocol::PlanApprovalResponse(answer) => answer.feedback.clone(),
        Protocol::PermissionRequest(asked) => {
            let action = AgentAction::from_message(asked).summary();
            return Some(format!("{label} to {action}"));
        }
        Protocol::PermissionResponse(PermissionResponse {
            verdict: PermissionVerdict::Error(why),
            ..
        }) => Some(why.clone()),
        Protocol::TeammateTerminated(notice) => Some(notice.message.clone()),
        _ => None,
    };
    Some(with_reason(&label, &about.map(|about| about.trim().to_owned())))
}

/// Describes a message as [`headline`] does, and adds the rest of its text: the description of a task, or the whole request.
pub fn full_text(body: &Body) -> Option<String> {
    let headline = headline(body)?;
    Some(match body {
        Body::Protocol(Protocol::TaskAssignment(task)) => with_body(headline, &task.description),
        Body::Protocol(Protocol::PermissionRequest(asked)) => {
            with_body(headline, &text_of(&AgentAction::from_message(asked).render(None)))
        }
        _ => headline,
    })
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

fn idle_label(idle: &IdleNotification) -> String {
    let label = match &idle.idle_reason {
        IdleReason::Available => "turn ended".to_owned(),
        IdleReason::Interrupted => "turn interrupted".to_owned(),
        IdleReason::Failed => "turn failed".to_owned(),
        IdleReason::Other(reason) => format!("turn ended ({reason})"),
    };
    match &idle.completed_task_id {
        Some(task) => {
            let status = idle.completed_status.as_deref().unwrap_or("completed");
            format!("{label}, task {task} {status}")
        }
        None => label,
    }
}

/// Returns why the turn failed, and the text with which it ended; if there is none, the last message of the turn.
fn idle_result(idle: &IdleNotification) -> Option<String> {
    let why = idle.failure_reason.as_deref();
    let result = idle.result.as_deref().filter(|result| !result.trim().is_empty());
    let last_message = idle.summary.as_ref().map(|summary| format!("last wrote {summary}"));
    let result = result.map(str::to_owned).or(last_message);
    let parts: Vec<&str> = why.into_iter().chain(result.as_deref()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_described_in_plain_words() {
        let (from, timestamp) = ("bob", "2026-11-15T12:00:00.000Z");
        let idle = |reason: &str, more: serde_json::Value| {
            let mut body = json!({
                "type": "idle_notification", "from": from, "timestamp": timestamp, "idleReason": reason,
            });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let permission = |verdict: serde_json::Value| {
            let mut body = json!({ "type": "permission_response", "request_id": "perm-1" });
            body.as_object_mut().unwrap().extend(verdict.as_object().unwrap().clone());
            body
        };
        let plan_answer = |approved: bool| {
            json!({
                "type": "plan_approval_response", "requestId": "plan-1", "approved": approved,
                "feedback": "too long", "timestamp": timestamp,
            })
        };
        for (body, expected) in [
            (idle("available", json!({})), "turn ended"),
            (
                idle("available", json!({ "result": "Done.\nAll of it." })),
                "turn ended: Done.\nAll of it.",
            ),
            (
                idle("available", json!({ "summary": "[to ada] hi", "completedTaskId": "3" })),
                "turn ended, task 3 completed: last wrote [to ada] hi",
            ),
            (idle("interrupted", json!({})), "turn interrupted"),
            (idle("failed", json!({ "failureReason": "no disk" })), "turn failed: no disk"),
            (
                json!({
                    "type": "task_assignment", "taskId": "3", "subject": "Build", "description": "all",
                    "assignedBy": "team-lead", "timestamp": timestamp,
                }),
                "task 3 assigned: Build",
            ),
            (
                json!({
                    "type": "shutdown_request", "requestId": "s", "from": "team-lead", "reason": "done",
                    "timestamp": timestamp,
                }),
                "shutdown requested: done",
            ),
            (
                json!({ "type": "shutdown_approved", "requestId": "s", "from": from, "timestamp": timestamp }),
                "shutdown accepted",
            ),
            (
                json!({
                    "type": "shutdown_rejected", "requestId": "s", "from": from, "reason": "busy",
                    "timestamp": timestamp,
                }),
                "shutdown declined: busy",
            ),
            (
                json!({
                    "type": "plan_approval_request", "from": from, "timestamp": timestamp,
                    "planContent": "# Plan\n\n1. read", "requestId": "plan-1",
                }),
                "plan submitted: Plan\n\n1. read",
            ),
            (plan_answer(true), "plan approved: too long"),
            (plan_answer(false), "plan rejected: too long"),
            (
                json!({
                    "type": "permission_request", "request_id": "perm-1", "agent_id": "bob",
                    "tool_name": "Bash", "tool_use_id": "t", "description": "d",
                    "input": { "command": "make\nmake test" }, "permission_suggestions": [],
                }),
                "permission requested to run: make … (+1 line)",
            ),
            (permission(json!({ "subtype": "success", "response": {} })), "permission granted"),
            (permission(json!({ "subtype": "error", "error": "no" })), "permission denied: no"),
            (
                json!({ "type": "teammate_terminated", "message": "bob left" }),
                "member terminated: bob left",
            ),
            (json!({ "type": "news" }), "message of unknown type news"),
        ] {
            assert_eq!(
                headline(&Body::parse(&body.to_string())).as_deref(),
                Some(expected),
                "{body}"
            );
        }
        let invalid = headline(&Body::parse(r#"{"type":"shutdown_request"}"#)).unwrap();
        assert!(invalid.starts_with("invalid message of type shutdown_request: "), "{invalid}");
        assert_eq!(headline(&Body::Text), None);
    }
}
