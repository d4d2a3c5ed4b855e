//! A team at work while things break: senders, a reader who marks what it shows and now and then starts
//! anew, and claimers after the same tasks. All of it is written down.

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

use crate::crowd::{LEAD, READER, SHARDS, member, message};
use crate::ours::{connect, make_team, plan, seat, try_connect};

pub(crate) const SENDERS: usize = 4;
const CLAIMERS: usize = 4;
/// Between two messages of a sender.
const SEND_PAUSE: Duration = Duration::from_millis(10);
/// Between two tasks.
const TASK_PAUSE: Duration = Duration::from_millis(40);
/// How long the reader waits to be woken before it looks by itself.
const LOOK: Duration = Duration::from_millis(200);
/// After how many looks the reader starts anew, with another connection and nothing in its head.
const LOOKS: usize = 40;

/// What somebody got done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Done {
    /// A message was acknowledged to this sender.
    Sent(usize),
    /// Messages were marked.
    Shown,
    /// A task was claimed by somebody.
    Claimed,
}

/// What was seen from outside.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Messages acknowledged to their senders, in order.
    pub(crate) acknowledged: Vec<MessageKey>,
    /// How often each message was put before the reader.
    pub(crate) shown: HashMap<MessageKey, usize>,
    /// Messages that came to be seen before an earlier one of their sender.
    pub(crate) out_of_order: usize,
    /// Who was told that a task is theirs.
    pub(crate) claimed: HashMap<TaskId, Vec<String>>,
    /// How often a task that was acknowledged to its author was not to be found.
    pub(crate) unseen: usize,
    /// What got done, and when.
    pub(crate) done: Vec<(Done, Instant)>,
    /// What the store gave up on; it was tried again.
    pub(crate) errors: Vec<String>,
}

/// A team at work.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) team: TeamName,
    urls: Vec<String>,
    over: AtomicBool,
    /// The tasks that were acknowledged to the lead.
    tasks: Mutex<Vec<TaskId>>,
    /// Whether there will be no more.
    all_added: AtomicBool,
    /// How many still send.
    sending: AtomicUsize,
    seen: Mutex<Seen>,
}

impl Load {
    /// Makes the team, and sets it to work.
    pub(crate) async fn start(urls: &[String]) -> (Arc<Self>, JoinSet<()>) {
        let load = Arc::new(Self {
            team: "faults".parse().unwrap(),
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

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Nobody begins anything new; the reader reads what there is.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
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
        seen.done.push((Done::Sent(sender), Instant::now()));
    }

    async fn send(self: Arc<Self>, number: usize) {
        let seat = self.seat(&sender(number)).await;
        let mut count = 0;
        while self.goes_on() {
            count += 1;
            let message = message(seat.name.as_str(), count);
            // The same message until it is acknowledged, as a program does that must not lose it.
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
        while self.goes_on() {
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
            // Asked first: what is added until then is in the list.
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
                    seen.done.push((Done::Claimed, Instant::now()));
                }
                Err(BoardError::Taken { .. }) => {}
                // It is there: its author was told so. A replica that is behind has not heard of it.
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
            for _ in 0..LOOKS {
                // Before it looks: what is acknowledged while it does is for the next look.
                let is_last = self.sending.load(Ordering::SeqCst) == 0;
                match self.look(&seat, &mut last).await {
                    Ok(0) if is_last => return,
                    Ok(_) => {}
                    Err(error) => self.failed(READER, &error),
                }
                let _woken = tokio::time::timeout(LOOK, watch.next()).await;
            }
        }
    }

    /// Shows what is unread, and marks it; how many those were.
    async fn look(
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
                let (from, number) = told(&mail.json);
                let before = last.entry(from).or_default();
                seen.out_of_order += usize::from(number <= *before);
                *before = number.max(*before);
            }
        }
        // It has shown them; now it must say so before it goes on.
        while let Err(error) = mail::mark(seat, &keys, Mark::Shown).await {
            self.failed(READER, &error);
        }
        self.seen().done.push((Done::Shown, Instant::now()));
        Ok(keys.len())
    }
}

fn sender(number: usize) -> String {
    format!("sender-{number}")
}

fn claimer(number: usize) -> String {
    format!("claimer-{number}")
}

/// Who wrote an entry, and the how manieth of theirs it is.
fn told(json: &[u8]) -> (String, usize) {
    let entry: serde_json::Value = serde_json::from_slice(json).unwrap();
    let text = entry["text"].as_str().unwrap();
    let (from, rest) = text.split_once('/').unwrap();
    (from.to_owned(), rest.split(' ').next().unwrap().parse().unwrap())
}
