//! Reports events of a team as they happen.
//!
//! Every event ends up in a journal, so a watch follows the journals. When another program changes
//! a native file, the brigade process that notices the change records it in a journal before
//! reporting it. The kernel reports changed files. A full scan every few seconds finds changes that
//! the kernel did not report.
//!
//! All watches of one team and scope in one store share a follower, because otherwise each watch
//! would read and compare the same files.

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

use super::dir::{Dir, FileContents, identity};
use super::journal::{self, Journal};
use super::layout::{
    CONFIG, INBOXES, MAIL, TASKS, TEAM_JOURNAL, TEAMS, WORK, member_name, parse_temp_name,
    task_file, task_id,
};
use super::lock::LockWaiter;
use super::mailbox::{MailboxContext, MailboxWork};
use super::team_state::TeamStateDir;
use super::{FileStore, FileStoreOptions, lock_mutex};
use brigade_core::event::Record;
use brigade_core::store::{StoreError, Watch};

/// Interval between two full scans.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(2);

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
    wake: Sender<PathBuf>,
}

impl Drop for SharedFollower {
    fn drop(&mut self) {
        let _thread_ended = self.wake.send(PathBuf::new());
    }
}

impl std::fmt::Debug for SharedFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedFollower")
    }
}

/// Follows the files of a team and sends new records to its subscribers.
struct TeamFollower {
    store: FileStore,
    team: TeamName,
    scope: WatchScope,
    team_state: Arc<TeamStateDir>,
    watcher: RecommendedWatcher,
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
    if let Some(shared) = existing.filter(|shared| lock_mutex(&shared.follower).team_state.exists())
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
    let (wake, paths) = channel();
    let notify_sender = wake.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Ignore events about reads. The full scan finds any change that is not reported here.
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            for path in event.paths {
                let _thread_ended = notify_sender.send(path);
            }
        }
    });
    let io_error = |error: notify::Error| StoreError::Io {
        doing: "watch",
        path: store.team_states_path.join(team.as_str()),
        source: std::io::Error::other(error),
    };
    let team_state = store.team_state(team)?;
    let mut follower = TeamFollower {
        store: FileStore::new(FileStoreOptions::clone(&store.options), Arc::clone(&store.clock)),
        team: team.clone(),
        scope,
        team_state,
        watcher: watcher.map_err(io_error)?,
        watched: HashMap::new(),
        journals: HashMap::new(),
        events: Vec::new(),
        signals: Vec::new(),
    };
    follower.watch_folders();
    follower.skip_to_end()?;
    let shared = Arc::new(SharedFollower { follower: Mutex::new(follower), wake });
    let weak = Arc::downgrade(&shared);
    let thread = std::thread::Builder::new().name("brigade-watch".into());
    thread.spawn(move || run(&weak, &paths)).map_err(|source| {
        let path = store.team_states_path.join(team.as_str());
        StoreError::Io { doing: "start a thread to watch", path, source }
    })?;
    Ok(shared)
}

/// Runs the follower until the last watch is dropped.
fn run(shared: &Weak<SharedFollower>, paths: &Receiver<PathBuf>) {
    let mut last_full_scan = Instant::now();
    loop {
        let mut changed = HashSet::new();
        match paths.recv_timeout(FULL_SCAN_INTERVAL.saturating_sub(last_full_scan.elapsed())) {
            Ok(path) => {
                changed.insert(path);
                changed.extend(paths.try_iter());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        let mut follower = lock_mutex(&shared.follower);
        let mut scanned = follower.scan_changed(&changed);
        // Scan regularly, even if changes keep arriving.
        let all = last_full_scan.elapsed() >= FULL_SCAN_INTERVAL;
        if all {
            follower.watch_folders();
            scanned = scanned.and(follower.scan_all());
            last_full_scan = Instant::now();
        }
        let published = if all { follower.publish_new() } else { follower.publish_from(&changed) };
        for error in [scanned.err(), published.err()].into_iter().flatten() {
            tracing::warn!(team = %follower.team, %error, "error while watching the team");
        }
        follower.signal_change();
    }
}

impl TeamFollower {
    /// Publishes all changes so far, so that a new subscriber receives only later changes.
    fn catch_up(&mut self) -> Result<&mut Self, StoreError> {
        self.scan_all()?;
        self.publish_new()?;
        Ok(self)
    }

    /// Watches the folders that exist. The full scan adds folders that are created later.
    fn watch_folders(&mut self) {
        let claude = &self.store.options.claude_dir;
        let team = claude.join(TEAMS).join(self.team.as_str());
        // If the list cannot be found out now, the next full scan tries again.
        let list = self.store.task_list(&self.team).unwrap_or_else(|_| self.team.clone());
        let board = claude.join(TASKS).join(list.as_str());
        let native = [team.join(INBOXES), team, board].into_iter();
        let team_state =
            [&self.team_state.dir].into_iter().chain(self.scope.folders(&self.team_state));
        let team_state: Vec<PathBuf> = team_state.map(|dir| dir.dir_path().to_owned()).collect();
        for folder in team_state.into_iter().chain(native) {
            // A folder that was deleted and re-created has another identity and needs a new watch.
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

    /// Writes the changes in these native files to the journals.
    fn scan_changed(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let mut roster = false;
        let mut tasks = BTreeSet::new();
        for path in changed {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match path.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
                Some(INBOXES) => {
                    if let Some(Ok(member)) = member_name(name).map(str::parse) {
                        self.try_scan_inbox(&member);
                    }
                }
                Some(MAIL | WORK) => {}
                _ if name == CONFIG => roster = true,
                _ if name == TEAM_JOURNAL => {}
                _ => tasks.extend(task_id(name)),
            }
        }
        if roster {
            self.scan_roster()?;
        }
        for id in tasks {
            self.scan_task(id)?;
        }
        Ok(())
    }

    fn scan_all(&mut self) -> Result<(), StoreError> {
        // The creation of the team comes before its first message.
        self.scan_roster()?;
        if let Ok(native) = self.store.native_dirs(&self.team)
            && let Some(inboxes) = &native.inboxes
        {
            let names = inboxes.names()?;
            for name in &names {
                if let Some(Ok(member)) = member_name(name).map(str::parse) {
                    self.try_scan_inbox(&member);
                }
            }
            // The scan has completed the writes of processes that were killed. Remove their temporary files.
            for (file, _, _) in names.iter().filter_map(|name| parse_temp_name(name)) {
                if let Some(Ok(member)) =
                    member_name(file.trim_end_matches(".lock")).map(str::parse)
                    && let Some(mailbox) = self.store.readable_mailbox(&self.team, &member)?
                {
                    lock_mutex(&mailbox).sweep(inboxes)?;
                }
            }
        }
        let existing: HashSet<_> = match self.store.board(&self.team) {
            Ok(board) => match board.dir() {
                Some(dir) => dir.names()?.iter().filter_map(|name| task_id(name)).collect(),
                None => HashSet::new(),
            },
            Err(StoreError::NoTeam { .. }) => HashSet::new(),
            Err(error) => return Err(error),
        };
        let seen = self.team_state.seen_tasks()?.into_iter();
        let seen = seen.filter_map(TaskId::new);
        for id in seen.chain(existing.iter().copied()).collect::<BTreeSet<_>>() {
            self.scan_task(id)?;
        }
        Ok(())
    }

    /// Scans one inbox. Logs an error instead of returning it, so that one unreadable inbox does
    /// not prevent scanning the others.
    fn try_scan_inbox(&self, member: &MemberName) {
        if let Err(error) = self.scan_inbox(member) {
            tracing::warn!(team = %self.team, %member, %error, "cannot read the inbox");
        }
    }

    fn scan_inbox(&self, member: &MemberName) -> Result<(), StoreError> {
        let Ok(native) = self.store.native_dirs(&self.team) else { return Ok(()) };
        let mailbox = self.store.mailbox(&self.team, member)?;
        let context = MailboxContext {
            inboxes: native.inboxes()?,
            clock: self.store.clock.as_ref(),
            team_created: &|| self.store.team_created(&self.team),
        };
        // Try only once: if another process holds the lock, the write of that process triggers
        // another scan.
        lock_mutex(&mailbox)
            .attempt(&context, MailboxWork::Refresh, &mut LockWaiter::default())
            .map(drop)
    }

    fn scan_roster(&self) -> Result<(), StoreError> {
        // Lock the seen state before reading the file. A process that changes the roster holds that
        // lock until the change is recorded, so no other process is about to record a difference
        // that is found here.
        let Some(seen) = self.team_state.lock_seen()? else { return Ok(()) };
        let (dir, config) = match self.store.team_dir(&self.team) {
            Ok(dir) => {
                let config = dir.read(CONFIG)?;
                (Some(dir), config)
            }
            Err(StoreError::NoTeam { .. }) => (None, None),
            Err(error) => return Err(error),
        };
        let bytes = config.as_ref().map(|config| config.bytes.as_slice());
        if bytes.is_some_and(|bytes| super::check_team(bytes).is_err()) {
            // The file is being written in place. The end of that write triggers another scan.
            return Ok(());
        }
        seen.record_roster(self.store.clock.as_ref(), None, dir.as_ref().zip(bytes))
    }

    /// Reads the roster's file. Returns `None` if the team does not exist.
    fn read_config(&self) -> Result<Option<FileContents>, StoreError> {
        match self.store.team_dir(&self.team) {
            Ok(dir) => dir.read(CONFIG),
            Err(StoreError::NoTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn scan_task(&self, id: TaskId) -> Result<(), StoreError> {
        let Some(seen) = self.team_state.lock_seen()? else { return Ok(()) };
        let task = match self.store.board(&self.team) {
            Ok(board) => board.dir().map(|dir| dir.read(&task_file(id))).transpose()?.flatten(),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let bytes = task.as_ref().map(|task| task.bytes.as_slice());
        if bytes.is_some_and(|bytes| brigade_wire::task::Task::read(bytes).is_err()) {
            return Ok(());
        }
        let clock = self.store.clock.as_ref();
        if bytes.is_none() && self.read_config()?.is_none() {
            // The task disappeared with its team. Record the deletion of the team first, so that readers of the
            // journal can tell this from the deletion of a single task.
            seen.record_roster(clock, None, None)?;
        }
        seen.record_task(clock, None, id.get(), bytes)
    }

    /// Opens new journals, and publishes the records added to any journal.
    fn publish_new(&mut self) -> Result<(), StoreError> {
        self.open_journals()?;
        let records = read_new(self.journals.values_mut())?;
        self.publish(records);
        Ok(())
    }

    /// Publishes the records added to these files. If all these files are known journals, which is
    /// the usual case, no other journal is read.
    fn publish_from(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let known = |path: &PathBuf| {
            let journal = self.journals.get(path);
            journal.is_some_and(|(journal, _)| journal.exists())
        };
        let state = |path: &PathBuf| path.extension().is_some_and(|end| end == "state");
        if !changed.iter().all(|path| state(path) || known(path)) {
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
        if !self.team_state.exists() {
            let Some(team_state) = self.store.existing_team_state(&self.team)? else {
                return Ok(());
            };
            self.team_state = team_state;
            self.watch_folders();
        }
        // Forget deleted journals. A journal of the same name may be created later.
        self.journals.retain(|_, (journal, _)| journal.exists());
        let mut journals = vec![(&self.team_state.dir, TEAM_JOURNAL.to_owned())];
        for folder in self.scope.folders(&self.team_state) {
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
            *upto = journal.read_from(journal.len()?)?.start.offset;
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
