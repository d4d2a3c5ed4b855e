//! Describes protocol messages in plain text.

use brigade_core::action::{AgentAction, text_of};
use brigade_core::projection::{MessageRef, TeamProjection};
use brigade_wire::body::Body;
use brigade_wire::permission::PermissionVerdict;
use brigade_wire::protocol::{IdleNotification, IdleReason, Protocol};

/// The readable description of a protocol message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtocolSummary {
    /// The description in one line.
    pub(super) line: String,
    /// Additional text, shown when the message is opened.
    pub(super) details: String,
}

/// Describes a protocol message. Reads sender and recipient from the message's envelope, not from its text.
pub(super) fn describe(
    projection: &TeamProjection,
    message: &MessageRef,
    text: &str,
) -> ProtocolSummary {
    let (from, to) = (projection.name(message.from), projection.name(message.to));
    let protocol = match Body::parse(text) {
        Body::Protocol(protocol) => protocol,
        Body::Text => {
            return ProtocolSummary { line: format!("{from} → {to}"), details: text.to_owned() };
        }
        Body::Unknown { kind } => {
            let line = format!("{from} sent {to} a message of unknown type {kind}");
            return ProtocolSummary { line, details: text.to_owned() };
        }
        Body::Malformed { kind, reason } => {
            let line = format!("{from} sent {to} an invalid {kind} message: {reason}");
            return ProtocolSummary { line, details: text.to_owned() };
        }
    };
    let (line, details) = match protocol {
        Protocol::IdleNotification(idle) => (idle_line(from, &idle), idle_details(idle)),
        Protocol::TaskAssignment(task) => (
            format!("{from} assigned task {} to {to}: {}", task.task_id, task.subject),
            task.description,
        ),
        Protocol::ShutdownRequest(asked) => {
            (with_reason(format!("{from} asks {to} to stop"), asked.reason), String::new())
        }
        Protocol::ShutdownApproved(_) => (format!("{from} agrees to stop"), String::new()),
        Protocol::ShutdownRejected(no) => {
            (with_reason(format!("{from} refuses to stop"), no.reason), String::new())
        }
        Protocol::PlanApprovalRequest(plan) => {
            let title = plan.plan_content.lines().map(|line| line.trim_start_matches('#').trim());
            let title = title.filter(|line| !line.is_empty()).map(str::to_owned).next();
            (with_reason(format!("{from} submits a plan"), title), plan.plan_content)
        }
        Protocol::PlanApprovalResponse(answer) if answer.approved => {
            (with_reason(format!("{from} approved {to}'s plan"), answer.feedback), String::new())
        }
        Protocol::PlanApprovalResponse(answer) => {
            (with_reason(format!("{from} rejected {to}'s plan"), answer.feedback), String::new())
        }
        Protocol::PermissionRequest(asked) => {
            let action = AgentAction::from_message(&asked);
            let line = format!("{from} asks to {}", action.summary());
            let why = action.command().is_none().then_some(asked.description);
            (with_reason(line, why), text_of(&action.render(None)))
        }
        Protocol::PermissionResponse(answer) => match answer.verdict {
            PermissionVerdict::Success(_) => {
                (format!("{from} approved {to}'s request"), String::new())
            }
            PermissionVerdict::Error(why) => {
                (with_reason(format!("{from} denied {to}'s request"), Some(why)), String::new())
            }
        },
        Protocol::TeammateTerminated(gone) => (gone.message, String::new()),
        other => (format!("{from} sent {to} a message of type {}", other.kind()), other.to_text()),
    };
    ProtocolSummary { line, details }
}

/// Describes consecutive idle notices in one line.
pub(super) fn idle_notices<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut count = 0;
    let mut different: Vec<&str> = Vec::new();
    for name in names {
        count += 1;
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let more = different.len().saturating_sub(5);
    different.truncate(5);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{count} idle notices ({}{more})", different.join(", "))
}

fn with_reason(line: String, why: Option<String>) -> String {
    match why.filter(|why| !why.trim().is_empty()) {
        Some(why) => format!("{line}: {why}"),
        None => line,
    }
}

fn idle_line(from: &str, idle: &IdleNotification) -> String {
    let mut line = match &idle.idle_reason {
        IdleReason::Available => format!("{from} is idle"),
        IdleReason::Interrupted => format!("{from} was interrupted and is idle"),
        IdleReason::Failed => format!("{from} failed and is idle"),
        IdleReason::Other(reason) => format!("{from} is idle ({reason})"),
    };
    if let Some(task) = &idle.completed_task_id {
        let status = idle.completed_status.as_deref().unwrap_or("completed");
        line.push_str(&format!(", task {task} {status}"));
    }
    with_reason(line, idle.failure_reason.clone())
}

fn idle_details(idle: IdleNotification) -> String {
    let parts = [idle.summary, idle.result];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}
