//! All that happened in a team, and then what happens, without keeping it in memory.
//!
//! A [`Feed`] gives the records in order of time, many at once as long as they are of the past. Who has
//! heard a record keeps its [`Spot`] and no more; the [`Library`] has the record itself, for the few that
//! are looked at.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let (mut feed, library) = lead.store.chronicle(&lead.team).await?;
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

use brigade_wire::name::TeamName;
use jiff::SignedDuration;
use tokio::sync::mpsc;

use crate::event::Record;
use crate::store::{Store, StoreError, Watch};

/// Where a record stands, in the library it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot(pub u64);

/// Some records, in order.
#[derive(Debug, Default)]
pub struct Batch {
    /// The records.
    pub records: Vec<(Spot, Arc<Record>)>,
    /// Whether this is all there is, for now.
    pub caught_up: bool,
}

/// The records of a team, from the first on.
pub struct Feed {
    batches: mpsc::Receiver<Batch>,
    /// How many lines were no records.
    passed_over: Arc<AtomicU64>,
    /// Ends what feeds it when dropped, which is after the channel is closed.
    _source: Box<dyn Send + Sync>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Feed")
    }
}

impl Feed {
    /// A feed that gives what is sent here.
    pub fn new(batches: mpsc::Receiver<Batch>) -> Self {
        Self::of(batches, Arc::default(), ())
    }

    /// A feed that gives what is sent here, by a source that is let go of with it.
    pub fn of(
        batches: mpsc::Receiver<Batch>,
        passed_over: Arc<AtomicU64>,
        source: impl Send + Sync + 'static,
    ) -> Self {
        Self { batches, passed_over, _source: Box::new(source) }
    }

    /// How many lines were passed over so far, because they are no records.
    pub fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// What comes next; `None` when nothing will.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }
}

/// Where records are looked up.
pub trait Shelves: fmt::Debug + Send + Sync {
    /// The record of that spot, if it can still be had.
    fn record(&self, spot: Spot) -> Option<Arc<Record>>;
}

/// Where the records of a feed are looked up.
pub type Library = Arc<dyn Shelves>;

/// Records that are kept in memory.
#[derive(Debug, Default)]
pub struct Held {
    records: RwLock<Vec<Arc<Record>>>,
}

impl Held {
    /// Keeps one more.
    pub fn keep(&self, record: Arc<Record>) -> Spot {
        let mut records = self.records.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        records.push(record);
        Spot(records.len() as u64 - 1)
    }
}

impl Shelves for Held {
    fn record(&self, spot: Spot) -> Option<Arc<Record>> {
        let records = self.records.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        records.get(usize::try_from(spot.0).ok()?).cloned()
    }
}

/// How far back what the watch tells may stand in the history already. A record's time is taken just
/// before it is written.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);
/// How many records are given at once.
const MANY: usize = 4096;
/// How many batches may wait.
pub const BATCHES: usize = 4;

/// The chronicle of a team in a store that has its history in no files: it is kept in memory.
pub async fn held<S: Store + ?Sized>(
    store: &S,
    team: &TeamName,
) -> Result<(Feed, Library), StoreError> {
    // Begun before the history is read, a watch misses nothing that comes after.
    let watch = match store.watch(team).await {
        Ok(watch) => Some(watch),
        Err(StoreError::NoTeam { .. }) => None,
        Err(error) => return Err(error),
    };
    let history: Vec<Arc<Record>> = store.history(team).await?.into_iter().map(Arc::new).collect();
    let library = Arc::new(Held::default());
    let (sender, batches) = mpsc::channel(BATCHES);
    tokio::spawn(tell(Arc::clone(&library), history, watch, sender));
    Ok((Feed::new(batches), library))
}

/// Gives out the past, and then what the watch tells.
async fn tell(
    library: Arc<Held>,
    history: Vec<Arc<Record>>,
    watch: Option<Watch>,
    sender: mpsc::Sender<Batch>,
) {
    let keep = |record: &Arc<Record>| (library.keep(Arc::clone(record)), Arc::clone(record));
    for records in history.chunks(MANY) {
        let records = records.iter().map(keep).collect();
        if sender.send(Batch { records, caught_up: false }).await.is_err() {
            return;
        }
    }
    if sender.send(Batch { records: Vec::new(), caught_up: true }).await.is_err() {
        return;
    }
    let Some(mut watch) = watch else { return };
    let last = history.iter().map(|record| record.at).max();
    let recent = last.and_then(|last| last.checked_sub(OVERLAP).ok());
    let line = |record: &Record| serde_json::to_vec(record).unwrap_or_default();
    let is_recent = |record: &&Arc<Record>| recent.is_none_or(|recent| record.at >= recent);
    let mut told: HashSet<Vec<u8>> =
        history.iter().filter(is_recent).map(|record| line(record)).collect();
    drop(history);
    while let Some(record) = watch.next_shared().await {
        if !told.is_empty() && told.remove(&line(&record)) {
            continue;
        }
        let records = vec![keep(&record)];
        if sender.send(Batch { records, caught_up: true }).await.is_err() {
            return;
        }
    }
}
