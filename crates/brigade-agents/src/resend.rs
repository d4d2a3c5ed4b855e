//! Mail that Claude Code took out of its inbox and its model never saw.
//!
//! Claude Code marks its mail read, or takes it out of the inbox, when it looks; it keeps it in memory
//! until its turn ends, and writes it into the record of its session when its model is given it. If it
//! is killed in between, nobody has it any more but our journal. So before it is started again the
//! journal is compared with the record, and what is in one and not in the other is sent again: the
//! words of its sender, as they were, in a new entry of the inbox.
//!
//! The id of the new entry is made of the old one, so that the two are known to be one message: doing
//! it twice is doing it once, and what was sent again and is lost again is sent a third time.
//!
//! ```
//! use brigade_agents::resend::{Heard, Shown, send_again};
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! mail::send(&lead, "bob", "hello").await?;
//! // Nobody has taken it yet, so nothing is missing.
//! let again = send_again(&bob, &Heard::default(), &Shown::default()).await?;
//! assert!(again.sent.is_empty());
//! # Ok(())
//! # }
//! ```

use std::collections::{HashMap, HashSet};

use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Builder;

use crate::delivery::GO_ON;
use brigade_core::authority;
use brigade_core::clock::wire_time;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::handshake::is_of;
use brigade_core::hash::Fnv;
use brigade_core::mail::{self, MailError, with_message};
use brigade_core::seat::Seat;
use brigade_core::store::{Mark, Outgoing, StoreError};

/// How old a signature may be when its reader comes to see it. Claude Code 2.1.325 took one of two
/// minutes and none of four.
const FRESH: SignedDuration = SignedDuration::from_secs(60);

/// What the record of a member's sessions says that its model was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What was put before it in the user's place, oldest first.
    pub turns: Vec<String>,
    /// What tells the turn that was not finished from all others, if there is one.
    pub unfinished: Option<String>,
}

/// What begins an envelope, up to its sender's name.
const OPEN: &str = "<teammate-message teammate_id=\"";

/// The envelopes that a model was given, to be looked up by who is said to have written and by the first line of
/// what: there are as many as there are messages, and each message is looked for.
struct Envelopes<'h> {
    by_line: HashMap<(&'h str, &'h str), Vec<(usize, &'h str)>>,
}

impl<'h> Envelopes<'h> {
    /// Those in these turns, which are [`plain`].
    fn of(turns: &'h [String]) -> Self {
        let mut by_line: HashMap<_, Vec<_>> = HashMap::new();
        let starts = turns.iter().flat_map(|turn| {
            turn.match_indices(OPEN).filter_map(|(at, open)| turn.get(at + open.len()..))
        });
        for (number, envelope) in starts.enumerate() {
            let Some((from, rest)) = envelope.split_once('"') else { continue };
            // An older program puts a summary into the tag as it is, with whatever is in it.
            for (at, end) in rest.match_indices(">\n").take(16) {
                let Some(body) = rest.get(at + end.len()..) else { continue };
                if let Some((line, _)) = body.split_once('\n') {
                    by_line.entry((from, line)).or_default().push((number, body));
                }
            }
        }
        Self { by_line }
    }

    /// How many say these words as this sender's.
    fn count(&self, from: &str, text: &str) -> usize {
        // What is added behind the text, as to a request to stop, begins on another line.
        let wanted = format!("{}\n", plain(text));
        let line = wanted.split('\n').next().unwrap_or_default();
        let found = self.by_line.get(&(from, line)).into_iter().flatten();
        let found = found.filter(|(_, body)| body.starts_with(&wanted)).map(|(number, _)| number);
        found.collect::<HashSet<_>>().len()
    }
}

/// The text without the one escape that Claude Code 2.1.325 makes in it.
fn plain(text: &str) -> String {
    text.replace("<\\/teammate-message", "</teammate-message")
}

/// The messages of a mailbox that its reader's model was given, each by the key it had first. However long
/// the mailbox is, this is short: nearly always it is all up to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// All up to this one.
    pub upto: Option<MessageKey>,
    /// These behind it.
    #[serde(rename = "shown")]
    pub beyond: HashSet<MessageKey>,
}

/// What was done about the mail of a member before its program is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Again {
    /// What its model was given.
    pub shown: Shown,
    /// The messages that were sent again, as above.
    pub sent: Vec<MessageKey>,
    /// Whether it was told to go on with a turn.
    pub go_on: bool,
}

/// Sends again to the seat what its program took and its model was not given, and signs anew what
/// waited too long to be believed. If it was in the middle of a turn it is told to go on.
///
/// This is for a member whose program does not run at the moment. `known` are the messages that an
/// earlier look found to be shown: a record may be cleared away.
pub async fn send_again(seat: &Seat, heard: &Heard, known: &Shown) -> Result<Again, MailError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::teammate(seat, &team, "have its mail sent again")?;
    let mut again = Again::default();
    let mailbox = Mailbox::read(seat, &team).await?;
    let mut shown = mailbox.keys_of(known);
    let turns: Vec<String> = heard.turns.iter().map(|turn| plain(turn)).collect();
    let envelopes = Envelopes::of(&turns);
    let mut given: HashMap<(&str, &str), usize> = HashMap::new();
    for letter in &mailbox.letters {
        let (from, text) = (letter.message.from.as_str(), letter.message.text.as_str());
        let times = given.entry((from, text)).or_insert_with(|| envelopes.count(from, text));
        if *times > 0 {
            *times -= 1;
            shown.insert(letter.key);
        }
        let (last, at) = letter.last;
        if shown.contains(&letter.key) || mailbox.shown.contains(&last) {
            continue;
        }
        if mailbox.waiting.contains(&last) {
            if !letter.signed || at + FRESH >= seat.clock.now() {
                continue;
            }
            // Whoever dies behind this finds it taken and not shown.
            seat.store.mark(&seat.team, &seat.name, &[last], Mark::Read).await?;
        }
        seat.store.send(&seat.team, &seat.name, &letter.again(seat, &team)).await?;
        tracing::info!(team = %seat.team, member = %seat.name, from, "sent again");
        again.sent.push(letter.key);
    }
    again.shown = mailbox.in_short(&shown);
    if let (Some(turn), Some(lead)) = (&heard.unfinished, team.lead().and_then(|its| its.name())) {
        let message = Outgoing {
            msg_id: id(&[b"go on", turn.as_bytes()]),
            from: lead.into_owned(),
            text: GO_ON.to_owned(),
            summary: None,
            timestamp: wire_time(seat.clock.now()),
            color: None,
            msg_v: Outgoing::msg_v(team.generation()),
            lead_sig: None,
            team_created: team.created_at().unwrap_or_default(),
        };
        again.go_on = !mailbox.all.contains(&message.key());
        if again.go_on {
            seat.store.send(&seat.team, &seat.name, &sign(seat, message)).await?;
        }
    }
    Ok(again)
}

/// What the journal and the inbox say of the seat's mail.
#[derive(Default)]
struct Mailbox {
    /// The messages its model is to be given, oldest first.
    letters: Vec<Letter>,
    /// Every message that was ever in it.
    all: HashSet<MessageKey>,
    /// Those that stand in the inbox unread.
    waiting: HashSet<MessageKey>,
    /// Those that were marked as shown by whoever showed them.
    shown: HashSet<MessageKey>,
}

/// A message that its reader's model is to be given.
struct Letter {
    key: MessageKey,
    message: Outgoing,
    /// Whether the lead signed it, with the key the seat knows it by.
    signed: bool,
    /// How often it was sent again.
    copies: u32,
    /// The last copy, or the message itself, and when it was written down.
    last: (MessageKey, Timestamp),
}

impl Mailbox {
    async fn read(seat: &Seat, team: &Team<'_>) -> Result<Self, StoreError> {
        let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
        let mut mailbox = Self::default();
        // Which message the next copy of each would be of.
        let mut next: HashMap<MessageKey, usize> = HashMap::new();
        for record in records.iter().filter(|record| is_of(team, record)) {
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
                    let letter = |message: Message<'_>| Letter::of(seat, key, record, &message);
                    let letter = with_message(json, |message| message.and_then(letter));
                    let Ok(Some(letter)) = letter else { continue };
                    mailbox.letters.push(letter);
                    mailbox.letters.len() - 1
                }
            };
            if let Some(letter) = mailbox.letters.get_mut(at) {
                if key != letter.key {
                    letter.copies += 1;
                    letter.last = (key, record.at);
                }
                next.insert(MessageKey::of_id(&letter.next_id()), at);
            }
        }
        for mail in seat.store.inbox(&seat.team, &seat.name).await? {
            if matches!(mail::is_read(&mail.json), Ok(false)) {
                mailbox.waiting.insert(mail.key);
            }
        }
        Ok(mailbox)
    }

    /// Each of the messages that were given.
    fn keys_of(&self, known: &Shown) -> HashSet<MessageKey> {
        let keys = || self.letters.iter().map(|letter| letter.key);
        let upto = keys().position(|key| Some(key) == known.upto).map_or(0, |at| at + 1);
        keys().take(upto).chain(known.beyond.iter().copied()).collect()
    }

    fn in_short(&self, keys: &HashSet<MessageKey>) -> Shown {
        let is_shown =
            |letter: &&Letter| keys.contains(&letter.key) || self.shown.contains(&letter.last.0);
        let begins = self.letters.iter().take_while(is_shown).count();
        let (all, rest) = self.letters.split_at(begins);
        let beyond = rest.iter().filter(is_shown).map(|letter| letter.key).collect();
        Shown { upto: all.last().map(|letter| letter.key), beyond }
    }
}

impl Letter {
    /// The message, if it is one for the model. An answer is for the program, and the program that
    /// asked is dead.
    fn of(seat: &Seat, key: MessageKey, record: &Record, message: &Message<'_>) -> Option<Self> {
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
        let its = Outgoing::again(message, id);
        let signed = seat.lead_key.as_ref().is_some_and(|lead| lead.verifies(message));
        let last = (key, record.at);
        for_the_model.then_some(Self { key, message: its, signed, copies: 0, last })
    }

    /// The id its next copy has.
    fn next_id(&self) -> String {
        let (key, nth) = (self.key.to_string(), self.copies + 1);
        id(&[b"again", key.as_bytes(), &nth.to_le_bytes()])
    }

    /// Its next copy. What the lead had signed is signed anew; what only claimed to be the lead's
    /// stays a claim.
    fn again(&self, seat: &Seat, team: &Team<'_>) -> Outgoing {
        let team_created = team.created_at().unwrap_or_default();
        let copy = Outgoing { msg_id: self.next_id(), team_created, ..self.message.clone() };
        if self.signed { sign(seat, copy) } else { copy }
    }
}

/// The message signed by the lead, now.
fn sign(seat: &Seat, message: Outgoing) -> Outgoing {
    let Some(signer) = &seat.signer else { return message };
    let timestamp = wire_time(seat.clock.now());
    mail::signed(signer.as_ref(), &seat.name, Outgoing { timestamp, ..message })
}

/// An id made of what it is for: the same each time.
fn id(parts: &[&[u8]]) -> String {
    let half = |salt: &[u8]| {
        let hash = parts.iter().fold(Fnv::default().field(salt), |hash, part| hash.field(part));
        u128::from(hash.finish())
    };
    let bits = (half(b"first") << 64) | half(b"second");
    Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looked for one after the other through all of them, this would not come to an end.
    #[test]
    fn each_of_many_messages_is_found_among_many_turns() {
        let many = 20_000;
        let envelope = |number: usize| {
            let text = format!("word {number}\n{}", "and more ".repeat(40));
            let from = if number.is_multiple_of(2) { "alice" } else { "bob" };
            (from, format!("{OPEN}{from}\" summary=\"a > b\">\n{text}\n</teammate-message>"), text)
        };
        let turns: Vec<String> = (0..many).map(|number| envelope(number).1).collect();
        let envelopes = Envelopes::of(&turns);
        for number in 0..many {
            let (from, _, text) = envelope(number);
            let other = if from == "alice" { "bob" } else { "alice" };
            assert_eq!(envelopes.count(from, &text), 1, "{number}");
            assert_eq!(envelopes.count(other, &text), 0, "{number}");
            assert_eq!(envelopes.count(from, "word"), 0, "{number}");
        }
    }
}
