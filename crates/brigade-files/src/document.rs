//! Replaces a Claude Code document by compare-and-set, while holding the document's lock.

use super::config_file::{MAX_TORN_READS, TORN_READ_INTERVAL};
use super::dir::{Dir, FileContents, FileStamp, Fsync};
use super::layout::{CONFIG, CREATE_LOCK, lock_name};
use super::lock::{self, HeldLock, LockAttempt, LockPath, LockRecorder, LockWaiter, TryOutcome};
use super::lock_id::LockId;
use super::revision::revision;
use super::team_state::seen::{LockKind, RecordedLock, SeenGuard};
use super::temp_file::TempFile;
use brigade_core::store::{Document, Revision, StoreError};
use brigade_wire::Damage;

pub(crate) fn from_contents(contents: FileContents) -> Document {
    let revision = revision(&contents.bytes);
    Document { bytes: contents.bytes, revision }
}

/// Reads a document without a lock, and reads it again while it is torn. If the document stays
/// torn, returns the torn bytes, and the caller decides what to do.
pub(crate) async fn read(
    dir: &Dir,
    name: &str,
    check: fn(&[u8]) -> Result<(), Damage>,
) -> Result<Option<Document>, StoreError> {
    for attempt in 0.. {
        let Some(contents) = dir.read(name)? else { break };
        if attempt == MAX_TORN_READS || check(&contents.bytes).is_ok() {
            return Ok(Some(from_contents(contents)));
        }
        tokio::time::sleep(TORN_READ_INTERVAL).await;
    }
    Ok(None)
}

/// Identifies one of a team's documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentId {
    pub(crate) kind: LockKind,
    /// The task number, for [`LockKind::Task`].
    pub(crate) task: u64,
}

/// The roster of a team.
pub(crate) const ROSTER: DocumentId = DocumentId { kind: LockKind::Roster, task: 0 };

impl DocumentId {
    fn file(self) -> String {
        match self.kind {
            LockKind::Create => CREATE_LOCK.to_owned(),
            LockKind::Task => format!("{}.json", self.task),
            LockKind::Roster => CONFIG.to_owned(),
        }
    }

    fn lock(self) -> String {
        lock_name(&self.file())
    }
}

/// Records a document's lock in the team's `board.seen`.
struct DocumentLockRecorder<'t> {
    document_id: DocumentId,
    seen: Option<&'t SeenGuard<'t>>,
}

impl LockRecorder for DocumentLockRecorder<'_> {
    fn record_acquire(&mut self, id: LockId) -> Result<(), StoreError> {
        let DocumentId { kind, task } = self.document_id;
        self.seen.map_or(Ok(()), |seen| seen.record_lock(kind, RecordedLock { id, task }))
    }

    // Do nothing. A suspended program whose lock was stolen may later overwrite a newer change to a
    // task or the roster. Brigade does not restore the lost change, because the author of the
    // change can see that it is lost.
    fn record_steal(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Removes the locks in `dir` that dead brigade processes left behind.
pub(crate) fn clear_locks(
    dir: &Dir,
    kinds: &[LockKind],
    seen: &SeenGuard<'_>,
) -> Result<(), StoreError> {
    for &kind in kinds {
        if let Some(RecordedLock { id, task }) = seen.last_lock(kind)? {
            lock::remove_abandoned(dir, &DocumentId { kind, task }.lock(), id)?;
        }
    }
    Ok(())
}

/// Tries once to acquire the lock of a document.
pub(crate) fn try_lock<'d>(
    dir: &'d Dir,
    document_id: DocumentId,
    seen: Option<&'d SeenGuard<'d>>,
    waiter: &mut LockWaiter,
) -> Result<LockAttempt<'d>, StoreError> {
    let previous = seen.map(|seen| seen.last_lock(document_id.kind)).transpose()?.flatten();
    if let Some(previous) = previous.filter(|previous| previous.task != document_id.task) {
        // The last recorded lock is on another task. If that lock still exists, its creator is dead.
        lock::remove_abandoned(
            dir,
            &DocumentId { task: previous.task, ..document_id }.lock(),
            previous.id,
        )?;
    }
    let abandoned =
        previous.filter(|previous| previous.task == document_id.task).map(|previous| previous.id);
    let spare = seen.map(|seen| seen.spare_lock(document_id.kind));
    let at = LockPath { dir, name: document_id.lock(), spare };
    waiter.try_lock(at, abandoned, &mut DocumentLockRecorder { document_id, seen })
}

/// Tries once to replace a document. Returns a conflict unless the document is at revision `at`.
/// The caller fsyncs the directory if the rename must survive power loss.
pub(crate) fn try_replace(
    dir: &Dir,
    document_id: DocumentId,
    (bytes, at): (&[u8], Revision),
    seen: Option<&SeenGuard<'_>>,
    waiter: &mut LockWaiter,
    sync: Fsync,
) -> Result<TryOutcome<()>, StoreError> {
    let name = &document_id.file();
    let lock = match try_lock(dir, document_id, seen, waiter)? {
        LockAttempt::Acquired(lock) => lock,
        LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
    };
    let Some(contents) = dir.read(name)? else { return Err(StoreError::Conflict) };
    let (stamp, mode) = (contents.stamp, contents.mode);
    if from_contents(contents).revision != at {
        return Err(StoreError::Conflict);
    }
    let temp = TempFile::next().name(name);
    dir.write_temp(&temp, bytes, Some(mode), sync)?;
    if !is_unchanged(dir, name, &lock, stamp)? {
        dir.remove_quietly(&temp);
        return Ok(TryOutcome::Retry);
    }
    if let Err(error) = dir.rename(&temp, name) {
        dir.remove_quietly(&temp);
        return Err(error);
    }
    Ok(TryOutcome::Done(()))
}

/// Returns whether the lock is still held and the document is still the version that was read.
fn is_unchanged(
    dir: &Dir,
    name: &str,
    lock: &HeldLock<'_>,
    stamp: FileStamp,
) -> Result<bool, StoreError> {
    Ok(dir.stamp(name)? == Some(stamp) && lock.is_held()?)
}

/// Creates a document unless it already exists. Returns whether it was created.
pub(crate) fn create(dir: &Dir, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
    let temp = TempFile::next().name(name);
    // Fsync before the rename. Otherwise, after power loss, the new name may refer to an empty
    // file. File systems prevent that only when a rename replaces an existing file.
    dir.write_temp(&temp, bytes, None, Fsync::Yes)?;
    let made = dir.rename_new(&temp, name);
    if !matches!(made, Ok(true)) {
        dir.remove_quietly(&temp);
    }
    made
}
