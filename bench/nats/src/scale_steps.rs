//! The measurements on a server with many teams: sends, wake-ups and reads.

use std::time::Instant;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use brigade_nats::layout::{MessageClass, Stream, Subjects};
use serde_json::json;

use crate::bare_contender::{create_consumer, entry, last};
use crate::contender::{SHARDS, message, team};
use crate::figures::{Times, line};
use crate::fill::{FILLED, MEMBERS};
use crate::fixtures::member;
use crate::store_contender::{connect, seat, send, wait_for};

/// For each of these delivery policies, the benchmark measures how long creating a consumer takes.
const POLICIES: [&str; 3] = ["all", "by_start_sequence", "last_per_subject"];
/// The step from one team number to the next, modulo the number of teams. A prime step reaches all teams.
const STEP: usize = 7_919;

/// The times of sends to members of many teams.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    n: usize,
    /// Sends to a mailbox that has been idle since it was filled.
    pub(crate) idle: Times,
    /// Sends with the bare client, to another idle mailbox.
    bare_idle: Times,
    /// Sends to a mailbox that just received a message.
    pub(crate) send: Times,
    wake: Times,
    watch: Times,
}

impl Sends {
    pub(crate) async fn measure(&mut self, urls: &[String], teams: usize, samples: usize) {
        let (here, there) = (connect(urls).await, connect(urls).await);
        let context = async_nats::jetstream::new(async_nats::connect(urls).await.unwrap());
        for number in self.n..self.n + samples {
            let team = team(FILLED, (number * STEP) % teams);
            let [from, to, other] = [MEMBERS[0], MEMBERS[1], MEMBERS[2]];
            let writer = seat(&here, &team, from);
            let start = Instant::now();
            let mut watch = there.watch(&team).await.unwrap();
            self.watch.push(start.elapsed());
            here.team(&team).await.unwrap().expect("the team exists");

            let first = message(from, number);
            let start = Instant::now();
            send(&writer, to, &first).await;
            self.idle.push(start.elapsed());

            let bare = message(from, number);
            let subject =
                Subjects::new(&team, SHARDS).message(&member(other), from, MessageClass::Text);
            let start = Instant::now();
            let mut headers = HeaderMap::new();
            headers.insert(NATS_MESSAGE_ID, bare.msg_id.as_str());
            let ack = context.publish_with_headers(subject, headers, entry(&bare).into());
            ack.await.unwrap().await.unwrap();
            self.bare_idle.push(start.elapsed());

            let message = message(from, number);
            let start = Instant::now();
            let (sent, woken) = tokio::join!(
                async {
                    send(&writer, to, &message).await;
                    start.elapsed()
                },
                async {
                    wait_for(&mut watch, message.key()).await;
                    start.elapsed()
                }
            );
            self.send.push(sent);
            self.wake.push(woken);
        }
        self.n += samples;
    }

    pub(crate) fn print(&self, among: usize) {
        let rows = [
            ("send", &self.send),
            ("wake", &self.wake),
            ("first send, to an idle mailbox", &self.idle),
            ("bare: the same", &self.bare_idle),
            ("start of a watch", &self.watch),
        ];
        for (name, times) in rows {
            line(&format!("{name}, among {among}"), times);
        }
    }
}

/// The durations of reads from mailboxes that were never read before, in many teams.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    n: usize,
    inbox: Times,
    /// How long the bare client takes to read the last message on one subject.
    literal: Times,
    /// How long the bare client takes to read the last message in a mailbox, whoever sent it.
    wildcard: Times,
    /// How long the bare client takes to create a consumer for a mailbox, with each delivery policy.
    readers: [Times; 3],
}

impl Reads {
    pub(crate) async fn measure(&mut self, urls: &[String], teams: usize, samples: usize) {
        let store = connect(urls).await;
        let client = async_nats::connect(urls).await.unwrap();
        for number in self.n..self.n + samples {
            let team = team(FILLED, (number * STEP) % teams);
            let place = Subjects::new(&team, SHARDS);
            let (of, stream) = (member(MEMBERS[1]), place.stream(Stream::Mail));
            let start = Instant::now();
            last(&client, &stream, &place.marks(&of)).await.expect("the read marks exist");
            self.literal.push(start.elapsed());
            let start = Instant::now();
            last(&client, &stream, &place.mailbox(&of)).await.expect("the mailbox has a message");
            self.wildcard.push(start.elapsed());
            for (policy, times) in POLICIES.iter().zip(&mut self.readers) {
                let start = Instant::now();
                let mut more =
                    json!({ "deliver_policy": policy, "inactive_threshold": 100_000_000_u64 });
                if *policy == "by_start_sequence" {
                    more["opt_start_seq"] = json!(50);
                }
                let answer = create_consumer(&client, &stream, &place.mailbox(&of), more).await;
                times.push(start.elapsed());
                assert!(answer.get("error").is_none(), "cannot create a consumer: {answer}");
            }
            let start = Instant::now();
            let inbox = store.inbox(&team, &of).await.unwrap();
            self.inbox.push(start.elapsed());
            assert!(!inbox.is_empty(), "the inbox lacks the sent messages");
        }
        self.n += samples;
    }

    pub(crate) fn print(&self, among: usize) {
        let [all, from, each] = &self.readers;
        let rows = [
            ("first read of a mailbox", &self.inbox),
            ("bare: last message on one subject", &self.literal),
            ("bare: last message from any sender", &self.wildcard),
            ("bare: create a consumer, all messages", all),
            ("bare: create a consumer, from a sequence", from),
            ("bare: create a consumer, last per subject", each),
        ];
        for (name, times) in rows {
            line(&format!("{name}, among {among}"), times);
        }
    }
}
