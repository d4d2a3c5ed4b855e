//! Claude Code's own lock: an empty directory beside the file, made to take it and removed to give
//! it back. Stale when it is ten seconds old by its own time.
//!
//! It says nothing about who holds it, and both generations take it from a holder that is merely
//! slow. So the holder checks that it is still its own before it writes.
//!
//! Making a directory costs a file system ten times what moving one does. So we keep one at hand in
//! our own folder, and move it to where the lock is to be, and back.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, Timespec, Timestamps, UTIME_NOW, mkdirat, renameat,
    renameat_with, statat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::dir::{Dir, FileStamp};
use super::lock_id::LockId;
use super::state::TempFile;
use crate::store::{Obstacle, StoreError};

/// When Claude Code takes a lock for abandoned.
const STALE_AFTER: Duration = Duration::from_secs(10);
/// For how long we rely on a lock of our own: well before anybody may take it for abandoned.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// How long a program that writes in place, and heeds no lock, may take.
const MAX_IN_PLACE_WRITE: Duration = Duration::from_millis(50);

/// A lock that is held. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct HeldLock<'d> {
    at: LockPath<'d>,
    id: LockId,
    acquired_at: Instant,
}

/// Where a lock is.
#[derive(Clone, Debug)]
pub(crate) struct LockPath<'d> {
    pub(crate) dir: &'d Dir,
    pub(crate) name: String,
    /// Where the directory that becomes the lock is kept, by a process that has this place to itself.
    pub(crate) spare: Option<(&'d Dir, String)>,
}

/// Somebody who takes a lock, and writes down what has to be known if it dies in the middle.
pub(crate) trait LockRecorder {
    /// This directory is about to become the lock, or has just been made for it.
    fn record_acquire(&mut self, id: LockId) -> Result<(), StoreError>;

    /// The lock is about to be taken from a holder that may only be slow, and write when it wakes.
    fn record_steal(&mut self) -> Result<(), StoreError>;
}

/// What one try to take a lock came to.
#[derive(Debug)]
pub(crate) enum LockAttempt<'d> {
    Acquired(HeldLock<'d>),
    Blocked(Obstacle),
}

/// Somebody waiting for a lock: what it has seen of the holder so far.
#[derive(Debug, Default)]
pub(crate) struct LockWaiter {
    /// Whether it was told to wait before.
    pub(crate) has_waited: bool,
    /// The lock, its time, and since when it has been just so by a clock nobody can set.
    seen_lock: Option<(FileStamp, Instant)>,
    /// A file that could not be read, and since when it has been just so.
    torn_file: Option<(FileStamp, Instant)>,
}

impl LockWaiter {
    /// Tries once. `ours` is a lock whose maker is known to be gone.
    pub(crate) fn try_lock<'d>(
        &mut self,
        at: LockPath<'d>,
        abandoned: Option<LockId>,
        recorder: &mut dyn LockRecorder,
    ) -> Result<LockAttempt<'d>, StoreError> {
        let (dir, name) = (at.dir, at.name.as_str());
        if let Some(abandoned) = abandoned {
            // Before another takes its place in what is remembered.
            remove_abandoned(dir, name, abandoned)?;
        }
        // Twice at most: once to find it abandoned, once to take it.
        for _ in 0..2 {
            let acquired_at = Instant::now();
            if let Some(id) = at.create(recorder)? {
                return Ok(LockAttempt::Acquired(HeldLock { at, id, acquired_at }));
            }
            let path = dir.path(name);
            let stat = match statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(dir.io_error("look at", name, error)),
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Ok(LockAttempt::Blocked(Obstacle::NotALock { path }));
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
            // A time in the future never gets old; the time we have watched it does.
            let stale = age > i64::try_from(STALE_AFTER.as_secs()).unwrap_or_default()
                || observed_for > STALE_AFTER;
            if !stale {
                return Ok(LockAttempt::Blocked(Obstacle::Held { path, held_secs: age.max(0) }));
            }
            recorder.record_steal()?;
            // Moving it does not change the time by which it is stale.
            let is_same = |moved: &str| dir.stamp(moved).is_ok_and(|found| found == Some(stamp));
            match remove_if(dir, name, is_same)? {
                Removal::Removed => {}
                Removal::Replaced => {
                    return Ok(LockAttempt::Blocked(Obstacle::Held {
                        path,
                        held_secs: age.max(0),
                    }));
                }
                Removal::NotEmpty => return Ok(LockAttempt::Blocked(Obstacle::Filled { path })),
            }
        }
        let path = dir.path(name);
        Ok(LockAttempt::Blocked(Obstacle::Held { path, held_secs: 0 }))
    }
}

impl LockWaiter {
    /// Whether a torn file has been torn for so long that nobody is writing it.
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

/// Removes a lock that was looked at, and no other that came into its place since: it is moved aside
/// first, where `is_it` can look once more.
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
    // Somebody's live lock, or one that is not empty: back with it, unless a new one was made.
    match renameat_with(dir.fd(), moved.as_str(), dir.fd(), name, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => dir.remove_dir_quietly(&moved),
        Err(error) => return Err(dir.io_error("put back", name, error)),
    }
    Ok(removed)
}

/// What became of a lock that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// It is gone.
    Removed,
    /// Another had come into its place.
    Replaced,
    /// It is not empty, and stays.
    NotEmpty,
}

/// Removes a lock.
fn remove_dir(dir: &Dir, name: &str) -> Result<Removal, StoreError> {
    match unlinkat(dir.fd(), name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removal::Removed),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        Err(error) => Err(dir.io_error("remove the lock", name, error)),
    }
}

impl LockPath<'_> {
    /// Makes the lock; `None` if it is there.
    fn create(&self, recorder: &mut dyn LockRecorder) -> Result<Option<LockId>, StoreError> {
        let io_error = |error| self.dir.io_error("lock", &self.name, error);
        if let Some((dir, spare)) = &self.spare {
            let id = refresh(dir, spare)?;
            // First the word, then the deed: if we die in between, the next of us knows whose it is.
            recorder.record_acquire(id)?;
            let (from, to) = (spare.as_str(), self.name.as_str());
            match renameat_with(dir.fd(), from, self.dir.fd(), to, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(Some(id)),
                Err(Errno::EXIST) => return Ok(None),
                // Another file system, or one that cannot move without replacing.
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        match mkdirat(self.dir.fd(), self.name.as_str(), Mode::from_raw_mode(0o755)) {
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

    /// Takes the lock away, and keeps it for the next time.
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

/// Makes the directory at hand as young as if it were new, or makes a new one.
fn refresh(dir: &Dir, spare: &str) -> Result<LockId, StoreError> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let now = Timestamps { last_access: now, last_modification: now };
    let refreshed = match utimensat(dir.fd(), spare, &now, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => dir.private_child(spare).map(drop),
        other => other.map_err(|error| dir.io_error("refresh", spare, error)),
    };
    refreshed?;
    LockId::find(dir, spare)?.ok_or_else(|| dir.io_error("look at", spare, Errno::NOENT))
}

impl HeldLock<'_> {
    /// Whether it is still ours, and will be for a while: after a long pause it may have been taken
    /// from us, or be about to.
    pub(crate) fn is_held(&self) -> Result<bool, StoreError> {
        Ok(self.acquired_at.elapsed() < TRUSTED_FOR
            && LockId::find(self.at.dir, &self.at.name)? == Some(self.id))
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        // After a pause it may be somebody else's, or about to be; that one we leave.
        if matches!(self.is_held(), Ok(true)) {
            self.at.release();
        }
    }
}

/// Removes a lock whose maker is known to be gone, if it is there.
pub(crate) fn remove_abandoned(dir: &Dir, name: &str, id: LockId) -> Result<(), StoreError> {
    if LockId::find(dir, name)? == Some(id) {
        remove_if(dir, name, |moved| {
            LockId::find(dir, moved).is_ok_and(|found| found == Some(id))
        })?;
    }
    Ok(())
}

/// Removes whatever lock is there: all who could hold it are known to be gone. What is no lock stays.
pub(crate) fn remove_any(dir: &Dir, name: &str) -> Result<(), StoreError> {
    match statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            remove_dir(dir, name).map(drop)
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(dir.io_error("look at", name, error)),
    }
}

/// How many seconds ago that was, by the wall clock that file times are made of.
fn age(modified: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(modified)
}
