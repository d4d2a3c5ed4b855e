//! Reports events of a team as they happen.
//!
//! Every event ends up in a journal, so a watch follows the journals. When another program changes
//! a native file, the brigade process that notices the change records it in a journal before
//! reporting it. The kernel reports changed files. A full scan every few seconds finds changes that
//! the kernel did not report.
//!
//! All watches of one team and scope in one store share a follower, because otherwise each watch
//! would read and compare the same files.

mod changes;
mod folders;
pub(crate) mod member;
mod scan;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use brigade_wire::name::TeamName;
use tokio::sync::mpsc::UnboundedSender;

use self::changes::{ChangeWaiter, ChangeWatcher, Waited};
pub use self::folders::FolderWatch;
use self::scan::NativeScan;
use super::dir::{Dir, identity};
use super::journal::{self, Journal};
use super::layout::{INBOXES, TEAM_JOURNAL, TEAMS};
use super::team_state::TeamStateDir;
use super::{FileStore, FileStoreOptions, lock_mutex};
use brigade_core::event::Record;
use brigade_core::store::{StoreError, Watch};

/// Interval between two full scans of the native files.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between two checks of all journals. Between them, the kernel reports which journals have grown.
const JOURNALS_INTERVAL: Duration = Duration::from_secs(10);

/// The events of a team that a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WatchScope {
    /// All events.
    All,
    /// All events except members' work.
    WithoutWork,
}

impl WatchScope {
    /// Returns the folders of per-member journals that this scope includes.
    pub(super) fn folders(self, team_state: &TeamStateDir) -> Vec<&Dir> {
        match self {
            Self::All => team_state.member_journal_folders().to_vec(),
            Self::WithoutWork => vec![&team_state.mail],
        }
    }
}

/// The follower that the watches of a team share. Its thread ends when the last watch is dropped.
pub(super) struct SharedFollower {
    follower: Mutex<TeamFollower>,
}

impl std::fmt::Debug for SharedFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedFollower")
    }
}

/// Follows the files of a team and sends new records to its subscribers.
struct TeamFollower {
    scan: NativeScan,
    scope: WatchScope,
    changes: ChangeWatcher,
    /// Held while this process scans all files of the team, so that members need not; `None` if another process does.
    _scanner: Option<OwnedFd>,
    /// The watched folders, with their device and inode when the watch was set.
    watched: HashMap<PathBuf, (u64, u64)>,
    /// The journals, and the offset up to which each was read.
    journals: HashMap<PathBuf, (Journal, u64)>,
    /// Subscribers that receive each record.
    events: Vec<UnboundedSender<Arc<Record>>>,
    /// Subscribers that read the journals themselves and only need to know when to read.
    signals: Vec<SyncSender<()>>,
}

/// A subscription to signals that a team's journal may have grown. Dropping it ends the
/// subscription.
#[derive(Debug)]
pub(super) struct ChangeSignal {
    notify: SyncSender<()>,
    _shared: Arc<SharedFollower>,
}

impl Drop for ChangeSignal {
    /// Sends a last signal. It wakes a waiting receiver, so that the receiver notices the end of
    /// the subscription.
    fn drop(&mut self) {
        let _already_signalled = self.notify.try_send(());
    }
}

/// Starts watching a team.
pub(super) fn start(
    store: &FileStore,
    team: &TeamName,
    scope: WatchScope,
) -> Result<Watch, StoreError> {
    let shared = shared_follower(store, team, scope)?;
    let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
    lock_mutex(&shared.follower).catch_up()?.events.push(events);
    Ok(Watch::new(receiver, shared))
}

/// Returns a subscription and a receiver. While the subscription exists, the receiver gets a signal
/// for every later change to the journals. Spurious signals are possible. One signal may stand for
/// several changes.
pub(super) fn change_signal(
    store: &FileStore,
    team: &TeamName,
) -> Result<(ChangeSignal, Receiver<()>), StoreError> {
    let shared = shared_follower(store, team, WatchScope::All)?;
    let (notify, changes) = sync_channel(1);
    lock_mutex(&shared.follower).catch_up()?.signals.push(notify.clone());
    Ok((ChangeSignal { notify, _shared: shared }, changes))
}

/// Records in the journals what other programs have changed so far.
pub(super) fn record_changes(store: &FileStore, team: &TeamName) -> Result<(), StoreError> {
    let own_store =
        FileStore::new(FileStoreOptions::clone(&store.options), Arc::clone(&store.clock));
    NativeScan::new(own_store, team.clone(), store.team_state(team)?).all_files()
}

/// Returns the follower of a team and scope, starting it if needed.
fn shared_follower(
    store: &FileStore,
    team: &TeamName,
    scope: WatchScope,
) -> Result<Arc<SharedFollower>, StoreError> {
    let key = (team.clone(), scope);
    let mut watches = lock_mutex(&store.watches);
    // A follower whose state folder was deleted no longer finds any changes. Start a new follower instead.
    let existing = watches.get(&key).and_then(Weak::upgrade);
    if let Some(shared) =
        existing.filter(|shared| lock_mutex(&shared.follower).scan.team_state.exists())
    {
        return Ok(shared);
    }
    let shared = start_follower(store, team, scope)?;
    watches.insert(key, Arc::downgrade(&shared));
    Ok(shared)
}

/// Starts a follower and its thread.
fn start_follower(
    store: &FileStore,
    team: &TeamName,
    scope: WatchScope,
) -> Result<Arc<SharedFollower>, StoreError> {
    let io_error = |source| StoreError::Io {
        doing: "watch",
        path: store.team_states_path.join(team.as_str()),
        source,
    };
    let (changes, waiter) = ChangeWatcher::new().map_err(io_error)?;
    let team_state = store.team_state(team)?;
    let own_store =
        FileStore::new(FileStoreOptions::clone(&store.options), Arc::clone(&store.clock));
    let scan = NativeScan::new(own_store, team.clone(), team_state);
    let mut follower = TeamFollower {
        _scanner: member::lock_scanner(&scan),
        scan,
        scope,
        changes,
        watched: HashMap::new(),
        journals: HashMap::new(),
        events: Vec::new(),
        signals: Vec::new(),
    };
    follower.watch_folders();
    follower.skip_to_end()?;
    let shared = Arc::new(SharedFollower { follower: Mutex::new(follower) });
    let weak = Arc::downgrade(&shared);
    spawn_thread(store, team, move || run(&weak, &waiter))?;
    Ok(shared)
}

/// Starts a thread that follows a team's files.
fn spawn_thread(
    store: &FileStore,
    team: &TeamName,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new().name("brigade-watch".into());
    thread.spawn(run).map(drop).map_err(|source| {
        let path = store.team_states_path.join(team.as_str());
        StoreError::Io { doing: "start a thread to watch", path, source }
    })
}

/// Runs the follower until the last watch is dropped.
fn run(shared: &Weak<SharedFollower>, waiter: &ChangeWaiter) {
    let mut last_full_scan = Instant::now();
    let mut last_journal_check = Instant::now();
    loop {
        let limit = FULL_SCAN_INTERVAL.saturating_sub(last_full_scan.elapsed());
        if waiter.wait(limit) == Waited::Ended {
            return;
        }
        let Some(shared) = shared.upgrade() else { return };
        let mut follower = lock_mutex(&shared.follower);
        let changes = follower.changes.take();
        let mut scanned = follower.scan.changed_files(&changes.paths);
        // Scan regularly, even if changes keep arriving.
        let all = changes.is_incomplete || last_full_scan.elapsed() >= FULL_SCAN_INTERVAL;
        let mut has_new_folder = false;
        if all {
            has_new_folder = follower.watch_folders();
            scanned = scanned.and(follower.scan.all_files());
            last_full_scan = Instant::now();
        }
        let published = if changes.is_incomplete
            || has_new_folder
            || last_journal_check.elapsed() >= JOURNALS_INTERVAL
        {
            last_journal_check = Instant::now();
            follower.publish_new()
        } else {
            follower.publish_from(&changes.paths)
        };
        for error in [scanned.err(), published.err()].into_iter().flatten() {
            tracing::warn!(team = %follower.scan.team, %error, "error while watching the team");
        }
        follower.signal_change();
    }
}

impl TeamFollower {
    /// Publishes all changes so far, so that a new subscriber receives only later changes.
    fn catch_up(&mut self) -> Result<&mut Self, StoreError> {
        self.scan.all_files()?;
        self.publish_new()?;
        Ok(self)
    }

    /// Watches the folders that exist. The full scan adds folders that are created later. Returns whether a folder was added:
    /// files in it may have changed before.
    fn watch_folders(&mut self) -> bool {
        let team = self.scan.store.options.claude_dir.join(TEAMS).join(self.scan.team.as_str());
        let native = [team.join(INBOXES), team, self.scan.board_path()].into_iter();
        let team_state = &self.scan.team_state;
        let folders = [&team_state.dir].into_iter().chain(self.scope.folders(team_state));
        let team_state: Vec<PathBuf> = folders.map(|dir| dir.dir_path().to_owned()).collect();
        let mut is_added = false;
        for folder in team_state.into_iter().chain(native) {
            // A folder that was deleted and re-created has another identity and needs a new watch.
            let now = identity(&folder);
            let was = self.watched.get(&folder).copied();
            if now == was {
                continue;
            }
            self.watched.remove(&folder);
            if let Some(now) = now
                && self.changes.watch_folder(&folder)
            {
                self.watched.insert(folder, now);
                is_added = true;
            }
        }
        is_added
    }

    /// Opens new journals, and publishes the records added to any journal.
    fn publish_new(&mut self) -> Result<(), StoreError> {
        self.open_journals()?;
        let records = read_new(self.journals.values_mut())?;
        self.publish(records);
        Ok(())
    }

    /// Publishes the records added to the journals among these files. No other journal is read.
    fn publish_from(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let is_journal = |path: &&PathBuf| path.extension().is_some_and(|end| end == "jsonl");
        let known = |path: &PathBuf| {
            let journal = self.journals.get(path);
            journal.is_some_and(|(journal, _)| journal.exists())
        };
        if !changed.iter().filter(is_journal).all(known) {
            return self.publish_new();
        }
        let journals = self.journals.iter_mut().filter(|(path, _)| changed.contains(*path));
        let records = read_new(journals.map(|(_, journal)| journal))?;
        self.publish(records);
        Ok(())
    }

    fn publish(&mut self, mut records: Vec<Record>) {
        records.sort_by_key(|record| record.at);
        for record in records.into_iter().map(Arc::new) {
            // Remove subscribers whose receiver was dropped.
            self.events.retain(|events| events.send(Arc::clone(&record)).is_ok());
        }
    }

    fn signal_change(&mut self) {
        let gone = |result| matches!(result, Err(TrySendError::Disconnected(())));
        self.signals.retain(|signal| !gone(signal.try_send(())));
    }

    fn open_journals(&mut self) -> Result<(), StoreError> {
        if !self.scan.team_state.exists() {
            let found = self.scan.store.existing_team_state(&self.scan.team)?;
            let Some(team_state) = found else { return Ok(()) };
            self.scan.team_state = team_state;
            self.watch_folders();
        }
        // Forget deleted journals. A journal of the same name may be created later.
        self.journals.retain(|_, (journal, _)| journal.exists());
        let team_state = &self.scan.team_state;
        let mut journals = vec![(&team_state.dir, TEAM_JOURNAL.to_owned())];
        for folder in self.scope.folders(team_state) {
            journals.extend(journal::names(folder)?.into_iter().map(|name| (folder, name)));
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
            *upto = journal.len()?;
        }
        Ok(())
    }
}

/// Reads the records added to these journals.
fn read_new<'j>(
    journals: impl Iterator<Item = &'j mut (Journal, u64)>,
) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::new();
    for (journal, upto) in journals {
        if journal.len()? > *upto {
            let tail = journal.read_from(*upto)?;
            *upto = tail.end.offset;
            records.extend(tail.records);
        }
    }
    Ok(records)
}
