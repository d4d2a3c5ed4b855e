//! Streams all events of a team: reads the team's journals in chunks and merges the records by
//! time.
//!
//! The stream works in rounds. Each round notes the length of each journal and sends the records added since the
//! previous round, sorted by time; the first round sends the history. Between rounds, the stream waits for a
//! change signal from the team's watch. It tracks its position in each journal. Therefore a spurious signal has no
//! effect, and a missed signal only causes a delay.
//!
//! No file stays open between reads, because a team may have more members than a process may have
//! open files.

mod lines;
mod merge;
mod records_file;
mod source;
mod time;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use brigade_wire::name::TeamName;
use jiff::Timestamp;
use tokio::sync::mpsc::{self, Sender};

use self::merge::MergeRound;
pub use self::records_file::{RecordsFileError, stream_records_file};
use self::source::{FirstLine, JournalIndex, JournalRange, JournalSource};
use super::layout::TEAM_JOURNAL;
use super::team_state::TeamStateDir;
use super::{FileStore, FileStoreOptions, journal, watch};
use brigade_core::event::Record;
use brigade_core::store::StoreError;
use brigade_core::store::event_log::{
    BATCHES, EventStream, RecordBatch, RecordLookup, RecordLookupHandle, RecordRef,
};

/// Minimum time between two rounds. Users do not notice this delay, but it is long enough to send
/// thousands of events per second in batches.
const ROUND_INTERVAL: Duration = Duration::from_millis(16);

/// Looks up records by journal number and offset.
#[derive(Debug, Default)]
struct JournalLookup(RwLock<Vec<Arc<JournalSource>>>);

impl JournalLookup {
    /// Adds a journal. Returns `None` if there are too many journals.
    fn add(&self, source: Arc<JournalSource>) -> Option<JournalIndex> {
        let mut sources = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let index = JournalIndex::new(sources.len())?;
        sources.push(source);
        Some(index)
    }
}

impl RecordLookup for JournalLookup {
    fn record(&self, spot: RecordRef) -> Option<Arc<Record>> {
        let (number, offset) = JournalIndex::split(spot);
        let source = {
            let sources = self.0.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(sources.get(number)?)
        };
        source.record(offset).map(Arc::new)
    }
}

/// A journal, and the offset up to which its records were sent.
#[derive(Debug)]
struct TrackedJournal {
    source: Arc<JournalSource>,
    index: JournalIndex,
    first_line: FirstLine,
    upto: u64,
}

/// Identifies a journal by folder number and file name.
type JournalKey = (usize, String);

/// The journals of a team, and how far each was read.
#[derive(Debug)]
struct TeamJournals {
    store: FileStore,
    team: TeamName,
    team_state: Option<Arc<TeamStateDir>>,
    tracked: Vec<TrackedJournal>,
    /// Maps the key of each journal to its index in `tracked`.
    by_key: HashMap<JournalKey, usize>,
    lookup: Arc<JournalLookup>,
    /// How many bytes at the end of a new journal to read; `None` for all of it.
    tail: Option<u64>,
    /// The journals that are not read from their beginning.
    cut: Vec<JournalIndex>,
    /// Whether to read the journals of members' work.
    work: bool,
}

impl FileStore {
    /// Streams the events of a team. With `tail`, begins about this many bytes before the end of each journal, and also returns the time
    /// from which on the stream contains all events. Without `work`, leaves out work events.
    pub(super) fn stream_events(
        &self,
        team: &TeamName,
        tail: Option<u64>,
        work: bool,
    ) -> Result<(EventStream, RecordLookupHandle, Option<Timestamp>), StoreError> {
        // Subscribe before reading the journals, so that later changes are signalled. Subscribing
        // also records in the journals what other programs have changed so far.
        let signal = match self.team_dir(team) {
            // Without brigade's own folder, on a read-only file system, there are no events.
            Ok(_) if self.readable_team_state(team)?.is_none() => None,
            Ok(_) => Some(watch::change_signal(self, team)?),
            Err(StoreError::NoTeam { .. }) => {
                self.record_missed_deletion(team)?;
                None
            }
            Err(error) => return Err(error),
        };
        let (signal, changes) = signal.unzip();
        let lookup = Arc::<JournalLookup>::default();
        let mut journals = TeamJournals {
            store: FileStore::new(FileStoreOptions::clone(&self.options), Arc::clone(&self.clock)),
            team: team.clone(),
            team_state: None,
            tracked: Vec::new(),
            by_key: HashMap::new(),
            lookup: Arc::clone(&lookup),
            tail,
            cut: Vec::new(),
            work,
        };
        let mut history = journals.next_round()?;
        let complete = history.complete_from(&journals.cut);
        // Read new journals from their beginning.
        journals.tail = None;
        let skipped = Arc::<AtomicU64>::default();
        let (sender, batches) = mpsc::channel(BATCHES);
        let feed = EventStream::with_source(batches, Arc::clone(&skipped), signal);
        let run = move || {
            journals.rewind_unread(&history.send_all(&sender, &skipped));
            if let Some(changes) = changes {
                follow(&mut journals, &sender, &skipped, &changes);
            }
        };
        spawn_reader(run).map_err(|source| {
            let path = self.team_states_path.join(team.as_str());
            StoreError::Io { doing: "start a thread to read", path, source }
        })?;
        Ok((feed, lookup, complete))
    }
}

fn spawn_reader(run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("brigade-feed".into()).spawn(run).map(drop)
}

/// Sends the records added to the journals, until the receiver is dropped.
fn follow(
    journals: &mut TeamJournals,
    sender: &Sender<RecordBatch>,
    skipped: &AtomicU64,
    changes: &Receiver<()>,
) {
    // Read the journals before waiting for the first signal: records may have been added while the
    // history was being sent.
    loop {
        match journals.next_round() {
            Ok(round) if round.is_empty() => {}
            Ok(round) => {
                journals.rewind_unread(&round.send_all(sender, skipped));
                std::thread::sleep(ROUND_INTERVAL);
            }
            Err(error) => tracing::warn!(%error, "cannot read the journals"),
        }
        if sender.is_closed() || changes.recv().is_err() || sender.is_closed() {
            return;
        }
    }
}

impl TeamJournals {
    /// Returns the next round: the records added to each journal since the last call.
    fn next_round(&mut self) -> Result<MergeRound, StoreError> {
        if !self.team_state.as_ref().is_some_and(|team_state| team_state.exists()) {
            // If the team's state folder was deleted, forget its journals. Journals in a new folder
            // of the same name are different files.
            self.team_state = self.store.existing_team_state(&self.team)?;
            self.by_key.clear();
        }
        let Some(team_state) = self.team_state.clone() else { return Ok(MergeRound::default()) };
        let mut ranges = Vec::new();
        for (folder, name) in journal_keys(&team_state, self.work)? {
            ranges.extend(self.new_range(&team_state, (folder, name))?);
        }
        // Records with equal times are sorted in the order in which their journals were added.
        ranges.sort_by_key(|range| range.index);
        Ok(MergeRound::new(ranges))
    }

    /// Moves the position in each of these journals back to where reading failed, so that the next
    /// round reads from there.
    fn rewind_unread(&mut self, unread: &[(JournalIndex, u64)]) {
        for journal in &mut self.tracked {
            let at = unread.iter().find(|(index, _)| *index == journal.index);
            journal.upto = at.map_or(journal.upto, |(_, at)| *at);
        }
    }

    /// Returns the range that was added to one journal since the last call.
    fn new_range(
        &mut self,
        team_state: &Arc<TeamStateDir>,
        key: JournalKey,
    ) -> Result<Option<JournalRange>, StoreError> {
        let known = self.by_key.get(&key).and_then(|&number| self.tracked.get_mut(number));
        if let Some(journal) = known {
            let Some(now) = journal.source.stamp()? else { return Ok(None) };
            if now.size == journal.upto {
                return Ok(None);
            }
            if journal.source.starts_with_line(&journal.first_line)? {
                return journal.new_range(now.size);
            }
            // A different file now has the journal's name. All records in that file are new.
            tracing::warn!(path = %journal.source.path().display(), "a journal was replaced");
            journal.source.mark_gone();
        }
        let source = Arc::new(JournalSource::new(Arc::clone(team_state), key.0, key.1.clone()));
        // Skip the journal until its first line is complete, because that line identifies the
        // journal.
        let Some(first_line) = source.first_line()? else { return Ok(None) };
        let Some(index) = self.lookup.add(Arc::clone(&source)) else { return Ok(None) };
        let Some(now) = source.stamp()? else { return Ok(None) };
        let from = match self.tail {
            Some(tail) if now.size > tail => source.line_after(now.size - tail)?,
            _ => 0,
        };
        if from > 0 {
            self.cut.push(index);
        }
        let mut journal = TrackedJournal { source, index, first_line, upto: from };
        let range = journal.new_range(now.size);
        self.by_key.insert(key, self.tracked.len());
        self.tracked.push(journal);
        range
    }
}

impl TrackedJournal {
    /// Returns the range added since the last call, given the current size of the file.
    fn new_range(&mut self, size: u64) -> Result<Option<JournalRange>, StoreError> {
        if size < self.upto {
            // The file was truncated or restored from an older copy. Its contents were already
            // sent; only records added from now on are new.
            tracing::warn!(path = %self.source.path().display(), "a journal was truncated");
            self.upto = size;
        }
        let upto = self.source.whole_lines(self.upto, size)?;
        let from = std::mem::replace(&mut self.upto, upto);
        let range =
            JournalRange { source: Arc::clone(&self.source), index: self.index, from, upto };
        Ok((from < upto).then_some(range))
    }
}

/// Lists the journals that exist in a team's state folder, with or without those of members' work.
fn journal_keys(team_state: &TeamStateDir, work: bool) -> Result<Vec<JournalKey>, StoreError> {
    let mut keys = vec![(0, TEAM_JOURNAL.to_owned())];
    // The folder of work is the last one.
    let folders = if work { 3 } else { 2 };
    for (folder, dir) in source::journal_folders(team_state).take(folders).skip(1) {
        let mut found = journal::names(dir)?;
        found.sort();
        keys.extend(found.into_iter().map(|name| (folder, name)));
    }
    Ok(keys)
}
