//! A team that works during the faults. It has senders, a reader that marks messages and reconnects regularly, a
//! lead that adds tasks, and claimers that compete for the tasks. Records the results of all operations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use brigade_core::board::{self, BoardError};
use brigade_core::event::MessageKey;
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::{Mail, Mark, StoreError};
use brigade_wire::name::{TaskId, TeamName};
use tokio::task::JoinSet;

use crate::contender::{READER, SHARDS, message};
use crate::fixtures::{LEAD, member, plan};
use crate::store_contender::{connect, make_team, seat, try_connect};

pub(crate) const SENDERS: usize = 4;
const CLAIMERS: usize = 4;
/// How long a sender waits between two messages.
const SEND_PAUSE: Duration = Duration::from_millis(10);
/// How long the lead waits between two tasks.
const TASK_PAUSE: Duration = Duration::from_millis(40);
/// How long the reader waits for a wake-up before it polls its inbox.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The number of polls after which the reader reconnects and forgets its state.
const POLLS_PER_CONNECTION: usize = 40;

/// A completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// The sender with this number got an acknowledgement.
    Sent(usize),
    /// The reader marked messages as shown.
    Shown,
    /// A claimer got a task.
    Claimed,
}

/// The results that the members have observed.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    /// Acknowledged messages, in order.
    pub(crate) acknowledged: Vec<MessageKey>,
    /// How often each message was shown to the reader.
    pub(crate) shown: HashMap<MessageKey, usize>,
    /// The number of messages that were shown after a later message from the same sender.
    pub(crate) out_of_order: usize,
    /// For each task, the claimers whose claims succeeded.
    pub(crate) claimed: HashMap<TaskId, Vec<String>>,
    /// How often a claimer did not find a task that was already acknowledged.
    pub(crate) unseen: usize,
    /// Completed operations with their times.
    pub(crate) done: Vec<(Operation, Instant)>,
    /// Errors from the store. The failed operations were retried.
    pub(crate) errors: Vec<String>,
}

/// The team and its shared state.
#[derive(Debug)]
pub(crate) struct FaultLoad {
    pub(crate) team: TeamName,
    urls: Vec<String>,
    over: AtomicBool,
    /// The tasks that the lead has added.
    tasks: Mutex<Vec<TaskId>>,
    /// Whether the lead has stopped adding tasks.
    all_added: AtomicBool,
    /// The number of senders that are still sending.
    sending: AtomicUsize,
    seen: Mutex<Observations>,
}

impl FaultLoad {
    /// Creates the team and starts its members.
    pub(crate) async fn start(urls: &[String], team: &TeamName) -> (Arc<Self>, JoinSet<()>) {
        let load = Arc::new(Self {
            team: team.clone(),
            urls: urls.to_vec(),
            over: AtomicBool::new(false),
            tasks: Mutex::default(),
            all_added: AtomicBool::new(false),
            sending: AtomicUsize::new(SENDERS),
            seen: Mutex::default(),
        });
        let store = connect(urls).await;
        let names: Vec<String> = (0..SENDERS)
            .map(sender)
            .chain((0..CLAIMERS).map(claimer))
            .chain([READER.to_owned()])
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        make_team(&store, &load.team, &names).await;
        let mut work = JoinSet::new();
        for number in 0..SENDERS {
            work.spawn(Arc::clone(&load).send(number));
        }
        for number in 0..CLAIMERS {
            work.spawn(Arc::clone(&load).claim(number));
        }
        work.spawn(Arc::clone(&load).add());
        work.spawn(Arc::clone(&load).read());
        (load, work)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Observations> {
        self.seen.lock().unwrap()
    }

    /// Stops all members. The reader first reads the remaining messages.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    async fn seat(&self, name: &str) -> Seat {
        loop {
            match try_connect(&self.urls, SHARDS).await {
                Ok(store) => return seat(&store, &self.team, name),
                Err(error) => self.failed(name, &error),
            }
        }
    }

    fn failed(&self, who: &str, error: &dyn std::error::Error) {
        let source = error.source().map(ToString::to_string).unwrap_or_default();
        self.seen().errors.push(format!("{who}: {error}: {source}"));
    }

    fn acknowledged(&self, sender: usize, key: MessageKey) {
        let mut seen = self.seen();
        seen.acknowledged.push(key);
        seen.done.push((Operation::Sent(sender), Instant::now()));
    }

    async fn send(self: Arc<Self>, number: usize) {
        let seat = self.seat(&sender(number)).await;
        let mut count = 0;
        while self.is_running() {
            count += 1;
            let message = message(seat.name.as_str(), count);
            // Retry the same message until it is acknowledged.
            while let Err(error) = seat.store.send(&self.team, &member(READER), &message).await {
                self.failed(seat.name.as_str(), &error);
            }
            self.acknowledged(number, message.key());
            tokio::time::sleep(SEND_PAUSE).await;
        }
        self.sending.fetch_sub(1, Ordering::SeqCst);
    }

    async fn add(self: Arc<Self>) {
        let seat = self.seat(LEAD).await;
        let mut count = 0;
        while self.is_running() {
            count += 1;
            match board::add(&seat, &plan(count)).await {
                Ok(id) => self.tasks.lock().unwrap().push(id),
                Err(error) => self.failed(LEAD, &error),
            }
            tokio::time::sleep(TASK_PAUSE).await;
        }
        self.all_added.store(true, Ordering::SeqCst);
    }

    async fn claim(self: Arc<Self>, number: usize) {
        let seat = self.seat(&claimer(number)).await;
        let mut next = 0;
        loop {
            // Read this flag before the list of tasks: if the flag is set, the list is complete.
            let all_added = self.all_added.load(Ordering::SeqCst);
            let id = self.tasks.lock().unwrap().get(next).copied();
            let Some(id) = id else {
                if all_added {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            };
            match board::claim(&seat, id).await {
                Ok(()) => {
                    let mut seen = self.seen();
                    seen.claimed.entry(id).or_default().push(seat.name.to_string());
                    seen.done.push((Operation::Claimed, Instant::now()));
                }
                Err(BoardError::Taken { .. }) => {}
                // The task was acknowledged, but the replica that answered does not have it yet.
                Err(BoardError::NoTask(_)) => {
                    self.seen().unseen += 1;
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    continue;
                }
                Err(error) => {
                    self.failed(seat.name.as_str(), &error);
                    continue;
                }
            }
            next += 1;
        }
    }

    async fn read(self: Arc<Self>) {
        let mut last: HashMap<String, usize> = HashMap::new();
        loop {
            let seat = self.seat(READER).await;
            let Ok(mut watch) = seat.store.watch(&self.team).await else { continue };
            for _ in 0..POLLS_PER_CONNECTION {
                // Count the senders before the poll. If a message arrives during the poll, another poll follows.
                let is_last = self.sending.load(Ordering::SeqCst) == 0;
                match self.poll(&seat, &mut last).await {
                    Ok(0) if is_last => return,
                    Ok(_) => {}
                    Err(error) => self.failed(READER, &error),
                }
                let _woken = tokio::time::timeout(POLL_INTERVAL, watch.next()).await;
            }
        }
    }

    /// Shows and marks the unread messages. Returns their number.
    async fn poll(
        &self,
        seat: &Seat,
        last: &mut HashMap<String, usize>,
    ) -> Result<usize, StoreError> {
        let mut inbox = seat.store.inbox(&self.team, &seat.name).await?;
        inbox.retain(Mail::is_unread);
        let keys: Vec<MessageKey> = inbox.iter().map(|mail| mail.key).collect();
        if keys.is_empty() {
            return Ok(0);
        }
        {
            let mut seen = self.seen();
            for mail in &inbox {
                *seen.shown.entry(mail.key).or_default() += 1;
                let (from, number) = sender_and_number(&mail.json);
                let before = last.entry(from).or_default();
                seen.out_of_order += usize::from(number <= *before);
                *before = number.max(*before);
            }
        }
        // The messages were shown, so retry until they are marked as shown.
        while let Err(error) = mail::mark(seat, &keys, Mark::Shown).await {
            self.failed(READER, &error);
        }
        self.seen().done.push((Operation::Shown, Instant::now()));
        Ok(keys.len())
    }
}

fn sender(number: usize) -> String {
    format!("sender-{number}")
}

fn claimer(number: usize) -> String {
    format!("claimer-{number}")
}

/// Returns the sender and the number of a message.
fn sender_and_number(json: &[u8]) -> (String, usize) {
    let entry: serde_json::Value = serde_json::from_slice(json).unwrap();
    let text = entry["text"].as_str().unwrap();
    let (from, rest) = text.split_once('/').unwrap();
    (from.to_owned(), rest.split(' ').next().unwrap().parse().unwrap())
}
