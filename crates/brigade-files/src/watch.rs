//! What happens in a team, as it happens.
//!
//! Everything of note ends up in a journal, so a watch follows the journals. What other programs do
//! to the native files is first brought there by whoever notices. The kernel tells when a file
//! changes; behind it stands a slow look at everything, for what the kernel did not tell.
//!
//! All watches of one team and scope in one store share a follower, for each would read and compare the
//! same.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use brigade_wire::name::{MemberName, TaskId, TeamName};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::UnboundedSender;

use super::board::{file, task_id};
use super::dir::{Dir, identity};
use super::journal::Journal;
use super::lock::Patience;
use super::mailbox::{Work, World};
use super::own::{MAIL, Own, TEAM_LOG, WORK};
use super::{FileStore, Options, held};
use brigade_core::event::Record;
use brigade_core::store::{StoreError, Watch};

/// How often everything is looked at.
const SLOW_LOOK: Duration = Duration::from_secs(2);

/// What of a team is followed, or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// Everything.
    All,
    /// Everything but members' work.
    Proceedings,
}

impl Scope {
    /// The folders that hold a journal for each of some members.
    pub(super) fn folders(self, own: &Own) -> Vec<&Dir> {
        match self {
            Self::All => own.folders().to_vec(),
            Self::Proceedings => vec![&own.mail],
        }
    }
}

/// What the watches of a team share; the thread ends when the last of them is dropped.
pub(super) struct Shared {
    follower: Mutex<Follower>,
    wake: Sender<PathBuf>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ended = self.wake.send(PathBuf::new());
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

/// What is followed, and for whom.
struct Follower {
    store: FileStore,
    team: TeamName,
    scope: Scope,
    own: Arc<Own>,
    watcher: RecommendedWatcher,
    /// The folders, and which each was when it was found.
    watched: HashMap<PathBuf, (u64, u64)>,
    /// The journals, and how far each was read.
    journals: HashMap<PathBuf, (Journal, u64)>,
    /// Those who watch.
    events: Vec<UnboundedSender<Arc<Record>>>,
    /// Those who read the journals themselves, and only want to know when.
    bells: Vec<SyncSender<()>>,
}

/// Rings when a journal of a team may have grown.
#[derive(Debug)]
pub(super) struct Bell {
    ring: SyncSender<()>,
    _shared: Arc<Shared>,
}

impl Drop for Bell {
    /// For the last time, so that who waits for it sees that nobody cares any more.
    fn drop(&mut self) {
        let _rings_already = self.ring.try_send(());
    }
}

/// Starts watching a team.
pub(super) fn start(store: &FileStore, team: &TeamName, scope: Scope) -> Result<Watch, StoreError> {
    let shared = shared(store, team, scope)?;
    let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
    held(&shared.follower).begin()?.events.push(events);
    Ok(Watch::new(receiver, shared))
}

/// A bell that rings after every change of the journals from now on, for as long as it is kept, and now
/// and then for nothing. A ring that is not yet heard stands for all that follow.
pub(super) fn bell(store: &FileStore, team: &TeamName) -> Result<(Bell, Receiver<()>), StoreError> {
    let shared = shared(store, team, Scope::All)?;
    let (ring, rings) = sync_channel(1);
    held(&shared.follower).begin()?.bells.push(ring.clone());
    Ok((Bell { ring, _shared: shared }, rings))
}

/// What the watches of a team share.
fn shared(store: &FileStore, team: &TeamName, scope: Scope) -> Result<Arc<Shared>, StoreError> {
    let key = (team.clone(), scope);
    let mut watches = held(&store.watches);
    // One whose own folder is gone follows nothing any more.
    let there = watches.get(&key).and_then(Weak::upgrade);
    if let Some(shared) = there.filter(|shared| held(&shared.follower).own.is_there()) {
        return Ok(shared);
    }
    let shared = share(store, team, scope)?;
    watches.insert(key, Arc::downgrade(&shared));
    Ok(shared)
}

/// A follower for watches to share, and its thread.
fn share(store: &FileStore, team: &TeamName, scope: Scope) -> Result<Arc<Shared>, StoreError> {
    let (wake, paths) = channel();
    let tell = wake.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading is not news; and without an answer the slow look will find it.
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            for path in event.paths {
                let _ended = tell.send(path);
            }
        }
    });
    let failed = |error: notify::Error| StoreError::Io {
        doing: "watch",
        path: store.own_teams.join(team.as_str()),
        source: std::io::Error::other(error),
    };
    let own = store.own(team)?;
    let mut follower = Follower {
        store: FileStore::new(Options::clone(&store.options), Arc::clone(&store.clock)),
        team: team.clone(),
        scope,
        own,
        watcher: watcher.map_err(failed)?,
        watched: HashMap::new(),
        journals: HashMap::new(),
        events: Vec::new(),
        bells: Vec::new(),
    };
    follower.watch_folders();
    follower.skip_to_end()?;
    let shared = Arc::new(Shared { follower: Mutex::new(follower), wake });
    let followed = Arc::downgrade(&shared);
    let thread = std::thread::Builder::new().name("brigade-watch".into());
    thread.spawn(move || run(&followed, &paths)).map_err(|source| {
        let path = store.own_teams.join(team.as_str());
        StoreError::Io { doing: "start a thread to watch", path, source }
    })?;
    Ok(shared)
}

/// Follows for as long as anybody watches.
fn run(shared: &Weak<Shared>, paths: &Receiver<PathBuf>) {
    let mut looked = Instant::now();
    loop {
        let mut changed = HashSet::new();
        match paths.recv_timeout(SLOW_LOOK.saturating_sub(looked.elapsed())) {
            Ok(path) => {
                changed.insert(path);
                changed.extend(paths.try_iter());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        let mut follower = held(&shared.follower);
        let mut done = follower.look_at(&changed);
        // However busy the team is.
        let all = looked.elapsed() >= SLOW_LOOK;
        if all {
            follower.watch_folders();
            done = done.and(follower.look_at_all());
            looked = Instant::now();
        }
        let followed = if all { follower.follow() } else { follower.follow_changed(&changed) };
        for error in [done.err(), followed.err()].into_iter().flatten() {
            tracing::warn!(team = %follower.team, %error, "watching the team");
        }
        follower.ring();
    }
}

impl Follower {
    /// Makes ready for one more who watches: what others did before is history, not news; what is there
    /// from here on is.
    fn begin(&mut self) -> Result<&mut Self, StoreError> {
        self.look_at_all()?;
        self.follow()?;
        Ok(self)
    }

    /// Watches the folders that are there; those that are not come with the slow look.
    fn watch_folders(&mut self) {
        let claude = &self.store.options.claude_dir;
        let team = claude.join("teams").join(self.team.as_str());
        let native =
            [team.join("inboxes"), team, claude.join("tasks").join(self.team.as_str())].into_iter();
        let own = [&self.own.dir].into_iter().chain(self.scope.folders(&self.own));
        let own: Vec<PathBuf> = own.map(|dir| dir.itself().to_owned()).collect();
        for folder in own.into_iter().chain(native) {
            // A folder that was made again is another, though it has the same name.
            let now = identity(&folder);
            let was = self.watched.get(&folder).copied();
            if now == was {
                continue;
            }
            self.watched.remove(&folder);
            if let Some(now) = now
                && self.watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(folder, now);
            }
        }
    }

    /// Brings into the journals what changed in the native files.
    fn look_at(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let mut roster = false;
        let mut tasks = BTreeSet::new();
        for path in changed {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match path.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
                Some("inboxes") => {
                    if let Some(Ok(member)) = name.strip_suffix(".json").map(str::parse) {
                        self.try_look_at_inbox(&member);
                    }
                }
                Some(MAIL | WORK) => {}
                _ if name == "config.json" => roster = true,
                _ if name == TEAM_LOG => {}
                _ => tasks.extend(task_id(name)),
            }
        }
        if roster {
            self.look_at_roster()?;
        }
        for id in tasks {
            self.look_at_task(id)?;
        }
        Ok(())
    }

    fn look_at_all(&mut self) -> Result<(), StoreError> {
        if let Ok(native) = self.store.native(&self.team) {
            for name in native.inboxes.names()? {
                if let Some(Ok(member)) = name.strip_suffix(".json").map(str::parse) {
                    self.try_look_at_inbox(&member);
                }
            }
        }
        self.look_at_roster()?;
        let there: HashSet<_> = match self.store.board(&self.team) {
            Ok(board) => match board.dir() {
                Some(dir) => dir.names()?.iter().filter_map(|name| task_id(name)).collect(),
                None => HashSet::new(),
            },
            Err(StoreError::NoTeam { .. }) => HashSet::new(),
            Err(error) => return Err(error),
        };
        let seen = self.own.seen_tasks()?.into_iter();
        let seen = seen.filter_map(TaskId::new);
        for id in seen.chain(there.iter().copied()).collect::<BTreeSet<_>>() {
            self.look_at_task(id)?;
        }
        Ok(())
    }

    /// One inbox that cannot be read hides no other.
    fn try_look_at_inbox(&self, member: &MemberName) {
        if let Err(error) = self.look_at_inbox(member) {
            tracing::warn!(team = %self.team, %member, %error, "cannot look at the inbox");
        }
    }

    fn look_at_inbox(&self, member: &MemberName) -> Result<(), StoreError> {
        let Ok(native) = self.store.native(&self.team) else { return Ok(()) };
        let mailbox = self.store.mailbox(&self.team, member)?;
        let world = World {
            inboxes: &native.inboxes,
            clock: self.store.clock.as_ref(),
            team_created: &|| self.store.team_created(&self.team),
        };
        // One try: if somebody is at it, what it does will wake us again.
        held(&mailbox).attempt(&world, Work::Look, &mut Patience::default()).map(drop)
    }

    fn look_at_roster(&self) -> Result<(), StoreError> {
        // First the right to compare, then the file: what we then find new, nobody is about to write
        // down.
        let Some(seen) = self.own.seen()? else { return Ok(()) };
        let config = match self.store.team_dir(&self.team) {
            Ok(dir) => dir.read("config.json")?,
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let bytes = config.as_ref().map(|config| config.bytes.as_slice());
        if bytes.is_some_and(|bytes| super::check_team(bytes).is_err()) {
            // Written in place, and not finished; the end of the writing will wake us.
            return Ok(());
        }
        seen.roster(self.store.clock.as_ref(), None, bytes)
    }

    fn look_at_task(&self, id: TaskId) -> Result<(), StoreError> {
        let Some(seen) = self.own.seen()? else { return Ok(()) };
        let task = match self.store.board(&self.team) {
            Ok(board) => board.dir().map(|dir| dir.read(&file(id))).transpose()?.flatten(),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let bytes = task.as_ref().map(|task| task.bytes.as_slice());
        if bytes.is_some_and(|bytes| brigade_wire::task::Task::read(bytes).is_err()) {
            return Ok(());
        }
        seen.task(self.store.clock.as_ref(), None, id.get(), bytes)
    }

    /// Opens journals that are new, and gives out what was added to any.
    fn follow(&mut self) -> Result<(), StoreError> {
        self.open_journals()?;
        let news = news(self.journals.values_mut())?;
        self.tell(news);
        Ok(())
    }

    /// The same after these files changed. Mostly they are journals that are known, and no others need be
    /// looked at.
    fn follow_changed(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let known = |path: &PathBuf| {
            let journal = self.journals.get(path);
            journal.is_some_and(|(journal, _)| journal.is_there())
        };
        let state = |path: &PathBuf| path.extension().is_some_and(|end| end == "state");
        if !changed.iter().all(|path| state(path) || known(path)) {
            return self.follow();
        }
        let journals = self.journals.iter_mut().filter(|(path, _)| changed.contains(*path));
        let news = news(journals.map(|(_, journal)| journal))?;
        self.tell(news);
        Ok(())
    }

    fn tell(&mut self, mut news: Vec<Record>) {
        news.sort_by_key(|record| record.at);
        for record in news.into_iter().map(Arc::new) {
            // Who watches no longer is told no more.
            self.events.retain(|events| events.send(Arc::clone(&record)).is_ok());
        }
    }

    fn ring(&mut self) {
        let gone = |rung| matches!(rung, Err(TrySendError::Disconnected(())));
        self.bells.retain(|bell| !gone(bell.try_send(())));
    }

    fn open_journals(&mut self) -> Result<(), StoreError> {
        if !self.own.is_there() {
            let Some(own) = self.store.own_if_there(&self.team)? else { return Ok(()) };
            self.own = own;
            self.watch_folders();
        }
        // One that was removed may be begun anew, under the same name.
        self.journals.retain(|_, (journal, _)| journal.is_there());
        let mut journals = vec![(&self.own.dir, TEAM_LOG.to_owned())];
        for folder in self.scope.folders(&self.own) {
            let names = folder.names()?.into_iter().filter(|name| name.ends_with(".jsonl"));
            journals.extend(names.map(|name| (folder, name)));
        }
        for (folder, name) in journals {
            if let Entry::Vacant(new) = self.journals.entry(folder.path(&name)) {
                new.insert((Journal::open(folder, &name)?, 0));
            }
        }
        Ok(())
    }

    fn skip_to_end(&mut self) -> Result<(), StoreError> {
        self.open_journals()?;
        for (journal, upto) in self.journals.values_mut() {
            *upto = journal.read_from(journal.len()?)?.start.offset;
        }
        Ok(())
    }
}

/// What was added to these journals.
fn news<'j>(
    journals: impl Iterator<Item = &'j mut (Journal, u64)>,
) -> Result<Vec<Record>, StoreError> {
    let mut news = Vec::new();
    for (journal, upto) in journals {
        if journal.len()? > *upto {
            let tail = journal.read_from(*upto)?;
            *upto = tail.end.offset;
            news.extend(tail.records);
        }
    }
    Ok(news)
}
