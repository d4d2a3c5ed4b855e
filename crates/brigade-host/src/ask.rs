//! Sends a question to a member and waits for its reply.
//!
//! An agent replies in one of two ways: it sends a message, or it ends its turn with a text. The first message from the member
//! after the question counts as the reply. Otherwise the text at the end of the turn in which the agent saw the question is the
//! reply.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, MessageKey, Record, TurnOutcome, WorkEvent};
use brigade_core::mail::{self, MessageText, Sent};
use brigade_core::seat::Seat;
use brigade_core::store::{MailContent, Mark};
use brigade_wire::inbox::with_message;
use brigade_wire::name::MemberName;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::HostError;
use crate::wait_for::{ConditionState, TeamSignals, check_member, concerns_member};
use crate::{Context, claude_led};

/// How long to wait for the notice that repeats the reply, so that it can be marked as read. A member that has more mail sends none.
const NOTICE_WITHIN: Duration = Duration::from_millis(500);

/// How an agent replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// With a message.
    Message,
    /// With the text at the end of its turn.
    TurnText,
}

/// The end of waiting for a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskEnd {
    /// The member replied.
    Replied(ReplyKind, String),
    /// The member cannot reply, for this reason. The question stays in its inbox.
    Failed(String),
    /// The member did not reply in time. The question stays in its inbox.
    TimedOut,
}

/// A question that was sent, and its reply.
#[derive(Debug)]
pub struct Asked {
    /// The receipt for the question.
    pub sent: Sent,
    /// The reply, or why there is none.
    pub end: AskEnd,
}

/// Sends a question to a member, as `mail::send` does, and waits for the reply. A reply in the caller's inbox is marked as read,
/// unless Claude Code owns the inbox.
pub async fn ask(
    context: &Context,
    to: &str,
    question: MessageText<'_>,
    timeout: Duration,
) -> Result<Asked, HostError> {
    let deadline = Instant::now() + timeout;
    let seat = claude_led::sending_seat(context, to).await?;
    // Subscribe before the question is sent, so that no reply is missed.
    let mut signals = TeamSignals::start(context, &seat, true).await?;
    let sent = mail::send(&seat, to, question).await?;
    let mut detector = ReplyDetector {
        me: seat.name.to_string(),
        member: sent.to.to_string(),
        question: MessageKey::from_id(&sent.receipt.msg_id),
        is_recorded: false,
        is_seen: false,
        turn_text: String::new(),
        reply: None,
    };
    let mut must_check = true;
    let end = loop {
        if must_check && let Some(why) = why_no_reply(context, &seat, &sent.to).await? {
            break AskEnd::Failed(why);
        }
        let recheck = Instant::now() + signals.recheck_interval;
        let record = signals.next(recheck.min(deadline)).await;
        if let Some(record) = &record
            && let Some(end) = detector.on_record(record)
        {
            break end;
        }
        if record.is_none() && Instant::now() >= deadline {
            break AskEnd::TimedOut;
        }
        must_check =
            record.is_none_or(|record: Arc<Record>| concerns_member(&record, sent.to.as_str()));
    };
    if matches!(end, AskEnd::Replied(ReplyKind::TurnText, _)) {
        detector.find_notice(&mut signals).await;
    }
    if let Some(key) = detector.reply
        && seat.store.is_ours(&seat.team).await?
    {
        mail::mark(&seat, &[key], Mark::Read).await?;
    }
    Ok(Asked { sent, end })
}

/// Returns why the member cannot reply; `None` if it can.
async fn why_no_reply(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    if seat.find_roster().await?.is_none() {
        return Ok(Some(format!("team {} was deleted", seat.team)));
    }
    let found = check_member(context, seat, name).await?;
    Ok((found.state == ConditionState::Failed).then_some(found.detail))
}

/// Finds the reply to a question among the events of a team.
#[derive(Debug)]
struct ReplyDetector {
    me: String,
    member: String,
    question: MessageKey,
    /// Whether the event of the question itself was there. Earlier messages are no replies.
    is_recorded: bool,
    /// Whether the member has read the question.
    is_seen: bool,
    /// The text that the agent has written in its turn since it last used a tool.
    turn_text: String,
    /// The message that is the reply, or the notice that repeats it.
    reply: Option<MessageKey>,
}

impl ReplyDetector {
    fn on_record(&mut self, record: &Record) -> Option<AskEnd> {
        match &record.event {
            Event::Sent { to, key, .. } if *to == self.member && *key == self.question => {
                self.is_recorded = true;
                None
            }
            Event::Read { to, key, .. } | Event::Shown { to, key }
                if *to == self.member && *key == self.question =>
            {
                (self.is_recorded, self.is_seen) = (true, true);
                None
            }
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message }
                if *to == self.me
                    && record.event.sender().as_deref() == Some(self.member.as_str()) =>
            {
                self.on_message(*key, message)
            }
            Event::Worked { name, act } if *name == self.member => self.on_work(act),
            Event::TeamDeleted {} => Some(AskEnd::Failed("the team was deleted".to_owned())),
            _ => None,
        }
    }

    fn on_message(&mut self, key: MessageKey, message: &RawValue) -> Option<AskEnd> {
        let content = with_message(message.get().as_bytes(), |message| {
            message.map(|message| MailContent::from_message(&message))
        });
        match content.ok().flatten()? {
            MailContent::Text(text) if self.is_recorded => {
                self.reply = Some(key);
                Some(AskEnd::Replied(ReplyKind::Message, text))
            }
            MailContent::TurnText(text) if self.is_seen => {
                self.reply = Some(key);
                Some(AskEnd::Replied(ReplyKind::TurnText, text))
            }
            MailContent::IdleNotice if self.is_seen => Some(self.without_reply()),
            _ => None,
        }
    }

    fn on_work(&mut self, act: &WorkEvent) -> Option<AskEnd> {
        match act {
            WorkEvent::TurnStarted {} | WorkEvent::ToolStarted { .. } => self.turn_text.clear(),
            WorkEvent::Said { text } => self.turn_text.push_str(text),
            WorkEvent::TurnEnded { end, why } if self.is_seen => {
                let why = why.as_deref().unwrap_or("no reason given");
                let member = &self.member;
                return Some(match end {
                    TurnOutcome::Done if self.turn_text.trim().is_empty() => self.without_reply(),
                    TurnOutcome::Done => {
                        let text = self.turn_text.trim().to_owned();
                        AskEnd::Replied(ReplyKind::TurnText, text)
                    }
                    TurnOutcome::Interrupted => {
                        AskEnd::Failed(format!("the turn of {member} was interrupted"))
                    }
                    TurnOutcome::Failed => {
                        AskEnd::Failed(format!("the turn of {member} failed: {why}"))
                    }
                    TurnOutcome::Limited => {
                        AskEnd::Failed(format!("{member} is rate-limited: {why}"))
                    }
                });
            }
            _ => {}
        }
        None
    }

    /// Waits for the notice with the text at the end of the turn. The turn ends before the member sends its notice.
    async fn find_notice(&mut self, signals: &mut TeamSignals) {
        let deadline = Instant::now() + NOTICE_WITHIN;
        while self.reply.is_none() && Instant::now() < deadline {
            if let Some(record) = signals.next(deadline).await {
                let _reported = self.on_record(&record);
            }
        }
    }

    fn without_reply(&self) -> AskEnd {
        AskEnd::Failed(format!("{} ended its turn without a reply", self.member))
    }
}
