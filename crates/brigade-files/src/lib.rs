//! Stores teams in Claude Code's own files, so that brigade and Claude Code can work on the same
//! team at the same time.
//!
//! [`FileStore`] implements [`brigade_core::store::Store`]. Claude Code's files are the source of
//! truth. Journals and other data that only brigade uses are in brigade's own folder. [`layout`]
//! lists the names of all files, Claude Code's and brigade's.
//!
//! # Parts
//!
//! - Files: `dir` (operations relative to an open directory), `temp_file`, `lock` and `lock_id`
//!   (Claude Code's lock), `document` and `revision` (compare-and-set replacement under that lock),
//!   `config_file` (parses each version of a roster once).
//! - Mail: `mailbox` delivers the messages in a `journal` to an inbox, and loses no message when a
//!   process dies. An update of an inbox has three steps: `observe`, `draft` and `commit`. `state`
//!   is the data that brigade saves between updates. `unowned` removes an inbox without a member.
//! - Teams: `teams` (creation and deletion), `board` (tasks), `repair` (fixes a torn roster),
//!   `team_state` (brigade's own files for a team, including the roster and board as last seen),
//!   `last_seen` (whether that roster belongs to the current team), `incomplete` (changes that took
//!   effect although a later step failed).
//! - Events: `watch` reports new events; `event_log` streams all past events, then new ones.
//! - History: `history` searches the journals, with the help of an `index`. `retention` deletes old records, which leaves a
//!   `hole` in a journal, and `deleted_records` says which ones.
//! - `store` and `board_store` implement the `Store` trait with these modules.
//!
//! # Rules
//!
//! - Change only the fields that have to change; keep every other byte of a native file.
//! - Never follow a symbolic link, and never touch another user's file.
//! - Hold no file lock across an `.await`. System calls run on the caller's thread, because each
//!   takes a fraction of a millisecond; calls that have to wait sleep without blocking the thread.
//! - Make no decisions about members, mail or tasks: `brigade-core` makes them. Read no environment
//!   variables.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::roster::{self, TeamPlan};
//! use brigade_core::seat::Seat;
//! use brigade_files::{FileStore, FileStoreOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let options = FileStoreOptions::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! assert!(home.join(".claude/teams/demo/config.json").exists());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod board;
mod board_store;
mod checks;
mod config_file;
mod deleted_records;
mod deletion;
mod dir;
mod document;
mod event_log;
mod history;
mod hole;
mod incomplete;
mod index;
mod journal;
mod last_seen;
pub mod layout;
mod lock;
mod lock_id;
mod mailbox;
mod repair;
mod retention;
mod revision;
mod search;
mod searched_journals;
mod sqlite_file;
mod store;
mod task_list;
mod team_state;
mod teams;
mod temp_file;
mod text_index;
mod unowned;
mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use brigade_wire::Damage;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use self::config_file::{ConfigCache, ReadConfig};
use self::dir::{Dir, Fsync, is_read_only};
pub use self::event_log::{RecordsFileError, stream_records_file};
use self::journal::Journal;
pub use self::last_seen::last_seen_roster;
use self::layout::{CONFIG, INBOXES, TEAMS, member_file, member_journal};
use self::lock::{LockWaiter, TryOutcome};
use self::mailbox::state::MailboxStateFile;
use self::mailbox::{FileMailbox, MailboxContext, MailboxWork};
pub use self::retention::{DeletedRecords, HistorySize};
use self::team_state::TeamStateDir;
pub use self::watch::FolderWatch;
use brigade_core::clock::{Clock, SystemClock};
use brigade_core::hash::Fnv;
use brigade_core::store::{IncompleteWrite, MovedTasks, StoreError, WriteObstacle};

/// Failures that an acknowledged message survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Messages survive the death of any process at any moment.
    #[default]
    Process,
    /// Messages also survive power loss: a message is on disk before it is acknowledged.
    Power,
}

/// Configuration of a file store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Claude Code's folder, `~/.claude` by default.
    pub claude_dir: PathBuf,
    /// Brigade's own folder. The `brigade` program uses `$XDG_STATE_HOME/brigade`.
    pub state_dir: PathBuf,
    /// Failures that an acknowledged message survives.
    pub durability: Durability,
    /// Maximum time to wait for a lock.
    pub lock_wait: Duration,
    /// The task list of every team, if Claude Code named one for this process. Otherwise the store finds out each team's
    /// list itself.
    pub task_list: Option<TeamName>,
    /// Whether reading leaves everything as it is. Other stores deliver pending mail, record the changes of other programs and
    /// remove leftovers while they read. Only the index of a long journal is still brought up to date.
    pub is_read_only: bool,
}

impl FileStoreOptions {
    /// Creates options for these folders, with the default durability and maximum lock wait.
    pub fn new(claude_dir: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            claude_dir: claude_dir.into(),
            state_dir: state_dir.into(),
            durability: Durability::default(),
            lock_wait: DEFAULT_LOCK_WAIT,
            task_list: None,
            is_read_only: false,
        }
    }

    /// Sets the durability.
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the task list of every team.
    pub fn with_task_list(self, task_list: Option<TeamName>) -> Self {
        Self { task_list, ..self }
    }

    /// Sets whether reading leaves everything as it is.
    pub fn with_read_only(self, is_read_only: bool) -> Self {
        Self { is_read_only, ..self }
    }

    /// Sets the maximum time to wait for a lock.
    pub fn with_lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }
}

/// Default maximum time to wait for a lock: slightly longer than an abandoned lock takes to become
/// stale.
pub const DEFAULT_LOCK_WAIT: Duration = Duration::from_secs(12);

/// Returns an identifier that is unique to a Claude Code folder.
pub fn claude_dir_key(claude_dir: &Path) -> String {
    let claude_dir = claude_dir.canonicalize().unwrap_or_else(|_| claude_dir.to_owned());
    let key = Fnv::default().bytes(claude_dir.as_os_str().as_encoded_bytes()).finish();
    format!("{key:016x}")
}

/// A store that keeps teams in Claude Code's own files.
#[derive(Debug)]
pub struct FileStore {
    options: FileStoreOptions,
    clock: Arc<dyn Clock>,
    /// The folder where brigade stores its own data about the teams in this Claude Code folder.
    team_states_path: PathBuf,
    native_dirs: Mutex<HashMap<TeamName, Arc<NativeDirs>>>,
    team_states: Mutex<HashMap<TeamName, Arc<TeamStateDir>>>,
    mailboxes: Mutex<HashMap<(TeamName, MemberName), SharedFileMailbox>>,
    /// Maps each team and scope to the follower that the watches of that team and scope share. The
    /// follower lives as long as any of these watches.
    watches: Mutex<HashMap<(TeamName, watch::WatchScope), Weak<watch::SharedFollower>>>,
    /// Changes that took effect, although a later step failed.
    incomplete: Mutex<Vec<IncompleteWrite>>,
    moved: Mutex<Vec<MovedTasks>>,
}

/// A team's open directories inside Claude Code's folder.
#[derive(Debug)]
struct NativeDirs {
    team: Dir,
    /// The folder of inboxes; `None` if it does not exist and cannot be created, because the file
    /// system is read-only.
    inboxes: Option<Dir>,
    /// Device and inode of the team directory when it was opened.
    id: Option<(u64, u64)>,
    config: ConfigCache,
}

impl NativeDirs {
    fn inboxes(&self) -> Result<&Dir, StoreError> {
        let missing =
            || dir::io_error("create the directory", self.team.path(INBOXES), Errno::ROFS);
        self.inboxes.as_ref().ok_or_else(missing)
    }
}

/// A mailbox that only one thread may use at a time. The mutex is needed because the mailbox's
/// `flock` excludes only other processes.
type SharedFileMailbox = Arc<Mutex<FileMailbox>>;

impl FileStore {
    /// Creates a store that uses these folders and the system clock. The folders need not exist
    /// yet.
    pub fn open(options: FileStoreOptions) -> Self {
        Self::new(options, Arc::new(SystemClock))
    }

    /// Creates a store that uses the given clock.
    pub fn new(options: FileStoreOptions, clock: Arc<dyn Clock>) -> Self {
        // The path depends on the Claude Code folder, because two such folders may hold teams of
        // the same name.
        let team_states_path = layout::team_states_dir(&options.state_dir, &options.claude_dir);
        Self {
            options,
            clock,
            team_states_path,
            native_dirs: Mutex::default(),
            team_states: Mutex::default(),
            mailboxes: Mutex::default(),
            watches: Mutex::default(),
            incomplete: Mutex::default(),
            moved: Mutex::default(),
        }
    }

    fn sync(&self) -> Fsync {
        if self.options.durability == Durability::Power { Fsync::Yes } else { Fsync::No }
    }

    /// Fsyncs a directory if the store is power-safe, so that renames in it survive power loss.
    fn sync_if_power_safe(&self, dir: Option<&Dir>) -> Result<(), StoreError> {
        match dir {
            Some(dir) if self.sync() == Fsync::Yes => dir.sync(),
            _ => Ok(()),
        }
    }

    /// Returns whether Claude Code's folder of teams exists. If it does not, a missing team was not necessarily
    /// deleted: the file system may not be mounted.
    pub fn has_teams_folder(&self) -> Result<bool, StoreError> {
        Ok(Dir::open(&self.teams_path())?.is_some())
    }

    fn teams_path(&self) -> PathBuf {
        self.options.claude_dir.join(TEAMS)
    }

    fn team_dir(&self, team: &TeamName) -> Result<Dir, StoreError> {
        let teams = Dir::open(&self.teams_path())?;
        let dir = teams.map(|teams| teams.child(team.as_str())).transpose()?.flatten();
        dir.ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }

    /// Returns the team's native directories. Directories opened earlier are reused, unless the
    /// team was deleted and re-created since then.
    fn native_dirs(&self, team: &TeamName) -> Result<Arc<NativeDirs>, StoreError> {
        let mut native_dirs = lock_mutex(&self.native_dirs);
        if let Some(native) = native_dirs.get(team)
            && native.id == dir::identity(&self.teams_path().join(team.as_str()))
            && native.inboxes.as_ref().is_some_and(Dir::exists)
        {
            return Ok(Arc::clone(native));
        }
        native_dirs.remove(team);
        let id = dir::identity(&self.teams_path().join(team.as_str()));
        let dir = self.team_dir(team)?;
        let inboxes = match dir.child(INBOXES)? {
            Some(inboxes) => Some(inboxes),
            // Claude Code is deleting the team, or creating it. A folder that is left over would make a resumed lead use
            // another team.
            None if dir.stamp(CONFIG)?.is_none() => {
                return Err(StoreError::NoTeam { team: team.clone() });
            }
            None if self.options.is_read_only => None,
            None => match dir.open_or_create_child(INBOXES) {
                Ok(inboxes) => Some(inboxes),
                Err(error) if is_read_only(&error) => None,
                Err(error) => return Err(error),
            },
        };
        let native =
            Arc::new(NativeDirs { team: dir, inboxes, id, config: ConfigCache::default() });
        native_dirs.insert(team.clone(), Arc::clone(&native));
        Ok(native)
    }

    /// Returns brigade's own folder for a team, creating it if needed.
    fn team_state(&self, team: &TeamName) -> Result<Arc<TeamStateDir>, StoreError> {
        let mut team_states = lock_mutex(&self.team_states);
        if let Some(team_state) = team_states.get(team).filter(|team_state| team_state.exists()) {
            return Ok(Arc::clone(team_state));
        }
        if self.options.is_read_only {
            TeamStateDir::check_complete(&self.team_states_path.join(team.as_str()))?;
        }
        let team_state =
            Arc::new(TeamStateDir::open(&open_state_dir(&self.team_states_path)?, team.as_str())?);
        team_states.insert(team.clone(), Arc::clone(&team_state));
        Ok(team_state)
    }

    /// Returns brigade's own folder for a team, or `None` if it does not exist.
    fn existing_team_state(
        &self,
        team: &TeamName,
    ) -> Result<Option<Arc<TeamStateDir>>, StoreError> {
        let existing = Dir::open(&self.team_states_path)?.map(|teams| teams.child(team.as_str()));
        match existing.transpose()?.flatten() {
            Some(_) => self.readable_team_state(team),
            None => Ok(None),
        }
    }

    /// Returns brigade's own folder for a team, creating it if needed. Returns `None` if the folder
    /// is not complete and cannot be completed, because the file system is read-only.
    fn readable_team_state(
        &self,
        team: &TeamName,
    ) -> Result<Option<Arc<TeamStateDir>>, StoreError> {
        match self.team_state(team) {
            Ok(team_state) => Ok(Some(team_state)),
            Err(error) if is_read_only(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a member's mailbox, or `None` if it does not exist and cannot be created, because
    /// the file system is read-only.
    fn readable_mailbox(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Option<SharedFileMailbox>, StoreError> {
        match self.mailbox(team, member) {
            Ok(mailbox) => Ok(Some(mailbox)),
            Err(error) if is_read_only(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn mailbox(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<SharedFileMailbox, StoreError> {
        let mut mailboxes = lock_mutex(&self.mailboxes);
        let key = (team.clone(), member.clone());
        if let Some(mailbox) =
            mailboxes.get(&key).filter(|mailbox| lock_mutex(mailbox).journal.exists())
        {
            return Ok(Arc::clone(mailbox));
        }
        let team_state = self.team_state(team)?;
        let (journal, state) = (member_journal(member), format!("{member}.state"));
        if self.options.is_read_only {
            team_state.mail.check_exists(&[&journal, &state])?;
        }
        let mailbox = FileMailbox {
            member: member.to_string(),
            journal: Journal::open(&team_state.mail, &journal)?,
            state: MailboxStateFile::open(&team_state.mail, &state)?,
            mail_dir: Arc::clone(&team_state.mail),
            team_state,
            counted: None,
        };
        let mailbox = Arc::new(Mutex::new(mailbox));
        mailboxes.insert(key, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    /// Performs work on a mailbox, waiting for the locks if necessary.
    async fn do_work(
        &self,
        team: &TeamName,
        member: &MemberName,
        work: MailboxWork<'_>,
    ) -> Result<(), StoreError> {
        let native = self.native_dirs(team)?;
        if self.options.is_read_only {
            return Err(dir::io_error(
                "change the inbox in",
                native.team.path(INBOXES),
                Errno::ROFS,
            ));
        }
        let mailbox = self.mailbox(team, member)?;
        self.do_work_on(team, &native, &mailbox, work).await
    }

    async fn do_work_on(
        &self,
        team: &TeamName,
        native: &NativeDirs,
        mailbox: &Mutex<FileMailbox>,
        work: MailboxWork<'_>,
    ) -> Result<(), StoreError> {
        let done = self.retry_step(team, native, |context, waiter| {
            lock_mutex(mailbox).attempt(context, work, waiter)
        });
        let done = done.await;
        lock_mutex(mailbox).update_index();
        done
    }

    /// Cleans up a member's inbox. Call this when all Claude Code processes that used the inbox
    /// have ended, and before starting a new one.
    ///
    /// Removes a lock that one of these processes left behind, and restores messages that they may
    /// have overwritten. After that, no message counts as at risk of being overwritten.
    pub async fn recover_after_natives_ended(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<(), StoreError> {
        let native = self.native_dirs(team)?;
        let mailbox = self.mailbox(team, member)?;
        self.retry_step(team, &native, |context, _| {
            lock_mutex(&mailbox).recover_after_natives_ended(context)
        })
        .await?;
        // Restored messages must be in the inbox before the next Claude Code process reads the
        // inbox. Otherwise that process would receive the messages twice.
        self.do_work_on(team, &native, &mailbox, MailboxWork::Refresh).await
    }

    /// Repeats `step` on a mailbox until the step is done or the maximum lock wait has passed.
    async fn retry_step(
        &self,
        team: &TeamName,
        native: &NativeDirs,
        step: impl Fn(&MailboxContext<'_>, &mut LockWaiter) -> Result<TryOutcome<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let inboxes = native.inboxes()?;
        let attempt = |waiter: &mut LockWaiter| {
            let context = MailboxContext {
                inboxes,
                clock: self.clock.as_ref(),
                team_created: &|| self.team_created(team),
            };
            step(&context, waiter)
        };
        self.retry(attempt).await
    }

    /// Returns the creation time of the current team in milliseconds, or `None` if its roster
    /// cannot be read.
    fn team_created(&self, team: &TeamName) -> Option<u64> {
        let native = self.native_dirs(team).ok()?;
        match native.config.read_once(&native.team).ok()?? {
            ReadConfig::Valid(version) => version.roster.team().created_at(),
            ReadConfig::Torn(_) => None,
        }
    }

    /// Repeats `attempt` until it is done or the maximum lock wait has passed.
    async fn retry<T>(
        &self,
        mut attempt: impl FnMut(&mut LockWaiter) -> Result<TryOutcome<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let mut waiter = LockWaiter::default();
        let start = Instant::now();
        loop {
            let obstacle = match attempt(&mut waiter)? {
                TryOutcome::Done(done) => return Ok(done),
                TryOutcome::Retry if start.elapsed() >= self.options.lock_wait => {
                    return Err(StoreError::Conflict);
                }
                TryOutcome::Retry => continue,
                TryOutcome::Wait(obstacle) => obstacle,
            };
            waiter.has_waited = true;
            let unlockable =
                matches!(obstacle, WriteObstacle::NotALock { .. } | WriteObstacle::Filled { .. });
            let limit = if unlockable { UNLOCKABLE_WAIT } else { self.options.lock_wait };
            let waited = start.elapsed();
            if waited >= limit {
                return Err(obstacle.into());
            }
            // Another brigade process that holds the lock usually finishes within a moment and
            // delivers our messages as well. A holder that takes longer is suspended or dead.
            if waited < MAX_RETRY_DELAY {
                // Block the thread, because this delay is too short for the tokio timer. The thread
                // is blocked no longer than one write takes.
                std::thread::sleep(MIN_RETRY_DELAY);
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep((waited / 8).min(MAX_RETRY_DELAY)).await;
            }
        }
    }

    /// Returns an error if a message could never be delivered. Called before a message is acknowledged.
    fn check_deliverable(&self, inboxes: &Dir, member: &MemberName) -> Result<(), StoreError> {
        inboxes.check_replaceable(&member_file(member))?;
        let writable =
            accessat(inboxes.fd(), ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        writable.map_err(|error| dir::io_error("write to", inboxes.dir_path().to_owned(), error))
    }
}

/// Shortest and longest delay between two attempts to acquire a lock.
const MIN_RETRY_DELAY: Duration = Duration::from_micros(250);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Maximum wait if the lock's path is a file, or a directory with files in it. No program can
/// acquire such a lock.
const UNLOCKABLE_WAIT: Duration = Duration::from_secs(1);

/// Opens the folder where brigade stores its own data about all teams, creating the folder if
/// needed. Only the current user may enter the folder.
fn open_state_dir(path: &Path) -> Result<Dir, StoreError> {
    let make = |path: &Path| -> Result<Dir, StoreError> {
        let parent = path.parent().unwrap_or(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        dir::create_all(parent)?;
        let missing = || dir::io_error("open", parent.to_owned(), Errno::NOENT);
        Dir::open(parent)?.ok_or_else(missing)?.private_child(name)
    };
    if let Some(dir) = Dir::open(path)? {
        return Ok(dir);
    }
    // Brigade owns the last three levels of the path: `brigade`, `files`, and the folder for this
    // Claude Code folder.
    for ours in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
        make(ours)?;
    }
    make(path)
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_team(bytes: &[u8]) -> Result<(), Damage> {
    Team::read(bytes).map(drop)
}
