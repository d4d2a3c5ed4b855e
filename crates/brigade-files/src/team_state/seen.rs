//! The roster and board as last seen.
//!
//! To find changes that other programs made, brigade compares the roster and the board with their
//! last seen state. The first brigade process that finds a difference records it in the journal.
//! Brigade's own lock on the seen state ensures that only one process records each difference.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use brigade_wire::team::Team;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::TeamStateDir;
use super::intent::IntendedDocument;
use crate::dir::{Dir, io_error};
use crate::last_seen::folder_mark;
use crate::layout::{BOARD_SEEN, LAST_FOLDER, LAST_ROSTER, SHARED};
use crate::lock_id::LockId;
use crate::lock_mutex;
use crate::revision::revision;
use brigade_core::clock::Clock;
use brigade_core::event::{Event, one_line, roster_events};
use brigade_core::store::{Actor, Revision, StoreError};

/// Index in `board.seen` of the 8-byte slot for task 0. This slot is never used.
const TASK_ZERO_SLOT: u8 = 10;
/// Size in bytes of one recorded lock in `board.seen`.
const LOCK_RECORD_LEN: usize = 24;
/// Tasks with a higher number are not tracked, to bound the size of `board.seen`.
const MAX_TRACKED_TASK: u64 = 1 << 20;
/// Timeout for the lock on the seen state, and the shortest and longest interval between two
/// attempts to acquire it. A holder keeps the lock for a fraction of a millisecond, but on a busy
/// machine the holder might not be scheduled for a while.
const SEEN_LOCK_TIMEOUT: Duration = Duration::from_millis(100);
const MIN_LOCK_POLL: Duration = Duration::from_micros(50);
const MAX_LOCK_POLL: Duration = Duration::from_millis(1);

/// The kinds of native lock that brigade takes. Brigade holds at most one lock of each kind at a
/// time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockKind {
    /// Ensures that only one process at a time creates a task.
    Create,
    /// Ensures that only one process at a time changes a given task.
    Task,
    /// Ensures that only one process at a time changes the roster.
    Roster,
}

/// A lock that a brigade process created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedLock {
    pub(crate) id: LockId,
    /// The task number, for [`LockKind::Task`].
    pub(crate) task: u64,
}

/// Exclusive access to the roster and board as last seen. A process holds this guard while it
/// changes a document, so that the change is recorded only once and under the right member's name.
#[derive(Debug)]
pub(crate) struct SeenGuard<'o> {
    team_state: &'o TeamStateDir,
    _thread_lock: MutexGuard<'o, ()>,
}

impl Drop for SeenGuard<'_> {
    fn drop(&mut self) {
        let _cannot_fail = flock(&self.team_state.seen_file, FlockOperation::Unlock);
    }
}

impl TeamStateDir {
    /// Returns the numbers of the tasks on the board as last seen.
    pub(crate) fn seen_tasks(&self) -> Result<Vec<u64>, StoreError> {
        let Some(seen) = self.dir.read(BOARD_SEEN)? else { return Ok(Vec::new()) };
        let slots = seen.bytes.as_chunks::<8>().0.iter().skip(TASK_ZERO_SLOT.into()).enumerate();
        Ok(slots.filter(|(_, slot)| **slot != [0; 8]).map(|(id, _)| id as u64).collect())
    }

    /// Returns the number of tasks on the board as last seen. If some tasks are not tracked, returns the largest number.
    pub(crate) fn seen_task_count(&self) -> Result<usize, StoreError> {
        let Some(seen) = self.dir.read(BOARD_SEEN)? else { return Ok(0) };
        if seen.bytes.len() as u64 > slot_offset(MAX_TRACKED_TASK) {
            return Ok(usize::MAX);
        }
        let slots = seen.bytes.as_chunks::<8>().0.iter().skip(TASK_ZERO_SLOT.into());
        Ok(slots.filter(|slot| **slot != [0; 8]).count())
    }

    /// Locks the seen state. Returns `None` after a timeout. In that case, the current holder, or
    /// the next process that compares the files, records any differences. Also returns `None` if
    /// the journal cannot be written.
    pub(crate) fn lock_seen(&self) -> Result<Option<SeenGuard<'_>>, StoreError> {
        if !self.journal.is_writable() {
            return Ok(None);
        }
        let thread_lock = lock_mutex(&self.thread_lock);
        let start = Instant::now();
        while start.elapsed() < SEEN_LOCK_TIMEOUT {
            match flock(&self.seen_file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(Some(SeenGuard { team_state: self, _thread_lock: thread_lock }));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep((start.elapsed() / 8).clamp(MIN_LOCK_POLL, MAX_LOCK_POLL));
                }
                Err(error) => return Err(io_error("lock", self.dir.path(BOARD_SEEN), error)),
            }
        }
        tracing::debug!(path = %self.dir.path(BOARD_SEEN).display(), "another process has locked the seen state and will record the changes");
        Ok(None)
    }
}

impl SeenGuard<'_> {
    /// Stores the change that this process is about to make, and its author. `None` means that the
    /// document is to be deleted.
    pub(crate) fn intend(
        &self,
        by: &Actor,
        document: IntendedDocument,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        self.team_state.intend(by, document, bytes)
    }

    /// Returns whether a brigade process was about to delete the team, and did not record that.
    pub(crate) fn intends_to_delete_team(&self) -> bool {
        self.team_state.intended_by(IntendedDocument::Roster, None).is_some()
    }

    /// Returns the last lock of this kind that a brigade process created. Because the caller holds
    /// the guard, the creator of that lock has released the lock or is dead.
    pub(crate) fn last_lock(&self, kind: LockKind) -> Result<Option<RecordedLock>, StoreError> {
        let mut bytes = [0; LOCK_RECORD_LEN];
        let read = rustix::io::pread(
            &self.team_state.seen_file,
            &mut bytes,
            (kind as usize * LOCK_RECORD_LEN) as u64,
        );
        let read =
            read.map_err(|error| io_error("read", self.team_state.dir.path(BOARD_SEEN), error))?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
        let mut next = || numbers.next().unwrap_or_default();
        let id = LockId { inode: next(), born: next().cast_signed() };
        let lock = RecordedLock { id, task: next() };
        Ok((read == LOCK_RECORD_LEN && lock.id != LockId::default()).then_some(lock))
    }

    /// Returns where the spare directory for locks of this kind is stored.
    pub(crate) fn spare_lock(&self, kind: LockKind) -> (&Dir, String) {
        let name = match kind {
            LockKind::Create => "create.lock",
            LockKind::Task => "task.lock",
            LockKind::Roster => "roster.lock",
        };
        (&self.team_state.dir, name.to_owned())
    }

    /// Records a lock that is about to be created.
    pub(crate) fn record_lock(&self, kind: LockKind, lock: RecordedLock) -> Result<(), StoreError> {
        let numbers = [lock.id.inode, lock.id.born.cast_unsigned(), lock.task];
        let bytes = numbers.map(u64::to_le_bytes).concat();
        let written = rustix::io::pwrite(
            &self.team_state.seen_file,
            &bytes,
            (kind as usize * LOCK_RECORD_LEN) as u64,
        );
        written
            .map(drop)
            .map_err(|error| io_error("write", self.team_state.dir.path(BOARD_SEEN), error))
    }

    /// Compares a task with its last seen revision and records the difference. `None` means that
    /// the task does not exist.
    pub(crate) fn record_task(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        id: u64,
        task: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        if id > MAX_TRACKED_TASK {
            return Ok(());
        }
        let mut slot = [0; 8];
        let io_error = |error| {
            io_error("update the seen tasks in", self.team_state.dir.path(BOARD_SEEN), error)
        };
        let offset = slot_offset(id);
        rustix::io::pread(&self.team_state.seen_file, &mut slot, offset).map_err(io_error)?;
        let seen = u64::from_le_bytes(slot);
        // Zero stands for "no task". Therefore a task whose hash happens to be zero is not recorded.
        let now = task.map_or(0, |task| revision(task).0);
        if seen == now {
            return Ok(());
        }
        let event = match task {
            Some(task) => Event::Task { id, task: one_line(task) },
            None => Event::TaskDeleted { id },
        };
        let document = IntendedDocument::Task(id);
        let author = by.cloned().or_else(|| self.team_state.intended_by(document, task));
        let is_about = |event: &Event| match event {
            Event::Task { id: other, .. } | Event::TaskDeleted { id: other } => *other == id,
            _ => false,
        };
        // A process that found the difference may have died after it recorded the event.
        let is_new = by.is_some()
            || !self.team_state.has_recorded(std::slice::from_ref(&event), is_about)?;
        let end = match is_new {
            true => Some(self.team_state.record_events(clock, author.as_ref(), vec![event])?),
            false => None,
        };
        rustix::io::pwrite(&self.team_state.seen_file, &now.to_le_bytes(), offset)
            .map_err(io_error)?;
        self.team_state.settle(document, end)
    }

    /// Returns whether the last seen revision of a task is `at`. Tasks that are not tracked count as known.
    pub(crate) fn knows_task(&self, id: u64, at: Revision) -> Result<bool, StoreError> {
        if id > MAX_TRACKED_TASK {
            return Ok(true);
        }
        let mut slot = [0; 8];
        let path = || self.team_state.dir.path(BOARD_SEEN);
        rustix::io::pread(&self.team_state.seen_file, &mut slot, slot_offset(id))
            .map_err(|error| io_error("read", path(), error))?;
        Ok(u64::from_le_bytes(slot) == at.0)
    }

    /// Compares the roster with the last seen roster, and records the differences. `roster` is the
    /// team's folder and the contents of its `config.json`; `None` means that the team does not
    /// exist.
    pub(crate) fn record_roster(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        roster: Option<(&Dir, &[u8])>,
    ) -> Result<(), StoreError> {
        let config = roster.map(|(_, config)| config);
        let seen = self.team_state.dir.read(LAST_ROSTER)?.map(|contents| contents.bytes);
        if let Some((folder, _)) = roster {
            self.record_folder(folder)?;
        }
        if seen.as_deref() == config {
            return Ok(());
        }
        let document = IntendedDocument::Roster;
        let author = by.cloned().or_else(|| self.team_state.intended_by(document, config));
        if author.is_none() {
            self.team_state.dir.private_file(SHARED, OFlags::empty())?;
        }
        let events = match (&seen, config) {
            (Some(seen), Some(config)) if same_team(seen, config) => roster_events(seen, config),
            (_, Some(config)) => vec![Event::TeamCreated { team: one_line(config) }],
            (Some(_), None) => vec![Event::TeamDeleted {}],
            (None, None) => Vec::new(),
        };
        let is_about = |event: &Event| {
            use Event::{Member, MemberLeft, TeamCreated, TeamDeleted};
            matches!(event, TeamCreated { .. } | TeamDeleted {} | Member { .. } | MemberLeft { .. })
        };
        let has_departures = events.iter().any(|event| !matches!(event, Event::Member { .. }));
        // A process that found the differences may have died after it recorded the events.
        let is_new = by.is_some() || !self.team_state.has_recorded(&events, is_about)?;
        let end = match is_new && !events.is_empty() {
            true => Some(self.team_state.record_events(clock, author.as_ref(), events)?),
            false => None,
        };
        if has_departures {
            self.team_state.announce_departures();
        }
        match config {
            Some(config) => self.team_state.write(LAST_ROSTER, config)?,
            None => {
                // The roster as last seen shows that this is not finished, so remove it last.
                self.team_state.dir.remove(LAST_FOLDER)?;
                self.team_state.dir.remove(LAST_ROSTER)?;
            }
        }
        // A team that appears may have tasks that were restored from the journal. Search the journal for them.
        let end = end.filter(|_| seen.is_some());
        self.team_state.settle(document, end)
    }

    /// Records the team folder in which the roster is seen.
    fn record_folder(&self, folder: &Dir) -> Result<(), StoreError> {
        let Some(mark) = folder_mark(folder)? else { return Ok(()) };
        let seen_in = self.team_state.dir.read(LAST_FOLDER)?.map(|contents| contents.bytes);
        if seen_in.as_ref() == Some(&mark) {
            return Ok(());
        }
        self.team_state.write(LAST_FOLDER, &mark)
    }
}

/// Returns where the last seen revision of a task is in `board.seen`.
fn slot_offset(id: u64) -> u64 {
    (u64::from(TASK_ZERO_SLOT) + id) * 8
}

/// Returns whether two versions of `config.json` belong to the same team. Another team of the same
/// name has another creation time.
fn same_team(before: &[u8], after: &[u8]) -> bool {
    let created = |bytes| Team::read(bytes).ok().map(|team| team.created_at());
    created(before) == created(after)
}
