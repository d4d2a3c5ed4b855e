//! The chronicle of a team in files: its journals, read in pieces and merged by time.
//!
//! It goes in rounds. A round takes how long each journal is, and gives what was added since the round
//! before, in order of time; the first is the past. Between two rounds the feed waits for the bell of those
//! who watch the team. As the feed keeps its own place in each journal, a bell too many does nothing, and
//! one too few is made up for by the next.
//!
//! No file is kept open, for a team may have more members than a process may have files.

mod lines;
mod place;
mod recorded;
mod round;
mod time;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use brigade_wire::name::TeamName;
use tokio::sync::mpsc::{self, Sender};

use self::place::{FirstLine, JournalSource};
pub use self::recorded::{RecordedError, of_file};
use self::round::{JournalIndex, JournalRange, MergeRound};
use super::own::{TEAM_LOG, TeamStateDir};
use super::{FileStore, Options, watch};
use crate::chronicle::{BATCHES, Batch, Feed, Library, Shelves, Spot};
use crate::event::Record;
use crate::store::StoreError;

/// How long a round waits after the one before. Where a thousand things happen in a second, they are given
/// some at a time, and nobody sees the difference.
const ROUND_INTERVAL: Duration = Duration::from_millis(16);

/// The journals, by their numbers.
#[derive(Debug, Default)]
struct JournalLookup(RwLock<Vec<Arc<JournalSource>>>);

impl JournalLookup {
    /// Puts one more journal there.
    fn add(&self, source: Arc<JournalSource>) -> Option<JournalIndex> {
        let mut sources = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let index = JournalIndex::new(sources.len())?;
        sources.push(source);
        Some(index)
    }
}

impl Shelves for JournalLookup {
    fn record(&self, spot: Spot) -> Option<Arc<Record>> {
        let (number, offset) = JournalIndex::split(spot);
        let source = {
            let sources = self.0.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(sources.get(number)?)
        };
        source.record(offset).map(Arc::new)
    }
}

/// A journal, and how far it was given.
#[derive(Debug)]
struct TrackedJournal {
    source: Arc<JournalSource>,
    index: JournalIndex,
    first_line: FirstLine,
    upto: u64,
}

/// A journal by its folder and name.
type JournalKey = (usize, String);

/// The journals of a team.
#[derive(Debug)]
struct TeamJournals {
    store: FileStore,
    team: TeamName,
    team_state: Option<Arc<TeamStateDir>>,
    tracked: Vec<TrackedJournal>,
    /// Which volume each is now, by folder and name.
    by_key: HashMap<JournalKey, usize>,
    lookup: Arc<JournalLookup>,
}

impl FileStore {
    pub(super) fn event_stream(&self, team: &TeamName) -> Result<(Feed, Library), StoreError> {
        // First the bell: what comes after is heard. And it sees to it that what other programs did so far
        // is in the journals.
        let signal = match self.team_dir(team) {
            Ok(_) => Some(watch::change_signal(self, team)?),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let (signal, changes) = signal.unzip();
        let lookup = Arc::<JournalLookup>::default();
        let mut journals = TeamJournals {
            store: FileStore::new(Options::clone(&self.options), Arc::clone(&self.clock)),
            team: team.clone(),
            team_state: None,
            tracked: Vec::new(),
            by_key: HashMap::new(),
            lookup: Arc::clone(&lookup),
        };
        let history = journals.next_round()?;
        let skipped = Arc::<AtomicU64>::default();
        let (sender, batches) = mpsc::channel(BATCHES);
        let feed = Feed::of(batches, Arc::clone(&skipped), signal);
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
        Ok((feed, lookup))
    }
}

fn spawn_reader(run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("brigade-feed".into()).spawn(run).map(drop)
}

/// Gives what is added, for as long as anybody takes it.
fn follow(
    journals: &mut TeamJournals,
    sender: &Sender<Batch>,
    skipped: &AtomicU64,
    changes: &Receiver<()>,
) {
    // The first ring may be long past: something came while the past was being given.
    loop {
        match journals.next_round() {
            Ok(round) if round.is_empty() => {}
            Ok(round) => {
                journals.rewind_unread(&round.send_all(sender, skipped));
                std::thread::sleep(ROUND_INTERVAL);
            }
            Err(error) => tracing::warn!(%error, "reading the journals"),
        }
        if sender.is_closed() || changes.recv().is_err() || sender.is_closed() {
            return;
        }
    }
}

impl TeamJournals {
    /// What there is to be given: what was added to each journal since this was last asked.
    fn next_round(&mut self) -> Result<MergeRound, StoreError> {
        if !self.team_state.as_ref().is_some_and(|team_state| team_state.exists()) {
            // Those of a folder that is gone stay gone; what is in another of its name is new.
            self.team_state = self.store.existing_team_state(&self.team)?;
            self.by_key.clear();
        }
        let Some(team_state) = self.team_state.clone() else { return Ok(MergeRound::default()) };
        let mut ranges = Vec::new();
        for (folder, name) in journal_keys(&team_state)? {
            ranges.extend(self.new_range(&team_state, (folder, name))?);
        }
        // Of those that say the same time the older journal comes first.
        ranges.sort_by_key(|range| range.index);
        Ok(MergeRound::new(ranges))
    }

    /// What could not be read is still to be given.
    fn rewind_unread(&mut self, unread: &[(JournalIndex, u64)]) {
        for journal in &mut self.tracked {
            let at = unread.iter().find(|(index, _)| *index == journal.index);
            journal.upto = at.map_or(journal.upto, |(_, at)| *at);
        }
    }

    /// What was added to one journal.
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
            // Another journal under its name: all that is in it is new.
            tracing::warn!(path = %journal.source.path().display(), "a journal was replaced");
            journal.source.mark_gone();
        }
        let source = Arc::new(JournalSource::new(Arc::clone(team_state), key.0, key.1.clone()));
        // Not before there is a whole line in it, for by that it is known again.
        let Some(first_line) = source.first_line()? else { return Ok(None) };
        let Some(index) = self.lookup.add(Arc::clone(&source)) else { return Ok(None) };
        let Some(now) = source.stamp()? else { return Ok(None) };
        let mut journal = TrackedJournal { source, index, first_line, upto: 0 };
        let range = journal.new_range(now.size);
        self.by_key.insert(key, self.tracked.len());
        self.tracked.push(journal);
        range
    }
}

impl TrackedJournal {
    /// What was added, now that it is so long.
    fn new_range(&mut self, size: u64) -> Result<Option<JournalRange>, StoreError> {
        if size < self.upto {
            // It was cut, or put back as it once was. What stands in it was given; what comes is new.
            tracing::warn!(path = %self.source.path().display(), "a journal has become shorter");
            self.upto = size;
        }
        let upto = self.source.whole_lines(self.upto, size)?;
        let from = std::mem::replace(&mut self.upto, upto);
        let range =
            JournalRange { source: Arc::clone(&self.source), index: self.index, from, upto };
        Ok((from < upto).then_some(range))
    }
}

/// The journals there are, each in its folder.
fn journal_keys(team_state: &TeamStateDir) -> Result<Vec<JournalKey>, StoreError> {
    let mut keys = vec![(0, TEAM_LOG.to_owned())];
    for (folder, dir) in place::journal_folders(team_state).skip(1) {
        let mut found = dir.names()?;
        found.retain(|name| name.ends_with(".jsonl"));
        found.sort();
        keys.extend(found.into_iter().map(|name| (folder, name)));
    }
    Ok(keys)
}
