//! The contender that uses the NATS store, as the brigade program does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brigade_core::board;
use brigade_core::event::{Event, MessageKey};
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::{Mark, Outgoing, Store, StoreError, Watch};
use brigade_nats::{NatsOptions, NatsStore, StreamSettings};
use brigade_wire::name::TeamName;
use tokio::sync::Mutex;

use crate::bare_contender::task_id;
use crate::contender::{Contender, LANES, READER, SHARDS, SINK, WRITER, message, team};
use crate::fixtures::{LEAD, create_team, member, plan};

/// Opens a store with its own connection.
pub(crate) async fn connect(urls: &[String]) -> Arc<dyn Store> {
    connect_with(urls, SHARDS).await
}

/// Opens a store with its own connection. If the streams are missing, creates them with this number of shards.
pub(crate) async fn connect_with(urls: &[String], shards: u16) -> Arc<dyn Store> {
    try_connect(urls, shards).await.expect("the NATS store opens")
}

/// Opens a store with its own connection. Returns an error if the servers are unreachable.
pub(crate) async fn try_connect(
    urls: &[String],
    shards: u16,
) -> Result<Arc<dyn Store>, StoreError> {
    let settings = StreamSettings { shards, ..StreamSettings::default() };
    let options = NatsOptions { servers: urls.to_vec(), settings, ..NatsOptions::default() };
    Ok(Arc::new(NatsStore::connect(options).await?))
}

/// Returns the seat of a member.
pub(crate) fn seat(store: &Arc<dyn Store>, team: &TeamName, name: &str) -> Seat {
    Seat::new(Arc::clone(store), team.clone(), member(name))
}

/// Creates a team with these members. Returns the lead's seat.
pub(crate) async fn make_team(store: &Arc<dyn Store>, team: &TeamName, members: &[&str]) -> Seat {
    let lead = seat(store, team, LEAD);
    create_team(&lead, members).await;
    lead
}

/// Two stores with their own connections, like those of a sender and a reader on two hosts.
#[derive(Debug)]
pub(crate) struct StoreContender {
    lanes: Vec<StoreLane>,
    /// How often a reader was woken but found no new message.
    pub(crate) empty_wakes: AtomicUsize,
}

#[derive(Debug)]
struct StoreLane {
    lead: Seat,
    writer: Seat,
    reader: Seat,
    watch: Mutex<Watch>,
}

impl StoreContender {
    pub(crate) async fn connect(urls: &[String]) -> Self {
        let (here, there) = (connect(urls).await, connect(urls).await);
        let mut lanes = Vec::new();
        for number in 0..LANES {
            let team = team("ours", number);
            let lead = make_team(&here, &team, &[WRITER, READER, SINK]).await;
            lanes.push(StoreLane {
                lead,
                writer: seat(&here, &team, WRITER),
                reader: seat(&there, &team, READER),
                watch: Mutex::new(there.watch_member(&team, &member(READER)).await.unwrap()),
            });
        }
        Self { lanes, empty_wakes: AtomicUsize::new(0) }
    }
}

impl Contender for StoreContender {
    const NAME: &'static str = "ours";

    async fn send(&self, lane: usize, number: usize) {
        send(&self.lanes[lane].writer, SINK, &message(WRITER, number)).await;
    }

    async fn receive(&self, lane: usize, number: usize) -> Duration {
        let StoreLane { writer, reader, watch, .. } = &self.lanes[lane];
        let message = message(WRITER, number);
        let mut watch = watch.lock().await;
        let start = Instant::now();
        let read = async {
            wait_for(&mut watch, message.key()).await;
            let wake = start.elapsed();
            let keys = loop {
                let inbox = reader.store.inbox(&reader.team, &reader.name).await.unwrap();
                let unread = inbox.iter().filter(|mail| mail.is_unread());
                let keys: Vec<MessageKey> = unread.map(|mail| mail.key).collect();
                if !keys.is_empty() {
                    break keys;
                }
                self.empty_wakes.fetch_add(1, Ordering::Relaxed);
            };
            assert_eq!(keys, [message.key()], "the only unread message is the one just sent");
            mail::mark(reader, &keys, Mark::Shown).await.unwrap();
            wake
        };
        let ((), wake) = tokio::join!(send(writer, READER, &message), read);
        wake
    }

    async fn add_tasks(&self, lane: usize, first: usize, count: usize) {
        for number in first..first + count {
            let id = board::add(&self.lanes[lane].lead, &plan(number)).await.unwrap();
            assert_eq!(id, task_id(number), "task ids must be consecutive");
        }
    }

    async fn claim(&self, lane: usize, number: usize) {
        board::claim(&self.lanes[lane].reader, task_id(number)).await.unwrap();
    }
}

/// Sends a prepared message.
pub(crate) async fn send(seat: &Seat, to: &str, message: &Outgoing) {
    let receipt = seat.store.send(&seat.team, &member(to), message).await.unwrap();
    assert!(receipt.pending.is_none(), "the NATS store never returns a pending receipt");
}

/// Waits until a watch reports this message.
pub(crate) async fn wait_for(watch: &mut Watch, key: MessageKey) {
    loop {
        let record = watch.next().await.expect("the watch is open");
        if matches!(record.event, Event::Sent { key: sent, .. } if sent == key) {
            return;
        }
    }
}
