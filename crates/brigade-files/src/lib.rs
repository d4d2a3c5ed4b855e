//! Teams in Claude Code's own files.
//!
//! - `dir`: files by name from an open directory; `lock`: Claude Code's lock; `document`: a file
//!   replaced under it;
//! - `mailbox` with its `journal` and `state`: how a message gets into an inbox and is never lost;
//!   `draft`, `commit` and `observe` are the steps of that;
//! - `board`: tasks; `own`: what we keep of a team for ourselves;
//! - `watch`: what happens, as it happens; `chronicle`: that, and all that happened before.
//!
//! The calls here do their system calls on the caller's thread: they take a fraction of a
//! millisecond, and what has to wait sleeps without keeping the thread.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::roster::{self, TeamPlan};
//! use brigade_core::seat::Seat;
//! use brigade_files::{FileStore, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let options = Options::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! assert!(home.join(".claude/teams/demo/config.json").exists());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod board;
mod commit;
mod dir;
mod document;
mod draft;
mod event_log;
mod journal;
mod lock;
mod lock_id;
mod mailbox;
mod observe;
mod own;
mod repair;
mod state;
mod store;
mod teams;
mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use brigade_wire::Damage;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use rustix::fs::{Access, AtFlags, Mode, accessat};

use self::dir::{Dir, Stamp, Sync};
use self::document::Tried;
pub use self::event_log::{RecordedError, of_file};
use self::journal::Journal;
use self::lock::Patience;
use self::mailbox::{Mailbox, Step, Work, World};
use self::own::Own;
use self::state::StateFile;
use brigade_core::clock::{Clock, SystemClock};
use brigade_core::hash::Fnv;
use brigade_core::store::{Obstacle, StoreError};

/// What an acknowledged message survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of any process, at any moment.
    #[default]
    Process,
    /// That, and the loss of power: a write is on the disk before it is acknowledged.
    Power,
}

/// How a file store behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Claude Code's folder, `~/.claude` unless somebody moved it.
    pub claude_dir: PathBuf,
    /// Brigade's own folder, `$XDG_STATE_HOME/brigade` for the program.
    pub state_dir: PathBuf,
    /// What an acknowledged message survives.
    pub durability: Durability,
    /// How long to wait for a lock at most.
    pub lock_wait: Duration,
}

impl Options {
    /// These folders; a message survives the death of any process, and a lock is waited for until an
    /// abandoned one would have grown stale.
    pub fn new(claude_dir: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            claude_dir: claude_dir.into(),
            state_dir: state_dir.into(),
            durability: Durability::default(),
            lock_wait: LOCK_WAIT,
        }
    }

    /// The same with this durability.
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// The same with this patience for a lock.
    pub fn with_lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }
}

/// How long to wait for a lock: a little longer than it takes an abandoned one to grow stale.
pub const LOCK_WAIT: Duration = Duration::from_secs(12);

/// A word for a folder of Claude Code's that no other such folder has.
pub fn folder_key(claude_dir: &Path) -> String {
    let claude_dir = claude_dir.canonicalize().unwrap_or_else(|_| claude_dir.to_owned());
    let key = Fnv::default().bytes(claude_dir.as_os_str().as_encoded_bytes()).finish();
    format!("{key:016x}")
}

/// Teams in Claude Code's own files.
#[derive(Debug)]
pub struct FileStore {
    options: Options,
    clock: Arc<dyn Clock>,
    /// Brigade's folder for the teams of this Claude Code folder.
    own_teams: PathBuf,
    natives: Mutex<HashMap<TeamName, Arc<Native>>>,
    owns: Mutex<HashMap<TeamName, Arc<Own>>>,
    boxes: Mutex<HashMap<(TeamName, MemberName), SharedMailbox>>,
    /// What watches of a team share, for as long as there are any.
    watches: Mutex<HashMap<(TeamName, watch::Scope), Weak<watch::Shared>>>,
}

/// A team's folders in Claude Code's, held open.
#[derive(Debug)]
struct Native {
    team: Dir,
    inboxes: Dir,
    /// Which directory stood where the team's does when it was opened.
    id: Option<(u64, u64)>,
    /// The last `config.json` that was found whole, so that it need not be checked each time.
    whole: Mutex<Option<Stamp>>,
}

/// A mailbox, used by one thread at a time: its `flock` keeps processes apart, not threads.
type SharedMailbox = Arc<Mutex<Mailbox>>;

impl FileStore {
    /// A store on these folders, which need not be there yet, by the machine's own clock.
    pub fn open(options: Options) -> Self {
        Self::new(options, Arc::new(SystemClock))
    }

    /// The same by any clock.
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Self {
        // Two Claude Code folders may hold teams of the same name.
        let own_teams = options.state_dir.join("files").join(folder_key(&options.claude_dir));
        let (natives, owns, boxes) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { options, clock, own_teams, natives, owns, boxes, watches: Mutex::default() }
    }

    fn sync(&self) -> Sync {
        if self.options.durability == Durability::Power { Sync::Yes } else { Sync::No }
    }

    /// Sees to it that what was renamed in a folder is so after a power cut, where that is promised.
    fn settle(&self, dir: Option<&Dir>) -> Result<(), StoreError> {
        match dir {
            Some(dir) if self.sync() == Sync::Yes => dir.sync(),
            _ => Ok(()),
        }
    }

    fn teams_path(&self) -> PathBuf {
        self.options.claude_dir.join("teams")
    }

    fn team_dir(&self, team: &TeamName) -> Result<Dir, StoreError> {
        let teams = Dir::open(&self.teams_path())?;
        let dir = teams.map(|teams| teams.child(team.as_str())).transpose()?.flatten();
        dir.ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }

    /// The team's folders, opened once and then only looked after: a team may be deleted and made
    /// again.
    fn native(&self, team: &TeamName) -> Result<Arc<Native>, StoreError> {
        let mut natives = held(&self.natives);
        if let Some(native) = natives.get(team)
            && native.id == dir::identity(&self.teams_path().join(team.as_str()))
            && native.inboxes.is_there()
        {
            return Ok(Arc::clone(native));
        }
        natives.remove(team);
        let id = dir::identity(&self.teams_path().join(team.as_str()));
        let dir = self.team_dir(team)?;
        let inboxes = dir.child_made("inboxes", Mode::from_raw_mode(0o777))?;
        let native = Arc::new(Native { team: dir, inboxes, id, whole: Mutex::default() });
        natives.insert(team.clone(), Arc::clone(&native));
        Ok(native)
    }

    /// Our own folder for a team, made at its first use.
    fn own(&self, team: &TeamName) -> Result<Arc<Own>, StoreError> {
        let mut owns = held(&self.owns);
        if let Some(own) = owns.get(team).filter(|own| own.is_there()) {
            return Ok(Arc::clone(own));
        }
        let own = Arc::new(Own::open(&own_dir(&self.own_teams)?, team.as_str())?);
        owns.insert(team.clone(), Arc::clone(&own));
        Ok(own)
    }

    /// Our own folder for a team, if there is one.
    fn own_if_there(&self, team: &TeamName) -> Result<Option<Arc<Own>>, StoreError> {
        let there = Dir::open(&self.own_teams)?.map(|teams| teams.child(team.as_str()));
        there.transpose()?.flatten().map(|_| self.own(team)).transpose()
    }

    fn mailbox(&self, team: &TeamName, of: &MemberName) -> Result<SharedMailbox, StoreError> {
        let mut boxes = held(&self.boxes);
        let key = (team.clone(), of.clone());
        if let Some(mailbox) = boxes.get(&key).filter(|mailbox| held(mailbox).journal.is_there()) {
            return Ok(Arc::clone(mailbox));
        }
        let own = self.own(team)?;
        let mailbox = Mailbox {
            member: of.to_string(),
            journal: Journal::open(&own.mail, &format!("{of}.jsonl"))?,
            state: StateFile::open(&own.mail, &format!("{of}.state"))?,
            mail: Arc::clone(&own.mail),
            aside: own.dir.own_child("aside")?,
        };
        let mailbox = Arc::new(Mutex::new(mailbox));
        boxes.insert(key, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    /// Does work on a mailbox, waiting for the locks if need be.
    async fn work(
        &self,
        team: &TeamName,
        of: &MemberName,
        work: Work<'_>,
    ) -> Result<(), StoreError> {
        let native = self.native(team)?;
        let mailbox = self.mailbox(team, of)?;
        self.work_on(team, &native, &mailbox, work).await
    }

    async fn work_on(
        &self,
        team: &TeamName,
        native: &Native,
        mailbox: &Mutex<Mailbox>,
        work: Work<'_>,
    ) -> Result<(), StoreError> {
        self.steps(team, native, |world, patience| held(mailbox).attempt(world, work, patience))
            .await
    }

    /// Tells that every program of Claude Code's that used this member's inbox has ended, before one is
    /// started again: what one of them left locked is free at once, what it may have overwritten is put
    /// back, and nothing is in doubt from then on.
    pub async fn natives_ended(&self, team: &TeamName, of: &MemberName) -> Result<(), StoreError> {
        let native = self.native(team)?;
        let mailbox = self.mailbox(team, of)?;
        self.steps(team, &native, |world, _| held(&mailbox).natives_ended(world)).await?;
        // What was put back must stand there before the next of them reads, or it is told twice.
        self.work_on(team, &native, &mailbox, Work::Look).await
    }

    /// Does one step on a mailbox until it is done.
    async fn steps(
        &self,
        team: &TeamName,
        native: &Native,
        step: impl Fn(&World<'_>, &mut Patience) -> Result<Step, StoreError>,
    ) -> Result<(), StoreError> {
        let attempt = |patience: &mut Patience| {
            let world = World {
                inboxes: &native.inboxes,
                clock: self.clock.as_ref(),
                team_created: &|| self.team_created(team),
            };
            Ok(match step(&world, patience)? {
                Step::Done => Tried::Done(()),
                Step::Wait(obstacle) => Tried::Wait(obstacle),
                Step::Again => Tried::Again,
            })
        };
        self.wait(attempt).await
    }

    /// When the team that is there now was created, in milliseconds, if that can be read.
    fn team_created(&self, team: &TeamName) -> Option<u64> {
        let config = self.native(team).ok()?.team.read("config.json").ok()??;
        Team::read(&config.bytes).ok()?.created_at()
    }

    /// Tries until it is done, or the time for waiting is up.
    async fn wait<T>(
        &self,
        mut attempt: impl FnMut(&mut Patience) -> Result<Tried<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let mut patience = Patience::default();
        let start = Instant::now();
        loop {
            let obstacle = match attempt(&mut patience)? {
                Tried::Done(done) => return Ok(done),
                Tried::Again if start.elapsed() >= self.options.lock_wait => {
                    return Err(StoreError::Conflict);
                }
                Tried::Again => continue,
                Tried::Wait(obstacle) => obstacle,
            };
            patience.has_waited = true;
            let hopeless = matches!(obstacle, Obstacle::NotALock { .. } | Obstacle::Filled { .. });
            let limit = if hopeless { HOPELESS } else { self.options.lock_wait };
            let waited = start.elapsed();
            if waited >= limit {
                return Err(obstacle.into());
            }
            // Whoever is at it is through in a moment, and has done our work as well. One that takes
            // longer is asleep or dead.
            if waited < LULL {
                // Shorter than the runtime's clock can count, and no longer than a write.
                std::thread::sleep(MOMENT);
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep((waited / 8).min(LULL)).await;
            }
        }
    }

    /// Refuses beforehand what could never be delivered.
    fn check_deliverable(&self, inboxes: &Dir, of: &MemberName) -> Result<(), StoreError> {
        inboxes.check_own_file(&format!("{of}.json"))?;
        let writable =
            accessat(inboxes.fd(), ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        writable.map_err(|error| dir::failed("write to", inboxes.itself().to_owned(), error))
    }
}

/// How long to wait before looking again, at least and at most.
const MOMENT: Duration = Duration::from_micros(250);
const LULL: Duration = Duration::from_millis(20);
/// How long to wait for a lock that no program can take.
const HOPELESS: Duration = Duration::from_secs(1);

/// Makes and opens brigade's folder for all teams: nobody else gets in.
fn own_dir(path: &Path) -> Result<Dir, StoreError> {
    let make = |path: &Path| -> Result<Dir, StoreError> {
        let parent = path.parent().unwrap_or(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        std::fs::create_dir_all(parent).map_err(|source| {
            let path = parent.to_owned();
            StoreError::Io { doing: "make the directory", path, source }
        })?;
        let gone = || dir::failed("open", parent.to_owned(), rustix::io::Errno::NOENT);
        Dir::open(parent)?.ok_or_else(gone)?.own_child(name)
    };
    if let Some(dir) = Dir::open(path)? {
        return Ok(dir);
    }
    // The three levels that are ours: brigade, files, and this Claude Code folder.
    for ours in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
        make(ours)?;
    }
    make(path)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_team(bytes: &[u8]) -> Result<(), Damage> {
    Team::read(bytes).map(drop)
}
