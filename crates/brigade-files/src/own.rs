//! What brigade keeps of a team for itself: the journals, and what it last saw of roster and board.
//!
//! It stands apart from Claude Code's folders, which Claude Code removes when its session ends. What
//! others do to the roster and the board is found by comparing them with what was last seen; whoever
//! finds a difference first, under a lock of our own, writes it down for all.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::dir::{Dir, PRIVATE, Sync, failed};
use super::document::revision;
use super::held;
use super::journal::Journal;
use super::lock_id::LockId;
use brigade_core::clock::Clock;
use brigade_core::event::{Event, Record, one_line, roster_events};
use brigade_core::store::{Actor, Revision, StoreError};

/// The team's own journal.
pub(crate) const TEAM_LOG: &str = "team.jsonl";
/// The folders of the journals of mailboxes, and of members' work.
pub(crate) const MAIL: &str = "mail";
pub(crate) const WORK: &str = "work";
/// The roster as it was last seen.
const ROSTER: &str = "roster.json";
/// When the team was created that we created, in milliseconds.
const CREATED: &str = "created";
/// Stands where another program has written the roster: an empty file.
const SHARED: &str = "shared";
/// The locks we last made, and then for each task number eight bytes: the revision in which it was
/// last seen, or nothing.
const BOARD: &str = "board.seen";
/// Where the slot of task 0, which there is not, begins.
const SLOTS: u64 = 80;
/// How many bytes a lock we made takes.
const MADE: usize = 24;
/// Tasks beyond this number are not followed; the file of what was seen would grow without bound.
const LAST_FOLLOWED: u64 = 1 << 20;
/// How long the lock on what was seen is waited for, and how far apart it is tried. It is held for a
/// fraction of a millisecond; on a busy machine its holder may have to wait for its turn.
const PATIENCE: Duration = Duration::from_millis(100);
const NAP: Duration = Duration::from_micros(50);
const LONG_NAP: Duration = Duration::from_millis(1);

/// Brigade's folder for one team.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) dir: Dir,
    pub(crate) mail: Arc<Dir>,
    work: Dir,
    pub(crate) log: Journal,
    /// The journals of members' work that were written to.
    works: Mutex<HashMap<MemberName, Journal>>,
    board: OwnedFd,
    /// The `flock` on the board keeps processes apart, this one threads.
    thread: Mutex<()>,
}

/// A lock of ours on the native files, one of each kind at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// On the making of tasks.
    Create,
    /// On a task.
    Task,
    /// On the roster.
    Roster,
}

/// A lock that one of us made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) id: LockId,
    /// Which task it was on, where it was on one.
    pub(crate) task: u64,
}

/// What was last seen of roster and board, kept from others. Who changes a document holds this while
/// it does, so that the change is written down once and under its name.
#[derive(Debug)]
pub(crate) struct Seen<'o> {
    own: &'o Own,
    _thread: MutexGuard<'o, ()>,
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        let _always = flock(&self.own.board, FlockOperation::Unlock);
    }
}

impl Own {
    /// Opens the folder in that of all teams, making it if need be.
    pub(crate) fn open(teams: &Dir, team: &str) -> Result<Self, StoreError> {
        let dir = teams.own_child(team)?;
        let mail = Arc::new(dir.own_child(MAIL)?);
        let work = dir.own_child(WORK)?;
        let log = Journal::open(&dir, TEAM_LOG)?;
        let board = dir.own_file(BOARD, OFlags::empty())?;
        let (works, thread) = (Mutex::default(), Mutex::default());
        Ok(Self { dir, mail, work, log, works, board, thread })
    }

    /// Whether it is still where it was opened.
    pub(crate) fn is_there(&self) -> bool {
        self.log.is_there() && self.folders().into_iter().all(Dir::is_there)
    }

    /// The folders that hold a journal for each of some members, beside the team's own.
    pub(crate) fn folders(&self) -> [&Dir; 2] {
        [&self.mail, &self.work]
    }

    /// Remembers that a team with this configuration is our making.
    pub(crate) fn remember_created(&self, config: &[u8]) -> Result<(), StoreError> {
        let created = Team::read(config).ok().and_then(|team| team.created_at());
        let text = created.unwrap_or_default().to_string();
        self.write(CREATED, text.as_bytes())
    }

    /// When the team was created that we created last.
    pub(crate) fn created(&self) -> Result<Option<u64>, StoreError> {
        let Some(whole) = self.dir.read(CREATED)? else { return Ok(None) };
        Ok(String::from_utf8_lossy(&whole.bytes).parse().ok())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let temp = super::state::Temp::next().name(name);
        self.dir.write_temp(&temp, bytes, Some(PRIVATE), Sync::No)?;
        self.dir.rename(&temp, name)
    }

    /// The roster as it was last seen.
    pub(crate) fn last_roster(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.dir.read(ROSTER)?.map(|whole| whole.bytes))
    }

    /// Whether another program has ever written the roster.
    pub(crate) fn is_shared(&self) -> Result<bool, StoreError> {
        Ok(self.dir.stamp(SHARED)?.is_some())
    }

    /// Writes one thing down.
    pub(crate) fn note(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        event: Event,
    ) -> Result<(), StoreError> {
        let by = by.map(|by| by.0.clone());
        let member = match &event {
            Event::Worked { name, .. } => name.parse::<MemberName>().ok(),
            _ => None,
        };
        let record = [Record { at: clock.now(), by, event }];
        match member {
            Some(member) => self.note_work(member, &record),
            None => self.log.append(&record, Sync::No).map(drop),
        }
    }

    /// Writes down what a member did, in a journal of its own: there is far more of it than of all else,
    /// and who looks for mail or tasks need not read it.
    fn note_work(&self, member: MemberName, record: &[Record]) -> Result<(), StoreError> {
        let mut works = held(&self.works);
        // Whoever wants it gone removes the file.
        if let Some(journal) = works.get(&member).filter(|journal| journal.is_there()) {
            return journal.append(record, Sync::No).map(drop);
        }
        let journal = Journal::open(&self.work, &format!("{member}.jsonl"))?;
        journal.append(record, Sync::No)?;
        works.insert(member, journal);
        Ok(())
    }

    /// The numbers of the tasks that were there when last seen.
    pub(crate) fn seen_tasks(&self) -> Result<Vec<u64>, StoreError> {
        let Some(seen) = self.dir.read(BOARD)? else { return Ok(Vec::new()) };
        let slots = seen.bytes.as_chunks::<8>().0.iter().skip(10).enumerate();
        Ok(slots.filter(|(_, slot)| **slot != [0; 8]).map(|(id, _)| id as u64).collect())
    }

    /// Keeps others from comparing at the same time. If that cannot be had, whoever has it, or the
    /// next who looks, sees what we would have seen.
    pub(crate) fn seen(&self) -> Result<Option<Seen<'_>>, StoreError> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match flock(&self.board, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Seen { own: self, _thread: thread })),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep((start.elapsed() / 8).clamp(NAP, LONG_NAP));
                }
                Err(error) => return Err(failed("lock", self.dir.path(BOARD), error)),
            }
        }
        tracing::debug!(path = %self.dir.path(BOARD).display(), "held for long; left to others");
        Ok(None)
    }
}

impl Seen<'_> {
    /// The last lock of this kind that one of us made. Whoever holds this one knows that its maker
    /// is through with it, or dead.
    pub(crate) fn last_lock(&self, slot: Slot) -> Result<Option<Made>, StoreError> {
        let mut bytes = [0; MADE];
        let read = rustix::io::pread(&self.own.board, &mut bytes, (slot as usize * MADE) as u64);
        let read = read.map_err(|error| failed("read", self.own.dir.path(BOARD), error))?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
        let mut next = || numbers.next().unwrap_or_default();
        let id = LockId { inode: next(), born: next().cast_signed() };
        let made = Made { id, task: next() };
        Ok((read == MADE && made.id != LockId::default()).then_some(made))
    }

    /// Where the directory for locks of this kind is kept.
    pub(crate) fn spare_lock(&self, slot: Slot) -> (&Dir, String) {
        let name = match slot {
            Slot::Create => "create.lock",
            Slot::Task => "task.lock",
            Slot::Roster => "roster.lock",
        };
        (&self.own.dir, name.to_owned())
    }

    /// Remembers a lock that is about to be made.
    pub(crate) fn remember_lock(&self, slot: Slot, made: Made) -> Result<(), StoreError> {
        let numbers = [made.id.inode, made.id.born.cast_unsigned(), made.task];
        let bytes = numbers.map(u64::to_le_bytes).concat();
        let written = rustix::io::pwrite(&self.own.board, &bytes, (slot as usize * MADE) as u64);
        written.map(drop).map_err(|error| failed("write", self.own.dir.path(BOARD), error))
    }

    /// Compares a task, or that there is none, with what was last seen, and writes down what is new.
    pub(crate) fn task(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        id: u64,
        task: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        if id > LAST_FOLLOWED {
            return Ok(());
        }
        let mut slot = [0; 8];
        let failed = |error| failed("follow the board in", self.own.dir.path(BOARD), error);
        rustix::io::pread(&self.own.board, &mut slot, SLOTS + id * 8).map_err(failed)?;
        let seen = u64::from_le_bytes(slot);
        // Nothing is the one revision no task has; if one had, it would be seen anew each time.
        let now = task.map_or(0, |task| revision(task).0);
        if seen == now {
            return Ok(());
        }
        let event = match task {
            Some(task) => Event::Task { id, task: one_line(task) },
            None => Event::TaskDeleted { id },
        };
        self.own.note(clock, by, event)?;
        rustix::io::pwrite(&self.own.board, &now.to_le_bytes(), SLOTS + id * 8).map_err(failed)?;
        Ok(())
    }

    /// Notes whether the roster about to be replaced is by another program.
    pub(crate) fn check_shared(&self, at: Revision) -> Result<(), StoreError> {
        let seen = self.own.dir.read(ROSTER)?.map(|whole| revision(&whole.bytes));
        if seen != Some(at) {
            self.own.dir.own_file(SHARED, OFlags::empty())?;
        }
        Ok(())
    }

    /// Compares the roster, or that there is no team, with what was last seen, and writes down what
    /// is new.
    pub(crate) fn roster(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        config: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let seen = self.own.dir.read(ROSTER)?.map(|whole| whole.bytes);
        if seen.as_deref() == config {
            return Ok(());
        }
        if by.is_none() {
            self.own.dir.own_file(SHARED, OFlags::empty())?;
        }
        let events = match (&seen, config) {
            (Some(seen), Some(config)) if same_team(seen, config) => roster_events(seen, config),
            (_, Some(config)) => vec![Event::TeamCreated { team: one_line(config) }],
            (Some(_), None) => vec![Event::TeamDeleted {}],
            (None, None) => Vec::new(),
        };
        for event in events {
            self.own.note(clock, by, event)?;
        }
        match config {
            Some(config) => self.own.write(ROSTER, config),
            None => self.own.dir.remove(ROSTER).map(drop),
        }
    }
}

/// Whether two states of `config.json` are of one team: another team of the same name was created at
/// another time.
fn same_team(before: &[u8], after: &[u8]) -> bool {
    let created = |bytes| Team::read(bytes).ok().map(|team| team.created_at());
    created(before) == created(after)
}
