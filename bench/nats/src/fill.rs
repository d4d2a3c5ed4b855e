//! Creates many teams quickly. The store creates the first team with some messages. Copies of that team's stored
//! messages are then published for all other teams, in the form in which the store would have written them.

use std::time::{Duration, Instant};

use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::{Client, HeaderMap};
use brigade_nats::layout::{Stream, Subjects};
use brigade_wire::name::TeamName;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use uuid::Uuid;

use crate::bare_contender::{EXPECTED_SUBJECT, IN_FLIGHT, last, publisher, sequence};
use crate::contender::{SHARDS, message, team};
use crate::fixtures::{LEAD, member};
use crate::store_contender::{connect, make_team, seat, send};
use brigade_core::event::MessageKey;
use brigade_core::store::Mark;

/// The number of mailboxes per team: the lead's and those of five members.
pub(crate) const MAILBOXES: usize = 6;
/// The members other than the lead.
pub(crate) const MEMBERS: [&str; MAILBOXES - 1] = ["ann", "ben", "cem", "dee", "eve"];
/// The prefix of the team names.
pub(crate) const FILLED: &str = "many";

/// A message in the form in which the store wrote it for the first team.
#[derive(Debug)]
struct MessageTemplate {
    subject: String,
    headers: HeaderMap,
    payload: String,
    seq: u64,
}

/// The stored messages of one mailbox of the first team: a message, and the marks that say that it was read.
#[derive(Debug)]
struct MailboxTemplate {
    message: MessageTemplate,
    marks: MessageTemplate,
}

/// The stored messages of the first team.
#[derive(Debug)]
pub(crate) struct TeamTemplate {
    of: TeamName,
    roster: MessageTemplate,
    mailboxes: Vec<MailboxTemplate>,
}

impl TeamTemplate {
    /// Creates the first team. Each member gets a message, which is marked as shown.
    pub(crate) async fn make(urls: &[String]) -> Self {
        let store = connect(urls).await;
        let of = team(FILLED, 0);
        make_team(&store, &of, &MEMBERS).await;
        let place = Subjects::new(&of, SHARDS);
        for (number, to) in [LEAD].iter().chain(&MEMBERS).enumerate() {
            // The sender is the previous member in the list. For the first member, it is the last member.
            let from = MEMBERS[(number + MEMBERS.len() - 2) % MEMBERS.len()];
            let from = if from == *to { LEAD } else { from };
            let message = message(from, number);
            send(&seat(&store, &of, from), to, &message).await;
            let keys: [MessageKey; 1] = [message.key()];
            store.mark(&of, &member(to), &keys, Mark::Shown).await.unwrap();
        }
        let client = async_nats::connect(urls).await.unwrap();
        let read = async |stream, subject: String| {
            MessageTemplate::read(&client, &place.stream(stream), &subject).await
        };
        let roster = read(Stream::Team, place.config()).await;
        let mut mailboxes = Vec::new();
        for of in [LEAD].iter().chain(&MEMBERS) {
            let message = read(Stream::Mail, place.mailbox(&member(of))).await;
            let marks = read(Stream::Mail, place.marks(&member(of))).await;
            mailboxes.push(MailboxTemplate { message, marks });
        }
        Self { of, roster, mailboxes }
    }

    /// Creates the teams with these numbers. Returns how long the creation took.
    pub(crate) async fn fill(&self, urls: &[String], teams: std::ops::Range<usize>) -> Duration {
        let context = publisher(urls).await;
        let start = Instant::now();
        stream::iter(teams)
            .map(async |number| {
                let name = team(FILLED, number);
                let write = async |template: MessageTemplate| {
                    let MessageTemplate { subject, headers, payload, .. } = template;
                    let ack = context.publish_with_headers(subject, headers, payload.into());
                    ack.await.unwrap().await.unwrap().sequence
                };
                let mailboxes =
                    self.mailboxes.iter().map(async |MailboxTemplate { message, marks }| {
                        let seq = write(message.of_team(&self.of, &name)).await;
                        write(marks.of_team(&self.of, &name).with_sequence(message.seq, seq)).await;
                    });
                write(self.roster.of_team(&self.of, &name)).await;
                join_all(mailboxes).await;
            })
            .buffer_unordered(IN_FLIGHT / MAILBOXES)
            .for_each(async |()| ())
            .await;
        start.elapsed()
    }

    /// Returns the number of stored messages per team.
    pub(crate) fn len(&self) -> usize {
        1 + 2 * self.mailboxes.len()
    }
}

impl MessageTemplate {
    async fn read(client: &Client, stream: &str, subject: &str) -> Self {
        let found =
            last(client, stream, subject).await.expect("the store wrote a message on this subject");
        let seq = sequence(&found);
        let stored = found.headers.unwrap();
        let subject = stored.get("Nats-Subject").unwrap().to_string();
        let mut headers = HeaderMap::new();
        // Keep the store's headers, but not those that the server adds.
        let ours = |name: &async_nats::HeaderName| name.to_string().starts_with("Brigade-");
        for (name, values) in stored.iter().filter(|(name, _)| ours(name)) {
            for value in values {
                headers.append(name.clone(), value.clone());
            }
        }
        // The first message of a sender is stored on condition that there is none before it.
        if stored.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE).is_some_and(|seq| seq.as_str() == "0") {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, "0");
            headers.insert(EXPECTED_SUBJECT, subject.as_str());
        }
        let payload = String::from_utf8(found.payload.to_vec()).unwrap();
        Self { subject, headers, payload, seq }
    }

    fn of_team(&self, first: &TeamName, team: &TeamName) -> Self {
        let (old, new) = (first.as_str(), team.as_str());
        let mut headers = self.headers.clone();
        headers.insert(NATS_MESSAGE_ID, Uuid::new_v4().to_string());
        let subject = self.subject.replacen(&format!(".{old}."), &format!(".{new}."), 1);
        let payload = self.payload.replace(&format!("\"{old}\""), &format!("\"{new}\""));
        let payload = payload.replace(&format!("@{old}\""), &format!("@{new}\""));
        if headers.get(EXPECTED_SUBJECT).is_some() {
            headers.insert(EXPECTED_SUBJECT, subject.as_str());
        }
        Self { subject, headers, payload, seq: self.seq }
    }

    /// Returns these read marks, for a message with another sequence.
    fn with_sequence(self, old: u64, new: u64) -> Self {
        let mut marks: Value = serde_json::from_str(&self.payload).unwrap();
        for name in ["clear", "read", "shown"] {
            replace_number(&mut marks[name], old, new);
        }
        Self { payload: marks.to_string(), ..self }
    }
}

/// Replaces a number in a value and in all values that it contains.
fn replace_number(value: &mut Value, old: u64, new: u64) {
    match value {
        Value::Array(items) => {
            for item in items {
                replace_number(item, old, new);
            }
        }
        Value::Number(_) if value.as_u64() == Some(old) => *value = Value::from(new),
        _ => {}
    }
}
