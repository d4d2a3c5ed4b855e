//! Resends mail that Claude Code took out of its inbox but did not show to its model.
//!
//! As soon as Claude Code polls its inbox, it marks the mail as read or removes the mail from the inbox. Then it
//! holds the mail in memory until the current turn ends. When it shows the mail to its model, it also writes the
//! mail to its session transcript. If Claude Code is killed before it shows the mail, only our journal still has
//! the mail. So before we start Claude Code again, we compare the journal with the transcript. A message that is
//! in the journal but not in the transcript is sent again, unchanged, as a new inbox entry.
//!
//! The id of the new entry is derived from the id of the old entry, so both are recognized as the same message. A
//! second call of [`resend_lost_mail`] sends no second copy, unless the first copy is lost too.
//!
//! ```
//! use brigade_agents::resend::{ModelInput, ShownMessages, resend_lost_mail};
//! use brigade_core::mail;
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
//! mail::send(&lead, "bob", "hello").await?;
//! // Bob has not taken the message out of the inbox yet, so no message is lost.
//! let report = resend_lost_mail(&bob, &ModelInput::default(), &ShownMessages::default()).await?;
//! assert!(report.sent.is_empty());
//! # Ok(())
//! # }
//! ```

use std::collections::{HashMap, HashSet};

use brigade_core::wire::inbox::{is_read, with_message};
use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Builder;

use crate::delivery::RESUME_PROMPT;
use brigade_core::authority;
use brigade_core::clock::wire_time;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::hash::hash_128;
use brigade_core::mail::{self, MailError};
use brigade_core::seat::Seat;
use brigade_core::signature::KeyAhead;
use brigade_core::store::{Mark, Outgoing, StoreError};

/// Maximum age of a signature in the inbox. A message with an older signature is signed again. Claude Code 2.1.325
/// accepted a signature that was two minutes old and rejected one that was four minutes old.
const SIGNATURE_MAX_AGE: SignedDuration = SignedDuration::from_secs(60);

/// The input that a member's model received, according to the member's session transcripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInput {
    /// The user turns that the model saw, oldest first.
    pub turns: Vec<String>,
    /// Identifies the last turn, if that turn did not finish.
    pub unfinished: Option<String>,
}

/// The start of a message envelope. The sender's name follows.
const ENVELOPE_START: &str = "<teammate-message teammate_id=\"";

/// The envelopes that a model received, indexed by claimed sender and first line of the text. We look up every
/// message, and there are about as many envelopes as messages, so a linear search per message would be too slow.
struct Envelopes<'h> {
    by_line: HashMap<(&'h str, &'h str), Vec<(usize, &'h str)>>,
}

impl<'h> Envelopes<'h> {
    /// Indexes the envelopes in these turns. The caller must have called [`unescape`] on each turn.
    fn new(turns: &'h [String]) -> Self {
        let mut by_line: HashMap<_, Vec<_>> = HashMap::new();
        let starts = turns.iter().flat_map(|turn| {
            turn.match_indices(ENVELOPE_START).filter_map(|(at, open)| turn.get(at + open.len()..))
        });
        for (number, envelope) in starts.enumerate() {
            let Some((from, rest)) = envelope.split_once('"') else { continue };
            // Older versions of Claude Code do not escape the summary in the tag, so the tag may contain `>`.
            for (at, end) in rest.match_indices(">\n").take(16) {
                let Some(body) = rest.get(at + end.len()..) else { continue };
                if let Some((line, _)) = body.split_once('\n') {
                    by_line.entry((from, line)).or_default().push((number, body));
                }
            }
        }
        Self { by_line }
    }

    /// Returns how many envelopes carry this text from this sender.
    fn count(&self, from: &str, text: &str) -> usize {
        // Claude Code appends instructions to some messages, such as shutdown requests. The instructions begin on
        // a new line.
        let with_newline = format!("{}\n", unescape(text));
        let line = with_newline.split('\n').next().unwrap_or_default();
        let found = self.by_line.get(&(from, line)).into_iter().flatten();
        let found =
            found.filter(|(_, body)| body.starts_with(&with_newline)).map(|(number, _)| number);
        found.collect::<HashSet<_>>().len()
    }
}

/// Reverses the only escaping that Claude Code 2.1.325 applies to the text of a message.
fn unescape(text: &str) -> String {
    text.replace("<\\/teammate-message", "</teammate-message")
}

/// The messages that a member's model received, each identified by the key of the original message. The value
/// stays small even for long mailboxes, because `upto` covers most messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownMessages {
    /// Every message up to and including this one was shown.
    pub upto: Option<MessageKey>,
    /// Messages after `upto` that were shown.
    #[serde(rename = "shown")]
    pub beyond: HashSet<MessageKey>,
}

/// Result of [`resend_lost_mail`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResendReport {
    /// The messages that the model has received.
    pub shown: ShownMessages,
    /// The messages that were sent again, each identified by the key of the original message.
    pub sent: Vec<MessageKey>,
    /// Whether this call sent a message that asks the member to continue an interrupted turn.
    pub go_on: bool,
}

/// Resends the messages that a member's program took out of the inbox but did not show to its model. If the
/// signature of an unread message is too old to be accepted, signs and resends that message too. If the program
/// was killed during a turn, also sends a message that asks the member to continue.
///
/// Call this only while the member's program is not running. `known` is the [`ResendReport::shown`] of an earlier
/// call. `known` is needed because Claude Code may have deleted older transcripts.
pub async fn resend_lost_mail(
    seat: &Seat,
    heard: &ModelInput,
    known: &ShownMessages,
) -> Result<ResendReport, MailError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_teammate(seat, &team, "have its mail resent")?;
    let mut report = ResendReport::default();
    let mailbox = TrackedMailbox::read(seat, &team).await?;
    let mut shown = mailbox.expand(known);
    let turns: Vec<String> = heard.turns.iter().map(|turn| unescape(turn)).collect();
    let envelopes = Envelopes::new(&turns);
    let mut envelope_counts: HashMap<(&str, &str), usize> = HashMap::new();
    for tracked in &mailbox.messages {
        let (from, text) = (tracked.message.from.as_str(), tracked.message.text.as_str());
        let count =
            envelope_counts.entry((from, text)).or_insert_with(|| envelopes.count(from, text));
        if *count > 0 {
            *count -= 1;
            shown.insert(tracked.key);
        }
        let (last, at) = tracked.last;
        if shown.contains(&tracked.key) || mailbox.shown.contains(&last) {
            continue;
        }
        if mailbox.waiting.contains(&last) {
            if !tracked.signed || at + SIGNATURE_MAX_AGE >= seat.clock.now() {
                continue;
            }
            // Mark the old copy as read first. If we crash after this, the next call finds a message that the
            // member took but did not show to its model, and resends the message.
            seat.store.mark(&seat.team, &seat.name, &[last], Mark::Read).await?;
        }
        seat.store.send(&seat.team, &seat.name, &tracked.next_copy(seat, &team)?).await?;
        tracing::info!(team = %seat.team, member = %seat.name, from, "resent a message");
        report.sent.push(tracked.key);
    }
    report.shown = mailbox.compact(&shown);
    if let (Some(turn), Some(lead)) = (&heard.unfinished, team.lead().and_then(|lead| lead.name()))
    {
        let message = Outgoing {
            msg_id: derived_id(&[b"go on", turn.as_bytes()]),
            from: lead.into_owned(),
            text: RESUME_PROMPT.to_owned(),
            summary: None,
            timestamp: wire_time(seat.clock.now()),
            color: None,
            msg_v: Outgoing::msg_v(team.generation()),
            lead_sig: None,
            team_created: team.created_at().unwrap_or_default(),
        };
        report.go_on = !mailbox.all.contains(&message.key());
        if report.go_on {
            seat.store.send(&seat.team, &seat.name, &sign(seat, message)?).await?;
        }
    }
    Ok(report)
}

/// The content of a member's mailbox, read from the journal and the inbox.
#[derive(Default)]
struct TrackedMailbox {
    /// The messages to the model, oldest first.
    messages: Vec<TrackedMessage>,
    /// Every message that was ever in the mailbox.
    all: HashSet<MessageKey>,
    /// Unread messages in the inbox.
    waiting: HashSet<MessageKey>,
    /// Messages with a `shown` event in the journal.
    shown: HashSet<MessageKey>,
}

/// A message to the model, and the state of the message's copies.
struct TrackedMessage {
    key: MessageKey,
    message: Outgoing,
    /// Whether the lead signed the message with the key that the seat trusts.
    signed: bool,
    /// How many copies were sent after the original message.
    copies: u32,
    /// Key and journal time of the latest copy, or of the original message if there are no copies.
    last: (MessageKey, Timestamp),
}

impl TrackedMailbox {
    async fn read(seat: &Seat, team: &Team<'_>) -> Result<Self, StoreError> {
        let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
        let mut mailbox = Self::default();
        // The index of each message, by the key that the message's next copy will get.
        let mut next: HashMap<MessageKey, usize> = HashMap::new();
        let created = team.created_at().unwrap_or_default();
        for record in records.iter().filter(|record| record.belongs_to_team(created)) {
            let (key, json) = match &record.event {
                Event::Sent { key, message, .. } | Event::Seen { key, message, .. } => {
                    (*key, message.get().as_bytes())
                }
                Event::Shown { key, .. } => {
                    mailbox.shown.insert(*key);
                    continue;
                }
                _ => continue,
            };
            if !mailbox.all.insert(key) {
                continue;
            }
            let at = match next.remove(&key) {
                Some(at) => at,
                None => {
                    let tracked =
                        |message: Message<'_>| TrackedMessage::parse(seat, key, record, &message);
                    let tracked = with_message(json, |message| message.and_then(tracked));
                    let Ok(Some(tracked)) = tracked else { continue };
                    mailbox.messages.push(tracked);
                    mailbox.messages.len() - 1
                }
            };
            if let Some(tracked) = mailbox.messages.get_mut(at) {
                if key != tracked.key {
                    tracked.copies += 1;
                    tracked.last = (key, record.at);
                }
                next.insert(MessageKey::from_id(&tracked.next_id()), at);
            }
        }
        for mail in seat.store.inbox(&seat.team, &seat.name).await? {
            if matches!(is_read(&mail.json), Ok(false)) {
                mailbox.waiting.insert(mail.key);
            }
        }
        Ok(mailbox)
    }

    /// Returns the keys of all messages that `known` covers.
    fn expand(&self, known: &ShownMessages) -> HashSet<MessageKey> {
        let keys = || self.messages.iter().map(|tracked| tracked.key);
        let upto = keys().position(|key| Some(key) == known.upto).map_or(0, |at| at + 1);
        keys().take(upto).chain(known.beyond.iter().copied()).collect()
    }

    fn compact(&self, keys: &HashSet<MessageKey>) -> ShownMessages {
        let is_shown = |tracked: &&TrackedMessage| {
            keys.contains(&tracked.key) || self.shown.contains(&tracked.last.0)
        };
        let prefix_len = self.messages.iter().take_while(is_shown).count();
        let (all, rest) = self.messages.split_at(prefix_len);
        let beyond = rest.iter().filter(is_shown).map(|tracked| tracked.key).collect();
        ShownMessages { upto: all.last().map(|tracked| tracked.key), beyond }
    }
}

impl TrackedMessage {
    /// Returns `None` if the message is not for the model. For example, an answer to a request is for the process
    /// that sent the request, and that process is dead.
    fn parse(seat: &Seat, key: MessageKey, record: &Record, message: &Message<'_>) -> Option<Self> {
        let for_the_model = match message.body() {
            Body::Text | Body::Unknown { .. } | Body::Malformed { .. } => true,
            Body::Protocol(body) => matches!(
                body,
                Protocol::ShutdownRequest(_)
                    | Protocol::TaskAssignment(_)
                    | Protocol::IdleNotification(_)
            ),
        };
        let id = message.msg_id().unwrap_or_default().into_owned();
        let outgoing = Outgoing::copy_of(message, id);
        let signed = seat.lead_key.as_ref().is_some_and(|lead| lead.verifies(message));
        let last = (key, record.at);
        for_the_model.then_some(Self { key, message: outgoing, signed, copies: 0, last })
    }

    /// Returns the id for the next copy.
    fn next_id(&self) -> String {
        let (key, nth) = (self.key.to_string(), self.copies + 1);
        derived_id(&[b"again", key.as_bytes(), &nth.to_le_bytes()])
    }

    /// Returns the next copy. The copy gets a new signature only if the lead had signed the original; a message
    /// that only claimed to be from the lead stays unsigned.
    fn next_copy(&self, seat: &Seat, team: &Team<'_>) -> Result<Outgoing, KeyAhead> {
        let team_created = team.created_at().unwrap_or_default();
        let copy = Outgoing { msg_id: self.next_id(), team_created, ..self.message.clone() };
        if self.signed { sign(seat, copy) } else { Ok(copy) }
    }
}

/// Signs the message as the lead, with the current time.
fn sign(seat: &Seat, message: Outgoing) -> Result<Outgoing, KeyAhead> {
    let Some(signer) = &seat.signer else { return Ok(message) };
    let timestamp = wire_time(seat.clock.now());
    mail::signed(signer.as_ref(), &seat.name, Outgoing { timestamp, ..message })
}

/// Derives a UUID from these parts; the same parts always give the same UUID.
fn derived_id(parts: &[&[u8]]) -> String {
    Builder::from_random_bytes(hash_128(["first", "second"], parts)).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear search per message would make this test run for hours.
    #[test]
    fn finds_each_of_many_messages_among_many_turns() {
        let many = 20_000;
        let envelope = |number: usize| {
            let text = format!("word {number}\n{}", "and more ".repeat(40));
            let from = if number.is_multiple_of(2) { "alice" } else { "bob" };
            (
                from,
                format!("{ENVELOPE_START}{from}\" summary=\"a > b\">\n{text}\n</teammate-message>"),
                text,
            )
        };
        let turns: Vec<String> = (0..many).map(|number| envelope(number).1).collect();
        let envelopes = Envelopes::new(&turns);
        for number in 0..many {
            let (from, _, text) = envelope(number);
            let other = if from == "alice" { "bob" } else { "alice" };
            assert_eq!(envelopes.count(from, &text), 1, "{number}");
            assert_eq!(envelopes.count(other, &text), 0, "{number}");
            assert_eq!(envelopes.count(from, "word"), 0, "{number}");
        }
    }
}
