//! What every store promises of its chronicle.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::event_log::{Feed, Library, Spot};
use brigade_core::mail::with_message;
use brigade_core::store::{Actor, Store};

use crate::env::{House, team};

/// What was told, in order.
#[derive(Default)]
struct Told(Vec<(Spot, Arc<Record>)>);

impl Told {
    /// Listens until `enough`, or the feed ends.
    async fn listen(&mut self, feed: &mut Feed, enough: impl Fn(&Self, bool) -> bool) {
        let listen = async {
            while let Some(batch) = feed.next().await {
                self.0.extend(batch.records);
                if enough(self, batch.caught_up) {
                    break;
                }
            }
        };
        let heard = tokio::time::timeout(Duration::from_secs(30), listen).await;
        heard.unwrap_or_else(|_| panic!("{} records, and then nothing", self.0.len()));
    }

    /// The texts of all messages, in order.
    fn texts(&self) -> Vec<String> {
        let text = |(_, record): &(Spot, Arc<Record>)| match &record.event {
            Event::Sent { message, .. } => {
                let json = message.get().as_bytes();
                Some(with_message(json, |m| m.unwrap().text().into_owned()).unwrap())
            }
            _ => None,
        };
        self.0.iter().filter_map(text).collect()
    }

    /// Every record is found again at its spot.
    fn look_up(&self, library: &Library) {
        for (spot, record) in &self.0 {
            let found = library.record(*spot).expect("it is still there");
            assert_eq!(line(&found), line(record));
        }
    }
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

/// A chronicle has the past and goes on, while others write: nothing is missing, nothing comes twice, and
/// what one member sent to another is in order.
pub async fn a_chronicle_has_the_past_and_goes_on(store: Arc<dyn Store>) {
    let house = House::build(store).await;
    for number in 0..20 {
        house.say("team-lead", "alice", &format!("past {number}")).await;
    }
    let write = |from: &'static str, to: &'static str| {
        let house = house.clone();
        tokio::spawn(async move {
            for number in 0..25 {
                house.say(from, to, &format!("{from} {number}")).await;
            }
        })
    };
    let writers = [write("alice", "bob"), write("bob", "alice"), write("team-lead", "bob")];
    // Some are opened while the writers are at it.
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.push(house.store.chronicle(&team()).await.unwrap());
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    house.say("alice", "team-lead", "the last").await;
    for (mut feed, library) in readers {
        let mut told = Told::default();
        told.listen(&mut feed, |told, _| told.texts().iter().any(|text| text == "the last")).await;
        let texts = told.texts();
        assert_eq!(texts.len(), 20 + 3 * 25 + 1, "{texts:?}");
        for (sender, count) in [("past", 20), ("alice", 25), ("bob", 25), ("team-lead", 25)] {
            let of: Vec<&String> =
                texts.iter().filter(|text| text.starts_with(&format!("{sender} "))).collect();
            let expected: Vec<String> = (0..count).map(|n| format!("{sender} {n}")).collect();
            assert_eq!(of, expected.iter().collect::<Vec<_>>());
        }
        told.look_up(&library);
        let created = told.0.iter().filter(|(_, r)| matches!(r.event, Event::TeamCreated { .. }));
        assert_eq!(created.count(), 1);
        assert_eq!(feed.passed_over(), 0);
    }
    // When all is quiet it says what the history says.
    let (mut feed, library) = house.store.chronicle(&team()).await.unwrap();
    let mut told = Told::default();
    told.listen(&mut feed, |_, caught_up| caught_up).await;
    told.look_up(&library);
    let mut counts: HashMap<String, usize> = HashMap::new();
    for record in house.store.history(&team()).await.unwrap() {
        *counts.entry(line(&record)).or_default() += 1;
    }
    for (_, record) in &told.0 {
        let count = counts.get_mut(&line(record)).expect("it is in the history");
        *count -= 1;
    }
    assert!(counts.values().all(|&count| count == 0), "{counts:?}");
}

/// Of a deleted team there is what happened, and then an end.
pub async fn the_chronicle_of_a_deleted_team_ends(store: Arc<dyn Store>) {
    let house = House::build(store).await;
    house.say("alice", "bob", "good bye").await;
    house.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    let (mut feed, library) = house.store.chronicle(&team()).await.unwrap();
    let mut told = Told::default();
    told.listen(&mut feed, |_, _| false).await;
    assert_eq!(told.texts(), ["good bye"]);
    assert!(told.0.iter().any(|(_, record)| matches!(record.event, Event::TeamDeleted {})));
    told.look_up(&library);
    // And of one that never was, nothing.
    let (mut feed, _) = house.store.chronicle(&"never".parse().unwrap()).await.unwrap();
    let mut told = Told::default();
    told.listen(&mut feed, |_, _| false).await;
    assert!(told.0.is_empty());
}
