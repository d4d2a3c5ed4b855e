//! Reports to the lead that a member is idle. The report describes the member's last turn.

use brigade_core::wire::inbox::with_message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::{IdleNotification, IdleReason, Protocol};
use brigade_wire::task::{Status, Task};

use super::{TeammateEvent, TeammateLoop};
use crate::driver::{AgentEvent, TurnEnd};
use brigade_core::clock::wire_time;
use brigade_core::event::{self, Record};

/// Maximum length of the final text or failure reason in a report, in characters.
const MAX_RESULT: usize = 2_000;
/// Maximum length of the excerpt from a message to another member, in characters.
const MAX_SUMMARY: usize = 80;

/// The results of the current turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The text that the agent wrote after it last used a tool.
    text: String,
    /// Recipient and excerpt of the last message that the member sent to a member other than the lead.
    last_message: Option<String>,
    /// The task that the member completed last.
    completed: Option<u64>,
}

impl Turn {
    /// Handles an event reported by the agent.
    pub(super) fn on_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::TurnStarted => *self = Self::default(),
            AgentEvent::ToolStarted { .. } => self.text.clear(),
            AgentEvent::Said(text) => self.text.push_str(text),
            _ => {}
        }
    }

    /// Handles a team event caused by this member.
    pub(super) fn on_own_event(&mut self, record: &Record, lead: Option<&MemberName>) {
        match &record.event {
            event::Event::Sent { to, message, .. }
                if lead.is_none_or(|lead| to != lead.as_str()) =>
            {
                let about = with_message(message.get().as_bytes(), |message| {
                    let message = message?;
                    let about = message.summary().unwrap_or_else(|| message.text());
                    Some(truncate(&about.replace('\n', " "), MAX_SUMMARY))
                });
                if let Ok(Some(about)) = about {
                    self.last_message = Some(format!("[to {to}] {about}"));
                }
            }
            event::Event::Task { id, task } => {
                let done = Task::read(task.get().as_bytes()).ok().and_then(|task| task.status());
                if done == Some(Status::Completed) {
                    self.completed = Some(*id);
                }
            }
            _ => {}
        }
    }
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Creates a report that the member is idle. The report states how the member's last turn ended. Returns `None` if
    /// there is nothing to report.
    pub(super) fn report(&mut self, end: &TurnEnd) -> Option<String> {
        let seat = &self.config.seat;
        self.lead.as_ref()?;
        let turn = std::mem::take(&mut self.turn);
        let failed = match end {
            TurnEnd::Failed(why) | TurnEnd::Limited(why) => Some(why.clone()),
            _ => None,
        };
        // If the same failure repeats, report it only once.
        if failed.is_some() && failed == self.failed {
            return None;
        }
        self.failed = failed;
        let (idle_reason, failure_reason) = match end {
            TurnEnd::Done => (IdleReason::Available, None),
            TurnEnd::Interrupted => (IdleReason::Interrupted, None),
            TurnEnd::Failed(why) | TurnEnd::Limited(why) => {
                (IdleReason::Failed, Some(truncate(why, MAX_RESULT)))
            }
        };
        let text = Some(truncate(turn.text.trim(), MAX_RESULT)).filter(|text| !text.is_empty());
        let idle = IdleNotification {
            from: seat.name.to_string(),
            timestamp: wire_time(seat.clock.now()),
            idle_reason,
            summary: turn.last_message,
            completed_task_id: turn.completed.map(|id| id.to_string()),
            completed_status: turn.completed.map(|_| "resolved".to_owned()),
            failure_reason,
            result: text.filter(|_| self.reports_result),
        };
        Some(Protocol::from(idle).to_text())
    }
}

fn truncate(text: &str, max: usize) -> String {
    let mut truncate: String = text.chars().take(max).collect();
    if truncate.len() < text.len() {
        truncate.push('…');
    }
    truncate
}
