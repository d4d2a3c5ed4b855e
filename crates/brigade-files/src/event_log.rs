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

use self::place::{Head, Place};
pub use self::recorded::{RecordedError, of_file};
use self::round::{Piece, Round, Spots};
use super::own::{Own, TEAM_LOG};
use super::{FileStore, Options, watch};
use brigade_core::event::Record;
use brigade_core::event_log::{BATCHES, Batch, Feed, Library, Shelves, Spot};
use brigade_core::store::StoreError;

/// How long a round waits after the one before. Where a thousand things happen in a second, they are given
/// some at a time, and nobody sees the difference.
const PAUSE: Duration = Duration::from_millis(16);

/// The journals, by their numbers.
#[derive(Debug, Default)]
struct Volumes(RwLock<Vec<Arc<Place>>>);

impl Volumes {
    /// Puts one more journal there.
    fn add(&self, place: Arc<Place>) -> Option<Spots> {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let spots = Spots::of(places.len())?;
        places.push(place);
        Some(spots)
    }
}

impl Shelves for Volumes {
    fn record(&self, spot: Spot) -> Option<Arc<Record>> {
        let (number, offset) = Spots::read(spot);
        let place = {
            let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.get(number)?)
        };
        place.record(offset).map(Arc::new)
    }
}

/// A journal, and how far it was given.
#[derive(Debug)]
struct Volume {
    place: Arc<Place>,
    spots: Spots,
    head: Head,
    upto: u64,
}

/// A journal by its folder and name.
type Key = (usize, String);

/// The journals of a team.
#[derive(Debug)]
struct Journals {
    store: FileStore,
    team: TeamName,
    own: Option<Arc<Own>>,
    volumes: Vec<Volume>,
    /// Which volume each is now, by folder and name.
    named: HashMap<Key, usize>,
    library: Arc<Volumes>,
}

impl FileStore {
    pub(super) fn chronicle_of(&self, team: &TeamName) -> Result<(Feed, Library), StoreError> {
        // First the bell: what comes after is heard. And it sees to it that what other programs did so far
        // is in the journals.
        let bell = match self.team_dir(team) {
            Ok(_) => Some(watch::bell(self, team)?),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let (bell, rings) = bell.unzip();
        let library = Arc::<Volumes>::default();
        let mut journals = Journals {
            store: FileStore::new(Options::clone(&self.options), Arc::clone(&self.clock)),
            team: team.clone(),
            own: None,
            volumes: Vec::new(),
            named: HashMap::new(),
            library: Arc::clone(&library),
        };
        let past = journals.grown()?;
        let passed_over = Arc::<AtomicU64>::default();
        let (sender, batches) = mpsc::channel(BATCHES);
        let feed = Feed::of(batches, Arc::clone(&passed_over), bell);
        let run = move || {
            journals.take_back(&past.give(&sender, &passed_over));
            if let Some(rings) = rings {
                go_on(&mut journals, &sender, &passed_over, &rings);
            }
        };
        thread(run).map_err(|source| {
            let path = self.own_teams.join(team.as_str());
            StoreError::Io { doing: "start a thread to read", path, source }
        })?;
        Ok((feed, library))
    }
}

fn thread(run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("brigade-feed".into()).spawn(run).map(drop)
}

/// Gives what is added, for as long as anybody takes it.
fn go_on(
    journals: &mut Journals,
    sender: &Sender<Batch>,
    passed_over: &AtomicU64,
    rings: &Receiver<()>,
) {
    // The first ring may be long past: something came while the past was being given.
    loop {
        match journals.grown() {
            Ok(round) if round.is_empty() => {}
            Ok(round) => {
                journals.take_back(&round.give(sender, passed_over));
                std::thread::sleep(PAUSE);
            }
            Err(error) => tracing::warn!(%error, "reading the journals"),
        }
        if sender.is_closed() || rings.recv().is_err() || sender.is_closed() {
            return;
        }
    }
}

impl Journals {
    /// What there is to be given: what was added to each journal since this was last asked.
    fn grown(&mut self) -> Result<Round, StoreError> {
        if !self.own.as_ref().is_some_and(|own| own.is_there()) {
            // Those of a folder that is gone stay gone; what is in another of its name is new.
            self.own = self.store.own_if_there(&self.team)?;
            self.named.clear();
        }
        let Some(own) = self.own.clone() else { return Ok(Round::default()) };
        let mut pieces = Vec::new();
        for (folder, name) in names(&own)? {
            pieces.extend(self.grown_in(&own, (folder, name))?);
        }
        // Of those that say the same time the older journal comes first.
        pieces.sort_by_key(|piece| piece.spots);
        Ok(Round::new(pieces))
    }

    /// What could not be read is still to be given.
    fn take_back(&mut self, stuck: &[(Spots, u64)]) {
        for volume in &mut self.volumes {
            let at = stuck.iter().find(|(spots, _)| *spots == volume.spots);
            volume.upto = at.map_or(volume.upto, |(_, at)| *at);
        }
    }

    /// What was added to one journal.
    fn grown_in(&mut self, own: &Arc<Own>, key: Key) -> Result<Option<Piece>, StoreError> {
        let known = self.named.get(&key).and_then(|&number| self.volumes.get_mut(number));
        if let Some(volume) = known {
            let Some(now) = volume.place.stamp()? else { return Ok(None) };
            if now.size == volume.upto {
                return Ok(None);
            }
            if volume.place.has(&volume.head)? {
                return volume.grown(now.size);
            }
            // Another journal under its name: all that is in it is new.
            tracing::warn!(path = %volume.place.path().display(), "a journal was replaced");
            volume.place.give_up();
        }
        let place = Arc::new(Place::new(Arc::clone(own), key.0, key.1.clone()));
        // Not before there is a whole line in it, for by that it is known again.
        let Some(head) = place.head()? else { return Ok(None) };
        let Some(spots) = self.library.add(Arc::clone(&place)) else { return Ok(None) };
        let Some(now) = place.stamp()? else { return Ok(None) };
        let mut volume = Volume { place, spots, head, upto: 0 };
        let piece = volume.grown(now.size);
        self.named.insert(key, self.volumes.len());
        self.volumes.push(volume);
        piece
    }
}

impl Volume {
    /// What was added, now that it is so long.
    fn grown(&mut self, size: u64) -> Result<Option<Piece>, StoreError> {
        if size < self.upto {
            // It was cut, or put back as it once was. What stands in it was given; what comes is new.
            tracing::warn!(path = %self.place.path().display(), "a journal has become shorter");
            self.upto = size;
        }
        let upto = self.place.whole_lines(self.upto, size)?;
        let from = std::mem::replace(&mut self.upto, upto);
        let piece = Piece { place: Arc::clone(&self.place), spots: self.spots, from, upto };
        Ok((from < upto).then_some(piece))
    }
}

/// The journals there are, each in its folder.
fn names(own: &Own) -> Result<Vec<Key>, StoreError> {
    let mut names = vec![(0, TEAM_LOG.to_owned())];
    for (folder, dir) in place::folders(own).skip(1) {
        let mut found = dir.names()?;
        found.retain(|name| name.ends_with(".jsonl"));
        found.sort();
        names.extend(found.into_iter().map(|name| (folder, name)));
    }
    Ok(names)
}
