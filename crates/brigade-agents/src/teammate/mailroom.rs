//! Sorts incoming messages. Some are texts for the agent to read, and some are answers to the agent's requests.

use std::borrow::Cow;
use std::collections::HashSet;

use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::envelope::{Envelope, Sender};
use brigade_wire::message::Message;
use brigade_wire::permission::{PermissionResponse, PermissionVerdict as Answer};
use brigade_wire::protocol::{PlanApprovalResponse, Protocol};
use brigade_wire::team::Team;

use super::{TeammateError, TeammateEvent, TeammateLoop};
use crate::delivery::Item;
use crate::driver::{Access, EDIT_NOT_POSSIBLE, PermissionAnswer};
use brigade_core::event::{Event, MessageKey};
use brigade_core::handshake::{self, Acceptance, GrantedInput, Request, RequestKind};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::protocol_text;
use brigade_core::seat::Seat;
use brigade_core::store::{MailQuery, Mark, Outgoing};

/// Maximum length of a message's text, in characters, before it is escaped for the envelope. Escaping can turn
/// one character into four. Agents limit the size of their input, and a message above that limit would be
/// rejected and sent again forever.
const MAX_MESSAGE_CHARS: usize = 250_000;
/// Maximum length of a message's summary, in characters.
const MAX_SUMMARY_CHARS: usize = 1_000;

/// An incoming message, sorted by how it must be handled.
enum SortedMail {
    /// A message for the agent to read.
    Read(Item),
    /// The lead's answer to a permission request, and the message that contains it. The agent reads this message if its
    /// protocol has no field for the reason of a denial.
    Permission(PermissionResponse, Outgoing, Item),
    /// The lead's approval or rejection of a plan, and the message that contains it. The agent reads this message, too.
    Plan(PlanApprovalResponse, Outgoing, Item),
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Checks the inbox and handles new messages. Returns whether the member is still on the team.
    pub(super) async fn check_inbox(&mut self) -> Result<bool, TeammateError> {
        let seat = self.config.seat.clone();
        if seat.role().await?.is_none() {
            return Ok(false);
        }
        self.mark_shown().await;
        let mut new = mail::inbox(&seat, &seat.name, InboxFilter::Unread).await?;
        new.retain(|mail| !self.delivery.contains(mail.key) && !self.shown.contains(&mail.key));
        if new.is_empty() {
            let actions = self.delivery.enqueue([]);
            self.carry_out(actions).await;
            return Ok(true);
        }
        let keys = new.iter().map(|mail| mail.key).filter(|key| !self.seen.contains(key));
        let unknown: Vec<MessageKey> = keys.filter(|key| !self.just_sent.remove(key)).collect();
        let shown_before = shown_messages(&seat, &unknown).await?;
        let sorted: Vec<(MessageKey, Option<SortedMail>)> = {
            let roster = seat.roster().await?;
            let team = roster.team();
            new.iter().map(|mail| (mail.key, self.sort(&team, mail.key, &mail.json))).collect()
        };
        let mut items = Vec::new();
        let mut handled = Vec::new();
        for (key, mail) in sorted {
            match mail {
                // The model already saw this message, but the message was put back into the inbox. Do not show it
                // again.
                _ if self.seen.contains(&key) || shown_before.contains(&key) => handled.push(key),
                Some(SortedMail::Read(item)) => items.push(item),
                Some(SortedMail::Permission(answer, message, item)) => {
                    if self.permission_answered(&answer, key, message).await? {
                        items.push(item);
                    } else {
                        handled.push(key);
                    }
                }
                Some(SortedMail::Plan(answer, message, item)) => {
                    if self.plan_answered(&answer, key, message).await? {
                        items.push(item);
                    } else {
                        handled.push(key);
                    }
                }
                None => {}
            }
        }
        if !handled.is_empty() {
            mail::mark(&seat, &handled, Mark::Read).await?;
        }
        let actions = self.delivery.enqueue(items);
        self.carry_out(actions).await;
        Ok(true)
    }

    /// Sorts a message. A message counts as the answer to a request only if it is verified to come from the
    /// lead. Every other message is shown to the agent as text.
    fn sort(&self, team: &Team<'_>, key: MessageKey, json: &[u8]) -> Option<SortedMail> {
        let sorted = with_message(json, |message| {
            let message = message?;
            let verified = self.config.seat.is_authentic(team, &message);
            let from_lead = self.lead.as_ref().is_some_and(|lead| message.from() == lead.as_str());
            let body = message.body();
            let sender = message.from().into_owned();
            let item = |text: &str, sender: Sender<'_>| Item {
                message: Some(key),
                text: envelope(&message, text, sender),
            };
            Some(match body {
                Body::Protocol(protocol) if verified && from_lead => {
                    let text = render_protocol(&sender, &protocol);
                    let item = item(&text, Sender::Member(&sender));
                    let copy = || {
                        let id = message.msg_id().map(Cow::into_owned).unwrap_or_default();
                        Outgoing::copy_of(&message, id)
                    };
                    match protocol {
                        Protocol::PermissionResponse(answer) => {
                            SortedMail::Permission(answer, copy(), item)
                        }
                        Protocol::PlanApprovalResponse(answer) => {
                            SortedMail::Plan(answer, copy(), item)
                        }
                        _ => SortedMail::Read(item),
                    }
                }
                Body::Protocol(
                    protocol @ (Protocol::TaskAssignment(_)
                    | Protocol::IdleNotification(_)
                    | Protocol::PermissionRequest(_)),
                ) if verified => SortedMail::Read(item(
                    &render_protocol(&sender, &protocol),
                    Sender::Member(&sender),
                )),
                _ if verified => SortedMail::Read(item(&message.text(), Sender::Member(&sender))),
                _ => SortedMail::Read(item(&message.text(), Sender::Unverified(&sender))),
            })
        });
        sorted.ok().flatten()
    }

    /// Passes the lead's answer to the agent, unless the agent's request was already answered. Returns whether the agent must
    /// also read the message, because the answer has a reason that the agent's protocol cannot carry.
    async fn permission_answered(
        &mut self,
        answer: &PermissionResponse,
        key: MessageKey,
        message: Outgoing,
    ) -> Result<bool, TeammateError> {
        let (id, seat) = (&answer.request_id, self.config.seat.clone());
        let kind = RequestKind::Permission;
        // An earlier process of this member may have passed the answer on before the agent read the reason.
        let before = handshake::accepted_message(&seat, &seat.name, kind, id).await;
        let is_repeated = before.is_ok_and(|before| before == Some(key));
        match handshake::accept(&seat, kind, id, key, message).await? {
            Acceptance::Accepted { request, is_chosen } => {
                if !self.pass_on(&request, &answer.verdict) && !is_repeated {
                    let why = "the agent no longer waits for it".to_owned();
                    self.report_late(id, is_yes(&answer.verdict), &why).await;
                    return Ok(false);
                }
                return Ok(is_chosen && self.lacks_reason(&answer.verdict));
            }
            Acceptance::Late { request, first, is_new } => {
                if let Protocol::PermissionResponse(first) = &first.answer
                    && is_new
                {
                    self.pass_on(&request, &first.verdict);
                }
                self.report_late(id, is_yes(&answer.verdict), &first.to_string()).await;
            }
            Acceptance::Ignored => {}
        }
        Ok(false)
    }

    /// Returns whether an answer has a reason that the agent's protocol cannot carry.
    fn lacks_reason(&self, answer: &Answer) -> bool {
        let has_reason = matches!(answer, Answer::Error(why) if why != handshake::NO_REASON);
        has_reason && !self.driver.passes_on_reasons()
    }

    /// Passes an answer to the agent. Returns `false` if the agent no longer waits for it.
    fn pass_on(&mut self, request: &Request, answer: &Answer) -> bool {
        let Some((_, ask)) = self.asks.remove(&request.id) else { return false };
        let verdict = self.verdict(answer, &request.body);
        self.driver.answer(ask, &verdict);
        let yes = !matches!(verdict, PermissionAnswer::Deny(_));
        (self.observer)(TeammateEvent::Answered { request_id: request.id.clone(), yes });
        true
    }

    /// Informs the person and the lead that an answer had no effect. Claude Code's dialog cannot be closed from outside, so
    /// it may be answered after brigade answered the request.
    async fn report_late(&mut self, id: &str, yes: bool, why: &str) {
        let answer = if yes { "yes" } else { "no" };
        let text = format!("an answer came late and had no effect: {answer} to {id}; {why}");
        (self.observer)(TeammateEvent::Trouble(text.clone()));
        self.send_report(text).await;
    }

    /// Converts the lead's answer. If the lead changed the input, the original input must not run.
    fn verdict(&self, answer: &Answer, request: &Protocol) -> PermissionAnswer {
        let grant = match answer {
            Answer::Success(grant) => grant,
            Answer::Error(why) => return PermissionAnswer::Deny(why.clone()),
        };
        let Protocol::PermissionRequest(asked) = request else {
            return PermissionAnswer::Deny("the request is not for a permission".to_owned());
        };
        match handshake::granted_input(asked, grant) {
            GrantedInput::AsAsked => PermissionAnswer::Allow,
            GrantedInput::Edited(input) if self.driver.accepts_edited_input() => {
                PermissionAnswer::AllowEdited(input)
            }
            GrantedInput::Edited(_) | GrantedInput::Unclear => {
                PermissionAnswer::Deny(EDIT_NOT_POSSIBLE.to_owned())
            }
        }
    }

    /// Applies the lead's approval or rejection of a plan. Returns `false` if the message does not count, for
    /// example because the plan was already approved or rejected.
    async fn plan_answered(
        &mut self,
        answer: &PlanApprovalResponse,
        key: MessageKey,
        message: Outgoing,
    ) -> Result<bool, TeammateError> {
        let (id, seat) = (&answer.request_id, self.config.seat.clone());
        match handshake::accept(&seat, RequestKind::Plan, id, key, message).await? {
            Acceptance::Accepted { .. } => {}
            Acceptance::Late { first, is_new, .. } => {
                self.report_late(id, answer.approved, &first.to_string()).await;
                if let Protocol::PlanApprovalResponse(first) = &first.answer
                    && is_new
                {
                    self.apply_plan_answer(first).await;
                }
                return Ok(false);
            }
            Acceptance::Ignored => return Ok(false),
        }
        self.apply_plan_answer(answer).await;
        Ok(true)
    }

    async fn apply_plan_answer(&mut self, answer: &PlanApprovalResponse) {
        let id = &answer.request_id;
        if answer.approved {
            self.plan_approved = true;
            self.access = match answer.permission_mode.as_deref() {
                Some("bypassPermissions") => Access::Full,
                _ => Access::Ask,
            };
            self.driver.set_access(self.access);
            self.save().await;
        }
        if let Some((_, ask)) = self.asks.remove(id) {
            let verdict = match (&answer.feedback, answer.approved) {
                (_, true) => PermissionAnswer::Allow,
                (Some(feedback), false) => PermissionAnswer::Deny(feedback.clone()),
                (None, false) => PermissionAnswer::Deny("the lead rejected the plan".to_owned()),
            };
            self.driver.answer(ask, &verdict);
        }
        (self.observer)(TeammateEvent::Answered { request_id: id.clone(), yes: answer.approved });
    }
}

fn is_yes(answer: &Answer) -> bool {
    matches!(answer, Answer::Success(_))
}

/// Returns those of the messages that the member's model has seen before.
async fn shown_messages(
    seat: &Seat,
    keys: &[MessageKey],
) -> Result<HashSet<MessageKey>, TeammateError> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let records = seat.store.find_mail(&seat.team, &seat.name, MailQuery::Shown(keys)).await?;
    let shown = records.iter().filter_map(|record| match record.event {
        Event::Shown { key, .. } => Some(key),
        _ => None,
    });
    Ok(shown.collect())
}

/// Renders a protocol message for a model, with the information needed to answer it.
fn render_protocol(from: &str, protocol: &Protocol) -> String {
    let text = format!("{from} {}", protocol_text::render(protocol));
    match protocol {
        Protocol::ShutdownRequest(asked) => {
            let id = &asked.request_id;
            format!("request_id {id}: {text}\nAnswer with the tool answer_shutdown.")
        }
        Protocol::PermissionRequest(asked) => {
            let id = &asked.request_id;
            format!("request_id {id}: {text}\nAnswer with the tool answer_permission.")
        }
        Protocol::TaskAssignment(task) => {
            format!("{text}\nTake it with task_claim (taskId {}) and do it.", task.task_id)
        }
        _ => text,
    }
}

fn envelope(message: &Message<'_>, text: &str, sender: Sender<'_>) -> String {
    let summary = message.summary();
    let summary = summary.as_deref().map(|summary| split_after(summary, MAX_SUMMARY_CHARS).0);
    let color = message.color().and_then(|color| color.parse().ok());
    let (kept, more) = split_after(text, MAX_MESSAGE_CHARS);
    let notice;
    let text = match more.chars().count() {
        0 => kept,
        more => {
            notice = format!("{kept}\n[{more} more characters of this message were cut]");
            &notice
        }
    };
    Envelope { sender, color, summary, text }.to_string()
}

/// Splits a text after at most `max` characters.
fn split_after(text: &str, max: usize) -> (&str, &str) {
    let end = text.char_indices().nth(max).map_or(text.len(), |(end, _)| end);
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use brigade_wire::inbox::Inbox;

    use super::*;

    /// Codex accepts at most 1 MiB of input. A rejected message would be sent again forever.
    #[test]
    fn messages_are_cut_to_what_agents_accept() {
        for character in ['m', '<', '\u{1f600}'] {
            let text = character.to_string().repeat(2_000_000);
            let json = serde_json::json!([{
                "from": "bob", "text": text, "summary": text, "timestamp": "t", "read": false,
            }]);
            let json = json.to_string();
            let inbox = Inbox::read(json.as_bytes()).unwrap();
            let message = inbox.messages().next().unwrap();
            let envelope = envelope(&message, &text, Sender::Member("bob"));
            assert!(envelope.chars().count() < 1 << 20, "{character}");
            assert!(envelope.contains("[1750000 more characters"), "{character}");
            assert!(envelope.ends_with("\n</teammate-message>"), "{character}");
        }
    }
}
