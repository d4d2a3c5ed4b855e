//! Compares ways to find the unread messages of a mailbox among many others, with the bare client: each design makes
//! the requests that a store with that design would make for its first read of a mailbox.

use std::time::Instant;

use async_nats::{Client, Message};
use brigade_nats::layout::{Stream, Subjects};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::bare_contender::{create_consumer, last, sequence};
use crate::contender::{SHARDS, team};
use crate::figures::Times;
use crate::fill::{FILLED, MEMBERS};
use crate::fixtures::member;
use crate::scale_steps::{STEP, quantiles_line};

/// A way to find the unread messages of a mailbox.
#[derive(Clone, Copy, Debug)]
enum ReadDesign {
    /// Each message names the message before it. The reader starts at the last message of each sender.
    Previous,
    /// The same, but a consumer finds the last message of each sender. A seat needs this, because it may not name
    /// several subjects in one request.
    PreviousWithConsumer,
    /// A document lists the unread messages. The reader asks for the document, and then for each message.
    IndexDocument,
    /// A consumer starts after the last message that was read.
    ConsumerFromMarks,
}

/// The designs, and their names in the table.
const DESIGNS: [(ReadDesign, &str); 4] = [
    (ReadDesign::Previous, "previous sequence in each message"),
    (ReadDesign::PreviousWithConsumer, "the same, with a consumer for the last messages"),
    (ReadDesign::IndexDocument, "index document"),
    (ReadDesign::ConsumerFromMarks, "consumer from the read marks"),
];

/// Measures and prints the first read of some mailboxes with each design. No two designs read the same mailbox.
pub(crate) async fn compare(urls: &[String], teams: usize, first: usize, samples: usize) {
    let client = async_nats::connect(urls).await.unwrap();
    for (at, (design, name)) in DESIGNS.iter().enumerate() {
        let mut times = Times::default();
        for number in 0..samples {
            let number = first + at * samples + number;
            let team = team(FILLED, (number * STEP) % teams);
            let place = Subjects::new(&team, SHARDS);
            let start = Instant::now();
            read(&client, &place, *design).await;
            times.push(start.elapsed());
        }
        quantiles_line(&format!("bare: {name}"), &times);
    }
}

async fn read(client: &Client, place: &Subjects, design: ReadDesign) {
    let of = member(MEMBERS[1]);
    let (stream, mailbox) = (place.stream(Stream::Mail), place.mailbox(&of));
    // Every design needs the roster, to know which team of this name exists, and the read marks.
    let (team, roster) = (place.stream(Stream::Team), place.roster());
    last(client, &team, &roster).await.expect("the roster exists");
    let marks = place.marks(&of);
    let marks = last(client, &stream, &marks).await.expect("the read marks exist");
    match design {
        ReadDesign::Previous => {
            for found in last_of_each(client, &stream, &mailbox).await {
                get(client, &stream, sequence(&found)).await;
            }
        }
        ReadDesign::PreviousWithConsumer => {
            let policy = json!({ "deliver_policy": "last_per_subject" });
            consume(client, &stream, &mailbox, policy).await;
        }
        ReadDesign::IndexDocument => {
            // The document would be a message like the read marks, with the sequences of the unread messages.
            let found = last(client, &stream, &mailbox).await.expect("the mailbox has a message");
            get(client, &stream, sequence(&found)).await;
        }
        ReadDesign::ConsumerFromMarks => {
            let from = sequence(&marks);
            let policy = json!({ "deliver_policy": "by_start_sequence", "opt_start_seq": from });
            consume(client, &stream, &mailbox, policy).await;
        }
    }
}

/// Returns the message with this sequence.
async fn get(client: &Client, stream: &str, sequence: u64) -> Message {
    let body = json!({ "seq": sequence }).to_string();
    client.request(format!("$JS.API.DIRECT.GET.{stream}"), body.into()).await.unwrap()
}

/// Returns the last message of each subject.
async fn last_of_each(client: &Client, stream: &str, subjects: &str) -> Vec<Message> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.unwrap();
    let body = json!({ "multi_last": [subjects] }).to_string();
    let ask = format!("$JS.API.DIRECT.GET.{stream}");
    client.publish_with_reply(ask, inbox, body.into()).await.unwrap();
    let mut found = Vec::new();
    while let Some(answer) = answers.next().await {
        if answer.status.is_some() {
            break;
        }
        found.push(answer);
    }
    found
}

/// Creates a consumer, reads what it delivers, and deletes it.
async fn consume(client: &Client, stream: &str, subjects: &str, policy: Value) {
    let mut config = policy;
    config["inactive_threshold"] = json!(5_000_000_000_u64);
    let created = create_consumer(client, stream, subjects, config).await;
    let name = created["name"].as_str().expect("the server creates the consumer").to_owned();
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.unwrap();
    let count = created["num_pending"].as_u64().unwrap();
    let ask = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
    client.publish_with_reply(ask, inbox, count.to_string().into()).await.unwrap();
    for _ in 0..count {
        answers.next().await.expect("the consumer delivers its messages");
    }
    let delete = format!("$JS.API.CONSUMER.DELETE.{stream}.{name}");
    client.publish(delete, "".into()).await.unwrap();
}
