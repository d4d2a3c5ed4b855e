//! Claude Code's own lock: an empty directory beside the file. Creating it acquires the lock,
//! removing it releases the lock. A lock is stale when its modification time is ten seconds old.
//!
//! The lock does not identify its holder, and both generations of Claude Code may steal it from a
//! holder that is only slow. Therefore a holder checks that it still owns the lock before it
//! writes.
//!
//! Creating a directory takes ten times as long as renaming one. Therefore brigade keeps a spare
//! directory in its own folder, renames that directory to acquire the lock, and renames it back to
//! release the lock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, Timespec, Timestamps, UTIME_NOW, mkdirat, renameat,
    renameat_with, statat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::dir::{Dir, FileStamp};
use super::layout::LOCK_STALE_SECS;
use super::lock_id::LockId;
use super::temp_file::TempFile;
use brigade_core::store::{StoreError, WriteObstacle};

/// How long brigade relies on a lock that it holds. Other processes wait much longer than this
/// before they consider the lock abandoned.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// Brigade assumes that a program without a lock writes a file in place within this time.
const MAX_IN_PLACE_WRITE: Duration = Duration::from_millis(50);

/// A lock that this process holds. Dropping this value releases the lock.
#[derive(Debug)]
pub(crate) struct HeldLock<'d> {
    at: LockPath<'d>,
    id: LockId,
    acquired_at: Instant,
}

/// The location of a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockPath<'d> {
    pub(crate) dir: &'d Dir,
    pub(crate) name: String,
    /// The spare directory that becomes the lock. No other process uses it.
    pub(crate) spare: Option<(&'d Dir, String)>,
}

/// Persists lock acquisitions, so that another process can clean up if this process dies while it
/// holds the lock.
pub(crate) trait LockRecorder {
    /// Called when the directory with this id is about to become the lock, or has just been created
    /// as the lock.
    fn record_acquire(&mut self, id: LockId) -> Result<(), StoreError>;

    /// Called before the lock is stolen from its holder. The holder may only be slow, and may still
    /// write later.
    fn record_steal(&mut self) -> Result<(), StoreError>;
}

/// The result of one attempt to acquire a lock.
#[derive(Debug)]
pub(crate) enum LockAttempt<'d> {
    Acquired(HeldLock<'d>),
    Blocked(WriteObstacle),
}

/// The result of one attempt to change a file that other programs also change.
#[derive(Debug)]
pub(crate) enum TryOutcome<T> {
    Done(T),
    Wait(WriteObstacle),
    /// Another program changed the file meanwhile; nothing was done.
    Retry,
}

/// The observations of a caller that is waiting for a lock.
#[derive(Debug, Default)]
pub(crate) struct LockWaiter {
    /// Whether an earlier attempt had to wait.
    pub(crate) has_waited: bool,
    /// The lock's stamp, and when this stamp was first seen, on the monotonic clock.
    seen_lock: Option<(FileStamp, Instant)>,
    /// The stamp of a file that could not be parsed, and when this stamp was first seen.
    torn_file: Option<(FileStamp, Instant)>,
}

impl LockWaiter {
    /// Tries once to acquire the lock. `abandoned` identifies a lock whose creator is known to be
    /// dead.
    pub(crate) fn try_lock<'d>(
        &mut self,
        at: LockPath<'d>,
        abandoned: Option<LockId>,
        recorder: &mut dyn LockRecorder,
    ) -> Result<LockAttempt<'d>, StoreError> {
        let (dir, name) = (at.dir, at.name.as_str());
        if let Some(abandoned) = abandoned {
            // Remove the abandoned lock now, because the recorder will soon replace its id with the
            // id of the new lock.
            remove_abandoned(dir, name, abandoned)?;
        }
        // Try at most twice: the first attempt may remove a stale lock, and the second acquires the
        // lock.
        for _ in 0..2 {
            let acquired_at = Instant::now();
            if let Some(id) = at.create(recorder)? {
                return Ok(LockAttempt::Acquired(HeldLock { at, id, acquired_at }));
            }
            let path = dir.path(name);
            let stat = match statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(dir.io_error("stat", name, error)),
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Ok(LockAttempt::Blocked(WriteObstacle::NotALock { path }));
            }
            let age = age(stat.st_mtime);
            let stamp = FileStamp::from_stat(&stat);
            let observed_for = match self.seen_lock {
                Some((seen, since)) if seen == stamp => since.elapsed(),
                _ => {
                    self.seen_lock = Some((stamp, Instant::now()));
                    Duration::ZERO
                }
            };
            // If the modification time is in the future, the age is negative. In that case, the
            // lock is stale once this process has observed it for long enough.
            let stale = age > i64::from(LOCK_STALE_SECS)
                || observed_for > Duration::from_secs(LOCK_STALE_SECS.into());
            if !stale {
                return Ok(LockAttempt::Blocked(WriteObstacle::Held {
                    path,
                    held_secs: age.max(0),
                }));
            }
            recorder.record_steal()?;
            // Renaming the directory does not change its stamp.
            let is_same = |moved: &str| dir.stamp(moved).is_ok_and(|found| found == Some(stamp));
            match remove_if(dir, name, is_same)? {
                Removal::Removed => {}
                Removal::Replaced => {
                    return Ok(LockAttempt::Blocked(WriteObstacle::Held {
                        path,
                        held_secs: age.max(0),
                    }));
                }
                Removal::NotEmpty => {
                    return Ok(LockAttempt::Blocked(WriteObstacle::Filled { path }));
                }
            }
        }
        let path = dir.path(name);
        Ok(LockAttempt::Blocked(WriteObstacle::Held { path, held_secs: 0 }))
    }
}

impl LockWaiter {
    /// Returns whether a torn file has been unchanged for so long that no program is still writing
    /// it.
    pub(crate) fn is_torn_for_good(&mut self, stamp: FileStamp) -> bool {
        match self.torn_file {
            Some((torn, since)) if torn == stamp => since.elapsed() > MAX_IN_PLACE_WRITE,
            _ => {
                self.torn_file = Some((stamp, Instant::now()));
                false
            }
        }
    }
}

/// Removes a lock that was inspected earlier, unless a newer lock has replaced it. The lock is
/// renamed first; then `is_same` checks whether the renamed directory is the inspected lock.
fn remove_if(dir: &Dir, name: &str, is_same: impl Fn(&str) -> bool) -> Result<Removal, StoreError> {
    let moved = TempFile::next().name(name);
    match renameat(dir.fd(), name, dir.fd(), moved.as_str()) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Removal::Removed),
        Err(error) => return Err(dir.io_error("remove the lock", name, error)),
    }
    let same = is_same(&moved);
    let removed = if same { remove_dir(dir, &moved)? } else { Removal::Replaced };
    if removed == Removal::Removed {
        return Ok(removed);
    }
    // The renamed directory is another process's live lock, or is not empty. Rename it back, unless
    // a new lock exists.
    match renameat_with(dir.fd(), moved.as_str(), dir.fd(), name, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => dir.remove_dir_quietly(&moved),
        Err(error) => return Err(dir.io_error("restore the lock", name, error)),
    }
    Ok(removed)
}

/// The result of removing a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// The lock is gone.
    Removed,
    /// A newer lock had already replaced the inspected one.
    Replaced,
    /// The directory is not empty and was left in place.
    NotEmpty,
}

fn remove_dir(dir: &Dir, name: &str) -> Result<Removal, StoreError> {
    match unlinkat(dir.fd(), name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removal::Removed),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        Err(error) => Err(dir.io_error("remove the lock", name, error)),
    }
}

impl LockPath<'_> {
    /// Creates the lock. Returns `None` if it already exists.
    fn create(&self, recorder: &mut dyn LockRecorder) -> Result<Option<LockId>, StoreError> {
        let io_error = |error| self.dir.io_error("lock", &self.name, error);
        if let Some((dir, spare)) = &self.spare {
            let id = refresh(dir, spare)?;
            // Record the id before the rename: if this process dies after the rename, the next
            // process recognizes the abandoned lock by its id.
            recorder.record_acquire(id)?;
            let (from, to) = (spare.as_str(), self.name.as_str());
            match renameat_with(dir.fd(), from, self.dir.fd(), to, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(Some(id)),
                Err(Errno::EXIST) => return Ok(None),
                // The spare is on another file system, or the file system does not support
                // `NOREPLACE`.
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        match mkdirat(self.dir.fd(), self.name.as_str(), Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            Err(error) => return Err(io_error(error)),
        }
        let id = LockId::find(self.dir, &self.name)?;
        if let Some(id) = id {
            recorder.record_acquire(id)?;
        }
        Ok(id)
    }

    /// Releases the lock, keeping its directory as the spare for the next time.
    fn release(&self) {
        if let Some((dir, name)) = &self.spare {
            let back = renameat(self.dir.fd(), self.name.as_str(), dir.fd(), name.as_str());
            if back.is_ok() {
                return;
            }
        }
        let _already_gone = unlinkat(self.dir.fd(), self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// Updates the modification time of the spare directory, or creates the directory if it is missing.
fn refresh(dir: &Dir, spare: &str) -> Result<LockId, StoreError> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let now = Timestamps { last_access: now, last_modification: now };
    let refreshed = match utimensat(dir.fd(), spare, &now, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => dir.private_child(spare).map(drop),
        other => other.map_err(|error| dir.io_error("refresh", spare, error)),
    };
    refreshed?;
    LockId::find(dir, spare)?.ok_or_else(|| dir.io_error("stat", spare, Errno::NOENT))
}

impl HeldLock<'_> {
    /// Returns whether this process still holds the lock and will hold it for a while. After a long
    /// pause, another process may have stolen the lock, or may be about to steal it.
    pub(crate) fn is_held(&self) -> Result<bool, StoreError> {
        Ok(self.acquired_at.elapsed() < TRUSTED_FOR
            && LockId::find(self.at.dir, &self.at.name)? == Some(self.id))
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        // Leave the lock alone if another process may have stolen it or may be about to.
        if matches!(self.is_held(), Ok(true)) {
            self.at.release();
        }
    }
}

/// Removes a lock whose creator is known to be dead, if it still exists.
pub(crate) fn remove_abandoned(dir: &Dir, name: &str, id: LockId) -> Result<(), StoreError> {
    if LockId::find(dir, name)? == Some(id) {
        remove_if(dir, name, |moved| {
            LockId::find(dir, moved).is_ok_and(|found| found == Some(id))
        })?;
    }
    Ok(())
}

/// Removes any lock with this name. The caller knows that every possible holder is dead. Anything
/// that is not a lock is left in place.
pub(crate) fn remove_any(dir: &Dir, name: &str) -> Result<(), StoreError> {
    match statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            remove_dir(dir, name).map(drop)
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(dir.io_error("stat", name, error)),
    }
}

/// Returns the number of seconds since a file's modification time, by the wall clock.
fn age(modified: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(modified)
}
