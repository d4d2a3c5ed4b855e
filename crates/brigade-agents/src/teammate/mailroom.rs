//! What becomes of a message that arrives: something for the agent to read, or an answer to what it
//! asked.

use std::collections::HashSet;

use brigade_wire::body::Body;
use brigade_wire::envelope::{Envelope, Sender};
use brigade_wire::message::Message;
use brigade_wire::permission::{PermissionResponse, Verdict as Answer};
use brigade_wire::protocol::{PlanApprovalResponse, Protocol};
use brigade_wire::team::Team;

use super::{Sight, Teammate, TeammateError};
use crate::delivery::Parcel;
use crate::driver::{Access, Verdict};
use brigade_core::event::{Event, MessageKey};
use brigade_core::handshake::{self, Kind};
use brigade_core::mail::{self, Which};
use brigade_core::protocol_text;
use brigade_core::seat::Seat;
use brigade_core::store::Mark;

/// How much of one message an agent is given, in characters; each may become four in the envelope.
/// There is an end to what agents take at once, and what they do not take would be given for ever.
const LONGEST: usize = 250_000;
/// How much of its summary.
const LONGEST_SUMMARY: usize = 1_000;

/// What a message comes to.
enum Mail {
    /// The agent reads it.
    Read(Parcel),
    /// The lead answered a request for leave.
    Permission(PermissionResponse),
    /// The lead answered a plan.
    Plan(PlanApprovalResponse, Parcel),
}

impl<S: FnMut(Sight)> Teammate<S> {
    /// Looks at the inbox and deals with what is new; whether the member is still on the team.
    pub(super) async fn look(&mut self) -> Result<bool, TeammateError> {
        let seat = self.plan.seat.clone();
        if seat.role().await?.is_none() {
            return Ok(false);
        }
        self.mark_shown().await;
        let mut new = mail::inbox(&seat, &seat.name, Which::Unread).await?;
        new.retain(|mail| !self.delivery.has(mail.key) && !self.shown.contains(&mail.key));
        if new.is_empty() {
            let actions = self.delivery.arrived([]);
            self.act(actions).await;
            return Ok(true);
        }
        // Once: the past of a mailbox only grows.
        if self.seen.is_none() {
            self.seen = Some(seen_before(&seat).await?);
        }
        let sorted: Vec<(MessageKey, Option<Mail>)> = {
            let config = seat.config().await?;
            let team = seat.read(&config)?;
            new.iter().map(|mail| (mail.key, self.sort(&team, mail.key, &mail.json))).collect()
        };
        let mut parcels = Vec::new();
        let mut dealt_with = Vec::new();
        for (key, mail) in sorted {
            match mail {
                // Put back by somebody: whoever read it once need not again.
                _ if self.seen.as_ref().is_some_and(|seen| seen.contains(&key)) => {
                    dealt_with.push(key);
                }
                Some(Mail::Read(parcel)) => parcels.push(parcel),
                Some(Mail::Permission(answer)) => {
                    self.permission_answered(&answer, key).await?;
                    dealt_with.push(key);
                }
                Some(Mail::Plan(answer, parcel)) => {
                    if self.plan_answered(&answer, key).await? {
                        parcels.push(parcel);
                    } else {
                        dealt_with.push(key);
                    }
                }
                None => {}
            }
        }
        if !dealt_with.is_empty() {
            mail::mark(&seat, &dealt_with, Mark::Read).await?;
        }
        let actions = self.delivery.arrived(parcels);
        self.act(actions).await;
        Ok(true)
    }

    /// Tells what a message is. Only what the lead said, as far as can be told, is an answer; all
    /// else is words.
    fn sort(&self, team: &Team<'_>, key: MessageKey, json: &[u8]) -> Option<Mail> {
        let sorted = mail::with_message(json, |message| {
            let message = message?;
            let vouched = self.plan.seat.vouches_for(team, &message);
            let from_lead = self.lead.as_ref().is_some_and(|lead| message.from() == lead.as_str());
            let body = message.body();
            let sender = message.from().into_owned();
            let parcel = |text: &str, sender: Sender<'_>| Parcel {
                key: Some(key),
                text: envelope(&message, text, sender),
            };
            Some(match body {
                Body::Protocol(protocol) if vouched && from_lead => {
                    let text = told(&sender, &protocol);
                    let parcel = parcel(&text, Sender::Member(&sender));
                    match protocol {
                        Protocol::PermissionResponse(answer) => Mail::Permission(answer),
                        Protocol::PlanApprovalResponse(answer) => Mail::Plan(answer, parcel),
                        _ => Mail::Read(parcel),
                    }
                }
                Body::Protocol(
                    protocol @ (Protocol::TaskAssignment(_) | Protocol::IdleNotification(_)),
                ) if vouched => {
                    Mail::Read(parcel(&told(&sender, &protocol), Sender::Member(&sender)))
                }
                _ if vouched => Mail::Read(parcel(&message.text(), Sender::Member(&sender))),
                _ => Mail::Read(parcel(&message.text(), Sender::Unverified(&sender))),
            })
        });
        sorted.ok().flatten()
    }

    /// The lead's answer goes to the agent, if it was asked for and is the first.
    async fn permission_answered(
        &mut self,
        answer: &PermissionResponse,
        key: MessageKey,
    ) -> Result<(), TeammateError> {
        let id = &answer.request_id;
        if !handshake::counts(&self.plan.seat, Kind::Permission, id, key).await? {
            return Ok(());
        }
        let Some((_, ask)) = self.asks.remove(id) else { return Ok(()) };
        let verdict = match &answer.verdict {
            Answer::Success(_) => Verdict::Allow,
            Answer::Error(why) => Verdict::Deny(why.clone()),
        };
        self.driver.answer(ask, &verdict);
        let yes = verdict == Verdict::Allow;
        (self.sights)(Sight::Answered { request_id: id.clone(), yes });
        Ok(())
    }

    /// The lead's word on the plan; whether it counts.
    async fn plan_answered(
        &mut self,
        answer: &PlanApprovalResponse,
        key: MessageKey,
    ) -> Result<bool, TeammateError> {
        let id = &answer.request_id;
        if !handshake::counts(&self.plan.seat, Kind::Plan, id, key).await? {
            return Ok(false);
        }
        if answer.approved {
            self.planned = true;
            self.access = match answer.permission_mode.as_deref() {
                Some("bypassPermissions") => Access::Full,
                _ => Access::Ask,
            };
            self.driver.set_access(self.access);
            self.keep().await;
        }
        if let Some((_, ask)) = self.asks.remove(id) {
            let verdict = match (&answer.feedback, answer.approved) {
                (_, true) => Verdict::Allow,
                (Some(feedback), false) => Verdict::Deny(feedback.clone()),
                (None, false) => Verdict::Deny("the lead rejects the plan".to_owned()),
            };
            self.driver.answer(ask, &verdict);
        }
        (self.sights)(Sight::Answered { request_id: id.clone(), yes: answer.approved });
        Ok(true)
    }
}

/// The messages that were put before the member's model at any time.
async fn seen_before(seat: &Seat) -> Result<HashSet<MessageKey>, TeammateError> {
    let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
    let shown = records.iter().filter_map(|record| match record.event {
        Event::Shown { key, .. } => Some(key),
        _ => None,
    });
    Ok(shown.collect())
}

/// A message of the protocol for a model: in words, with what it needs to answer.
fn told(from: &str, protocol: &Protocol) -> String {
    let said = format!("{from} {}", protocol_text::of(protocol));
    match protocol {
        Protocol::ShutdownRequest(asked) => {
            let id = &asked.request_id;
            format!("request_id {id}: {said}\nAnswer with the tool answer_shutdown.")
        }
        Protocol::TaskAssignment(task) => {
            format!("{said}\nTake it with task_claim (taskId {}) and do it.", task.task_id)
        }
        _ => said,
    }
}

fn envelope(message: &Message<'_>, text: &str, sender: Sender<'_>) -> String {
    let summary = message.summary();
    let summary = summary.as_deref().map(|summary| cut(summary, LONGEST_SUMMARY).0);
    let color = message.color().and_then(|color| color.parse().ok());
    let (kept, more) = cut(text, LONGEST);
    let notice;
    let text = match more.chars().count() {
        0 => kept,
        more => {
            notice = format!("{kept}\n[{more} more characters of this message are left out]");
            &notice
        }
    };
    Envelope { sender, color, summary, text }.to_string()
}

/// The first characters of a text, so many at most, and the rest.
fn cut(text: &str, most: usize) -> (&str, &str) {
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use brigade_wire::inbox::Inbox;

    use super::*;

    /// Codex takes no more than a MiB at once, and what it does not take would be given for ever.
    #[test]
    fn no_message_is_too_long_for_an_agent() {
        for sign in ['m', '<', '\u{1f600}'] {
            let text = sign.to_string().repeat(2_000_000);
            let json = serde_json::json!([{
                "from": "bob", "text": text, "summary": text, "timestamp": "t", "read": false,
            }]);
            let json = json.to_string();
            let inbox = Inbox::read(json.as_bytes()).unwrap();
            let message = inbox.messages().next().unwrap();
            let envelope = envelope(&message, &text, Sender::Member("bob"));
            assert!(envelope.chars().count() < 1 << 20, "{sign}");
            assert!(envelope.contains("[1750000 more characters"), "{sign}");
            assert!(envelope.ends_with("\n</teammate-message>"), "{sign}");
        }
    }
}
