//! The past events of a team followed by live events, without holding all of them in memory.
//!
//! An [`EventStream`] yields the records in chronological order. Past events come in batches. A reader keeps only
//! the [`RecordRef`] of each record. A [`RecordLookupHandle`] returns the few records that are needed again.
//!
//! ```
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let (mut feed, library) = lead.store.event_stream(&lead.team).await?;
//! let batch = feed.next().await.ok_or("nothing happened")?;
//! let (spot, record) = &batch.records[0];
//! assert_eq!(library.record(*spot).map(|found| found.at), Some(record.at));
//! # Ok(())
//! # }
//! ```

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::name::{MemberName, TeamName};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::search::{ReportIndexing, SearchHit, SearchQuery, SearchResults};
use super::{Actor, StoreError, mail_query};
use crate::event::{Event, Record, RefusedEvent};

/// Stores the events of a team.
#[async_trait]
pub trait EventLog: fmt::Debug + Send + Sync {
    /// Records an event that does not change a document.
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError>;

    /// Returns all recorded events of the team, in chronological order.
    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError>;

    /// Like [`EventLog::history`], but without work events, which are by far the most numerous.
    async fn history_without_work(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let mut records = self.history(team).await?;
        records.retain(|record| !matches!(record.event, Event::Worked { .. }));
        Ok(records)
    }

    /// Like [`EventLog::history`], but only the events of the roster, the board and the answers: without mail and work.
    async fn team_history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let mut records = self.history_without_work(team).await?;
        records.retain(|record| record.event.mailbox().is_none());
        Ok(records)
    }

    /// Returns the events of these tasks and the deletions of the team, in chronological order.
    async fn task_history(&self, team: &TeamName, ids: &[u64]) -> Result<Vec<Record>, StoreError> {
        let mut records = self.team_history(team).await?;
        records.retain(|record| record.event.is_about_tasks(ids));
        Ok(records)
    }

    /// Returns the messages to these members that were never read, shown to the member's model or removed from the inbox, in
    /// chronological order. Each message is returned once, even if it was recorded twice.
    async fn unread_history(
        &self,
        team: &TeamName,
        members: &[MemberName],
    ) -> Result<Vec<Record>, StoreError> {
        Ok(mail_query::unread(self.history_without_work(team).await?, members))
    }

    /// Returns the ids among `ids` whose answers this member recorded, see [`Event::Answered`].
    async fn recorded_answers(
        &self,
        team: &TeamName,
        by: &MemberName,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let history = self.history_without_work(team).await?;
        Ok(mail_query::recorded_answers(&history, by.as_str(), ids))
    }

    /// Returns the last `count` events of the team without work events, in chronological order.
    async fn last_events(&self, team: &TeamName, count: usize) -> Result<Vec<Record>, StoreError> {
        let mut records = self.history_without_work(team).await?;
        Ok(records.split_off(records.len().saturating_sub(count)))
    }

    /// Returns the recorded events of the team that the query selects, newest first. A store may build an index first; it then
    /// calls `report` from time to time.
    async fn search(
        &self,
        team: &TeamName,
        query: &SearchQuery,
        _report: ReportIndexing<'_>,
    ) -> Result<SearchResults, StoreError> {
        let records = self.history(team).await?.into_iter();
        let found = records.filter(|record| query.matches(record));
        let hits = found.map(|record| SearchHit { record, place: None }).collect();
        Ok(SearchResults::newest(hits, query.limit))
    }

    /// Subscribes to the events of the team from now on.
    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError>;

    /// Like [`EventLog::watch`], but for readers that ignore work events and need not be woken by them.
    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.watch(team).await
    }

    /// Subscribes to the events that concern one member: its mail, its own actions, its removal, and the end or a new creation
    /// of the team. Other events may arrive, too. The member's own actions may arrive only after [`Watch::refresh`].
    async fn watch_member(
        &self,
        team: &TeamName,
        _member: &MemberName,
    ) -> Result<Watch, StoreError> {
        self.watch_without_work(team).await
    }

    /// Returns how often the reader of a watch reads the store itself, in case the watch has missed an event.
    fn recheck_interval(&self) -> Duration {
        Duration::from_mins(1)
    }

    /// Returns whether the store deletes old events without keeping the positions of later requests.
    fn history_expires(&self) -> bool {
        false
    }

    /// Returns the events of the team that this store ignored so far because their authors may not record them, and
    /// how often each occurred.
    fn refused_events(&self, _team: &TeamName) -> Vec<(RefusedEvent, usize)> {
        Vec::new()
    }

    /// Streams the team's past events followed by live events; for a deleted team, only the past events.
    async fn event_stream(
        &self,
        team: &TeamName,
    ) -> Result<(EventStream, RecordLookupHandle), StoreError> {
        stream_from_memory(self, team).await
    }

    /// Like [`EventLog::event_stream`], but may leave out old events. Returns the stream, and the time from which on it contains all
    /// events; `None` if it contains all of them. `bytes` is about how much of the end of each journal to read. `work` says whether
    /// the reader needs work events.
    async fn recent_event_stream(
        &self,
        team: &TeamName,
        _bytes: u64,
        _work: bool,
    ) -> Result<(EventStream, Option<Timestamp>), StoreError> {
        let (stream, _) = self.event_stream(team).await?;
        Ok((stream, None))
    }
}

/// The position of a record, for use with the [`RecordLookup`] that was returned together with the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordRef(pub u64);

/// Some records of a team, in order.
#[derive(Debug, Default)]
pub struct RecordBatch {
    /// The records, each with its position.
    pub records: Vec<(RecordRef, Arc<Record>)>,
    /// Whether the reader has received all past events with this batch.
    pub caught_up: bool,
}

/// Streams the records of a team, starting with the first one.
pub struct EventStream {
    batches: mpsc::Receiver<RecordBatch>,
    /// The number of journal lines that could not be parsed.
    passed_over: Arc<AtomicU64>,
    /// Stops the producer when dropped. `batches` is dropped first and closes the channel.
    _source: Box<dyn Send + Sync>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}

impl EventStream {
    /// Creates a stream of the batches that are sent to this channel.
    pub fn new(batches: mpsc::Receiver<RecordBatch>) -> Self {
        Self::with_source(batches, Arc::default(), ())
    }

    /// Creates a stream of the batches that are sent to this channel. Drops `source` when the stream is dropped.
    pub fn with_source(
        batches: mpsc::Receiver<RecordBatch>,
        passed_over: Arc<AtomicU64>,
        source: impl Send + Sync + 'static,
    ) -> Self {
        Self { batches, passed_over, _source: Box::new(source) }
    }

    /// Returns the number of journal lines skipped so far because they could not be parsed.
    pub fn skipped_lines(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// Waits for the next batch; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<RecordBatch> {
        self.batches.recv().await
    }
}

/// A stream of a team's live events.
pub struct Watch {
    /// The watches share their records. In a large team, each record waits in many watches at once.
    events: mpsc::UnboundedReceiver<Arc<Record>>,
    /// Makes the producer send the events that it has not sent yet.
    refresh: Option<Box<dyn Fn() + Send + Sync>>,
    /// Stops the producer when dropped.
    _source: Box<dyn Send + Sync>,
}

impl Watch {
    /// Creates a watch that receives from `events` and keeps `source` alive.
    pub fn new(
        events: mpsc::UnboundedReceiver<Arc<Record>>,
        source: impl Send + Sync + 'static,
    ) -> Self {
        Self { events, refresh: None, _source: Box::new(source) }
    }

    /// Returns the watch with a function that makes the producer send the events that it has not sent yet.
    #[must_use]
    pub fn with_refresh(self, refresh: impl Fn() + Send + Sync + 'static) -> Self {
        Self { refresh: Some(Box::new(refresh)), ..self }
    }

    /// Makes the events available that the store has recorded so far. For watches of a member.
    pub fn refresh(&self) {
        if let Some(refresh) = &self.refresh {
            refresh();
        }
    }

    /// Returns the next event if there is one.
    pub fn try_next(&mut self) -> Option<Arc<Record>> {
        self.events.try_recv().ok()
    }

    /// Waits for the next event; `None` when the watch has ended.
    pub async fn next(&mut self) -> Option<Record> {
        self.next_shared().await.map(Arc::unwrap_or_clone)
    }

    /// Like [`Watch::next`], but does not clone the record.
    pub async fn next_shared(&mut self) -> Option<Arc<Record>> {
        self.events.recv().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Looks up records by position.
pub trait RecordLookup: fmt::Debug + Send + Sync {
    /// Returns the record at this position, if it is still available.
    fn record(&self, spot: RecordRef) -> Option<Arc<Record>>;
}

/// A shared handle to look up the records of a stream.
pub type RecordLookupHandle = Arc<dyn RecordLookup>;

/// Records kept in memory.
#[derive(Debug, Default)]
pub struct InMemoryRecords {
    records: RwLock<Vec<Arc<Record>>>,
}

impl InMemoryRecords {
    /// Adds a record and returns its position.
    pub fn add(&self, record: Arc<Record>) -> RecordRef {
        let mut records = self.records.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        records.push(record);
        RecordRef(records.len() as u64 - 1)
    }
}

impl RecordLookup for InMemoryRecords {
    fn record(&self, spot: RecordRef) -> Option<Arc<Record>> {
        let records = self.records.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        records.get(usize::try_from(spot.0).ok()?).cloned()
    }
}

/// A live event that repeats a past event is skipped. Only past events from the end of the history, over this
/// length of time, are compared with live events.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);
/// The maximum number of records in a batch.
const MAX_BATCH: usize = 4096;
/// The capacity of the channel, in batches.
pub const BATCHES: usize = 4;

/// Creates an event stream for a store that has no journal files. The records are kept in memory.
async fn stream_from_memory<S: EventLog + ?Sized>(
    store: &S,
    team: &TeamName,
) -> Result<(EventStream, RecordLookupHandle), StoreError> {
    // Start the watch before reading the history, so that no event is missed.
    let watch = match store.watch(team).await {
        Ok(watch) => Some(watch),
        Err(StoreError::NoTeam { .. }) => None,
        Err(error) => return Err(error),
    };
    let history: Vec<Arc<Record>> = store.history(team).await?.into_iter().map(Arc::new).collect();
    let library = Arc::new(InMemoryRecords::default());
    let (sender, batches) = mpsc::channel(BATCHES);
    tokio::spawn(feed(Arc::clone(&library), history, watch, sender));
    Ok((EventStream::new(batches), library))
}

/// Sends the past events, then the live events from the watch.
async fn feed(
    library: Arc<InMemoryRecords>,
    history: Vec<Arc<Record>>,
    watch: Option<Watch>,
    sender: mpsc::Sender<RecordBatch>,
) {
    let add = |record: &Arc<Record>| (library.add(Arc::clone(record)), Arc::clone(record));
    for records in history.chunks(MAX_BATCH) {
        let records = records.iter().map(add).collect();
        if sender.send(RecordBatch { records, caught_up: false }).await.is_err() {
            return;
        }
    }
    if sender.send(RecordBatch { records: Vec::new(), caught_up: true }).await.is_err() {
        return;
    }
    let Some(mut watch) = watch else { return };
    let last = history.iter().map(|record| record.at).max();
    let recent = last.and_then(|last| last.checked_sub(OVERLAP).ok());
    let line = |record: &Record| serde_json::to_vec(record).unwrap_or_default();
    let is_recent = |record: &&Arc<Record>| recent.is_none_or(|recent| record.at >= recent);
    let mut already_sent: HashSet<Vec<u8>> =
        history.iter().filter(is_recent).map(|record| line(record)).collect();
    drop(history);
    while let Some(record) = watch.next_shared().await {
        if !already_sent.is_empty() && already_sent.remove(&line(&record)) {
            continue;
        }
        let records = vec![add(&record)];
        if sender.send(RecordBatch { records, caught_up: true }).await.is_err() {
            return;
        }
    }
}
