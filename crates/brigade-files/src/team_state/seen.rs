//! The roster and board as last seen.
//!
//! To find changes that other programs made, brigade compares the roster and the board with their
//! last seen state. The first brigade process that finds a difference records it in the journal for
//! all. Brigade's own lock on the seen state ensures that no other process records it too.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use brigade_wire::team::Team;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::TeamStateDir;
use crate::dir::{Dir, io_error};
use crate::layout::{BOARD_SEEN, LAST_ROSTER, SHARED};
use crate::lock_id::LockId;
use crate::lock_mutex;
use crate::revision::revision;
use brigade_core::clock::Clock;
use brigade_core::event::{Event, one_line, roster_events};
use brigade_core::store::{Actor, Revision, StoreError};

/// Offset in `board.seen` of the slot for task 0. This slot is never used.
const TASK_SLOTS_OFFSET: u64 = 80;
/// Size in bytes of one recorded lock in `board.seen`.
const LOCK_RECORD_LEN: usize = 24;
/// Tasks with a higher number are not tracked, to bound the size of `board.seen`.
const MAX_TRACKED_TASK: u64 = 1 << 20;
/// Timeout for the lock on the seen state, and the shortest and longest interval between two
/// attempts to acquire it. A holder keeps the lock for a fraction of a millisecond, but on a busy
/// machine the holder may not be scheduled for a while.
const SEEN_LOCK_TIMEOUT: Duration = Duration::from_millis(100);
const MIN_LOCK_POLL: Duration = Duration::from_micros(50);
const MAX_LOCK_POLL: Duration = Duration::from_millis(1);

/// The kinds of native lock that brigade takes. Brigade holds at most one lock of each kind at a
/// time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockKind {
    /// Protects the creation of tasks.
    Create,
    /// Protects changes to a task.
    Task,
    /// Protects changes to the roster.
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
    /// Returns the numbers of the tasks that existed when last seen.
    pub(crate) fn seen_tasks(&self) -> Result<Vec<u64>, StoreError> {
        let Some(seen) = self.dir.read(BOARD_SEEN)? else { return Ok(Vec::new()) };
        let slots = seen.bytes.as_chunks::<8>().0.iter().skip(10).enumerate();
        Ok(slots.filter(|(_, slot)| **slot != [0; 8]).map(|(id, _)| id as u64).collect())
    }

    /// Locks the seen state. Returns `None` after a timeout. A difference is then recorded by the
    /// current holder or by the next process that compares the files.
    pub(crate) fn lock_seen(&self) -> Result<Option<SeenGuard<'_>>, StoreError> {
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
    /// Returns the last lock of this kind that a brigade process created. Because the caller holds
    /// the guard, the lock's creator has released it or is dead.
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
        rustix::io::pread(&self.team_state.seen_file, &mut slot, TASK_SLOTS_OFFSET + id * 8)
            .map_err(io_error)?;
        let seen = u64::from_le_bytes(slot);
        // Zero stands for "no task". A task whose hash happened to be zero would go unrecorded.
        let now = task.map_or(0, |task| revision(task).0);
        if seen == now {
            return Ok(());
        }
        let event = match task {
            Some(task) => Event::Task { id, task: one_line(task) },
            None => Event::TaskDeleted { id },
        };
        self.team_state.record_event(clock, by, event)?;
        rustix::io::pwrite(
            &self.team_state.seen_file,
            &now.to_le_bytes(),
            TASK_SLOTS_OFFSET + id * 8,
        )
        .map_err(io_error)?;
        Ok(())
    }

    /// Records that another program wrote the roster, if the roster about to be replaced is not the
    /// one last seen.
    pub(crate) fn note_foreign_roster(&self, at: Revision) -> Result<(), StoreError> {
        let seen = self.team_state.dir.read(LAST_ROSTER)?.map(|contents| revision(&contents.bytes));
        if seen != Some(at) {
            self.team_state.dir.private_file(SHARED, OFlags::empty())?;
        }
        Ok(())
    }

    /// Compares the roster with the one last seen and records the differences. `None` means that
    /// the team does not exist.
    pub(crate) fn record_roster(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        config: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let seen = self.team_state.dir.read(LAST_ROSTER)?.map(|contents| contents.bytes);
        if seen.as_deref() == config {
            return Ok(());
        }
        if by.is_none() {
            self.team_state.dir.private_file(SHARED, OFlags::empty())?;
        }
        let events = match (&seen, config) {
            (Some(seen), Some(config)) if same_team(seen, config) => roster_events(seen, config),
            (_, Some(config)) => vec![Event::TeamCreated { team: one_line(config) }],
            (Some(_), None) => vec![Event::TeamDeleted {}],
            (None, None) => Vec::new(),
        };
        for event in events {
            self.team_state.record_event(clock, by, event)?;
        }
        match config {
            Some(config) => self.team_state.write(LAST_ROSTER, config),
            None => self.team_state.dir.remove(LAST_ROSTER).map(drop),
        }
    }
}

/// Returns whether two versions of `config.json` belong to the same team. Another team of the same
/// name has another creation time.
fn same_team(before: &[u8], after: &[u8]) -> bool {
    let created = |bytes| Team::read(bytes).ok().map(|team| team.created_at());
    created(before) == created(after)
}
