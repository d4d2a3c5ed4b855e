//! Creates many teams quickly. The store creates the first team with some messages. Copies of that team's stored
//! messages are then published for all other teams, in the form in which the store would have written them.

use std::time::{Duration, Instant};

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::{Client, HeaderMap};
use brigade_nats::layout::{Stream, Subjects};
use brigade_wire::name::TeamName;
use futures_util::{StreamExt, stream};
use uuid::Uuid;

use crate::bare_contender::{IN_FLIGHT, last, publisher};
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
}

/// The stored messages of the first team.
#[derive(Debug)]
pub(crate) struct TeamTemplate {
    of: TeamName,
    patterns: Vec<MessageTemplate>,
}

impl TeamTemplate {
    /// Creates the first team. Each member gets a message, which is marked as shown.
    pub(crate) async fn make(urls: &[String]) -> Self {
        let store = connect(urls).await;
        let of = team(FILLED, 0);
        make_team(&store, &of, &MEMBERS).await;
        let place = Subjects::new(&of, SHARDS);
        let mut subjects = vec![(Stream::Team, place.config())];
        for (number, to) in [LEAD].iter().chain(&MEMBERS).enumerate() {
            // The sender is the previous member in the list. For the first member, it is the last member.
            let from = MEMBERS[(number + MEMBERS.len() - 2) % MEMBERS.len()];
            let from = if from == *to { LEAD } else { from };
            let message = message(from, number);
            send(&seat(&store, &of, from), to, &message).await;
            let keys: [MessageKey; 1] = [message.key()];
            store.mark(&of, &member(to), &keys, Mark::Shown).await.unwrap();
            subjects.push((Stream::Mail, place.mailbox(&member(to))));
            subjects.push((Stream::Mail, place.marks(&member(to))));
        }
        let client = async_nats::connect(urls).await.unwrap();
        let mut patterns = Vec::new();
        for (stream, subject) in subjects {
            patterns.push(MessageTemplate::read(&client, &place.stream(stream), &subject).await);
        }
        Self { of, patterns }
    }

    /// Creates the teams with these numbers. Returns how long the creation took.
    pub(crate) async fn fill(&self, urls: &[String], teams: std::ops::Range<usize>) -> Duration {
        let context = publisher(urls).await;
        let start = Instant::now();
        let publishes = teams.flat_map(|number| {
            let name = team(FILLED, number);
            self.patterns.iter().map(move |pattern| pattern.of_team(&self.of, &name))
        });
        stream::iter(publishes)
            .map(async |MessageTemplate { subject, headers, payload }| {
                let ack = context.publish_with_headers(subject, headers, payload.into());
                ack.await.unwrap().await.unwrap();
            })
            .buffer_unordered(IN_FLIGHT)
            .for_each(async |()| ())
            .await;
        start.elapsed()
    }

    /// Returns the number of stored messages per team.
    pub(crate) fn len(&self) -> usize {
        self.patterns.len()
    }
}

impl MessageTemplate {
    async fn read(client: &Client, stream: &str, subject: &str) -> Self {
        let found =
            last(client, stream, subject).await.expect("the store wrote a message on this subject");
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
        Self { subject, headers, payload: String::from_utf8(found.payload.to_vec()).unwrap() }
    }

    fn of_team(&self, first: &TeamName, team: &TeamName) -> Self {
        let (old, new) = (first.as_str(), team.as_str());
        let mut headers = self.headers.clone();
        headers.insert(NATS_MESSAGE_ID, Uuid::new_v4().to_string());
        let subject = self.subject.replacen(&format!(".{old}."), &format!(".{new}."), 1);
        let payload = self.payload.replace(&format!("\"{old}\""), &format!("\"{new}\""));
        let payload = payload.replace(&format!("@{old}\""), &format!("@{new}\""));
        Self { subject, headers, payload }
    }
}
