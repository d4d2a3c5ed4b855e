//! Contract tests for stores: the event log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::store::event_log::{EventStream, RecordLookupHandle, RecordRef};
use brigade_core::store::{Actor, Store};
use brigade_core::wire::inbox::with_message;

use crate::env::{TestEnv, team};

/// The records that an event stream delivered, in order.
#[derive(Default)]
struct Received(Vec<(RecordRef, Arc<Record>)>);

impl Received {
    /// Reads the event stream until `enough` returns true or the stream ends.
    async fn listen(&mut self, feed: &mut EventStream, enough: impl Fn(&Self, bool) -> bool) {
        let listen = async {
            while let Some(batch) = feed.next().await {
                self.0.extend(batch.records);
                if enough(self, batch.caught_up) {
                    break;
                }
            }
        };
        let result = tokio::time::timeout(Duration::from_secs(30), listen).await;
        result.unwrap_or_else(|_| panic!("timed out after {} records", self.0.len()));
    }

    /// Returns the texts of all received messages, in order.
    fn texts(&self) -> Vec<String> {
        let text = |(_, record): &(RecordRef, Arc<Record>)| match &record.event {
            Event::Sent { message, .. } => {
                let json = message.get().as_bytes();
                Some(with_message(json, |m| m.unwrap().text().into_owned()).unwrap())
            }
            _ => None,
        };
        self.0.iter().filter_map(text).collect()
    }

    /// Checks that every received record can be looked up by its [`RecordRef`].
    fn check_lookup(&self, library: &RecordLookupHandle) {
        for (spot, record) in &self.0 {
            let found = library.record(*spot).expect("the lookup should find the record");
            assert_eq!(line(&found), line(record));
        }
    }
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

/// An event log delivers past and new records while members write: no record is missing or
/// duplicated, and the messages of each sender are in order.
pub async fn an_event_log_has_past_and_new_records(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    for number in 0..20 {
        env.say("team-lead", "alice", &format!("past {number}")).await;
    }
    let write = |from: &'static str, to: &'static str| {
        let env = env.clone();
        tokio::spawn(async move {
            for number in 0..25 {
                env.say(from, to, &format!("{from} {number}")).await;
            }
        })
    };
    let writers = [write("alice", "bob"), write("bob", "alice"), write("team-lead", "bob")];
    // Open readers while the writers are active.
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.push(env.store.event_stream(&team()).await.unwrap());
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    env.say("alice", "team-lead", "the last").await;
    for (mut feed, library) in readers {
        let mut received = Received::default();
        received
            .listen(&mut feed, |received, _| received.texts().iter().any(|text| text == "the last"))
            .await;
        let texts = received.texts();
        assert_eq!(texts.len(), 20 + 3 * 25 + 1, "{texts:?}");
        for (sender, count) in [("past", 20), ("alice", 25), ("bob", 25), ("team-lead", 25)] {
            let found: Vec<&String> =
                texts.iter().filter(|text| text.starts_with(&format!("{sender} "))).collect();
            let expected: Vec<String> = (0..count).map(|n| format!("{sender} {n}")).collect();
            assert_eq!(found, expected.iter().collect::<Vec<_>>());
        }
        received.check_lookup(&library);
        let created =
            received.0.iter().filter(|(_, r)| matches!(r.event, Event::TeamCreated { .. }));
        assert_eq!(created.count(), 1);
        assert_eq!(feed.skipped_lines(), 0);
    }
    // Without concurrent writers, the event log equals the history.
    let (mut feed, library) = env.store.event_stream(&team()).await.unwrap();
    let mut received = Received::default();
    received.listen(&mut feed, |_, caught_up| caught_up).await;
    received.check_lookup(&library);
    let mut counts: HashMap<String, usize> = HashMap::new();
    for record in env.store.history(&team()).await.unwrap() {
        *counts.entry(line(&record)).or_default() += 1;
    }
    for (_, record) in &received.0 {
        let count = counts.get_mut(&line(record)).expect("the history should contain the record");
        *count -= 1;
    }
    assert!(counts.values().all(|&count| count == 0), "{counts:?}");
}

/// The event log of a deleted team delivers the team's records and then ends.
pub async fn the_event_log_of_a_deleted_team_ends(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    env.say("alice", "bob", "good bye").await;
    env.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    let (mut feed, library) = env.store.event_stream(&team()).await.unwrap();
    let mut received = Received::default();
    received.listen(&mut feed, |_, _| false).await;
    assert_eq!(received.texts(), ["good bye"]);
    assert!(received.0.iter().any(|(_, record)| matches!(record.event, Event::TeamDeleted {})));
    received.check_lookup(&library);
    // The event log of an unknown team is empty.
    let (mut feed, _) = env.store.event_stream(&"never".parse().unwrap()).await.unwrap();
    let mut received = Received::default();
    received.listen(&mut feed, |_, _| false).await;
    assert!(received.0.is_empty());
}
