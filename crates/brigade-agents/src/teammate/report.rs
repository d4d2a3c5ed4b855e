//! What the team hears of a member: when it is idle, and what came of its turn.

use brigade_wire::generation::Generation;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::{IdleNotification, IdleReason, Protocol};
use brigade_wire::task::{Status, Task};

use super::{Sight, Teammate, TeammateError};
use crate::driver::{End, Event};
use brigade_core::clock::wire_time;
use brigade_core::event::{self, Record};
use brigade_core::mail::{self, MailError, with_message};

/// How much of an agent's last words goes into its report.
const LAST_WORDS: usize = 2_000;
/// How much of a message to a peer goes into a summary.
const SUMMARY: usize = 80;

/// What a turn came to so far.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// What it said since it last used a tool.
    words: String,
    /// Whom it wrote to last, beside the lead, and about what.
    wrote: Option<String>,
    /// The task it completed last.
    completed: Option<u64>,
}

impl Turn {
    /// The agent did something.
    pub(super) fn heard(&mut self, event: &Event) {
        match event {
            Event::TurnStarted => *self = Self::default(),
            Event::ToolStarted { .. } => self.words.clear(),
            Event::Said(words) => self.words.push_str(words),
            _ => {}
        }
    }

    /// The member did something to the team.
    pub(super) fn did(&mut self, record: &Record, lead: Option<&MemberName>) {
        match &record.event {
            event::Event::Sent { to, message, .. }
                if lead.is_none_or(|lead| to != lead.as_str()) =>
            {
                let about = with_message(message.get().as_bytes(), |message| {
                    let message = message?;
                    let about = message.summary().unwrap_or_else(|| message.text());
                    Some(cut(&about.replace('\n', " "), SUMMARY))
                });
                if let Ok(Some(about)) = about {
                    self.wrote = Some(format!("[to {to}] {about}"));
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

impl<S: FnMut(Sight)> Teammate<S> {
    /// Tells the lead that the member is idle, and why.
    pub(super) async fn report(&mut self, end: &End) -> Result<(), TeammateError> {
        let seat = &self.plan.seat;
        let Some(lead) = &self.lead else { return Ok(()) };
        let turn = std::mem::take(&mut self.turn);
        let failed = match end {
            End::Failed(why) | End::Limited(why) => Some(why.clone()),
            _ => None,
        };
        // Whoever tries in vain again and again says so once.
        if failed.is_some() && failed == self.failed {
            return Ok(());
        }
        self.failed = failed;
        let (idle_reason, failure_reason) = match end {
            End::Done => (IdleReason::Available, None),
            End::Interrupted => (IdleReason::Interrupted, None),
            End::Failed(why) | End::Limited(why) => {
                (IdleReason::Failed, Some(cut(why, LAST_WORDS)))
            }
        };
        let words = Some(cut(turn.words.trim(), LAST_WORDS)).filter(|words| !words.is_empty());
        let idle = IdleNotification {
            from: seat.name.to_string(),
            timestamp: wire_time(seat.clock.now()),
            idle_reason,
            summary: turn.wrote,
            completed_task_id: turn.completed.map(|id| id.to_string()),
            completed_status: turn.completed.map(|_| "resolved".to_owned()),
            failure_reason,
            result: words.filter(|_| self.generation == Generation::New),
        };
        let text = Protocol::from(idle).to_text();
        match mail::send_protocol(seat, lead, &text).await {
            // It left the team in the turn that has ended.
            Ok(_) | Err(MailError::Denied(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    let mut cut: String = text.chars().take(most).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
