//! A document of Claude Code's, replaced by compare-and-set under its lock.

use std::time::Duration;

use super::dir::{Dir, Stamp, Sync, Whole};
use super::lock::{self, Lock, LockAt, Patience, Taker, Try};
use super::lock_id::LockId;
use super::own::{Made, Seen, Slot};
use super::state::Temp;
use brigade_core::hash::Fnv;
use brigade_core::store::{Document, Obstacle, Revision, StoreError};
use brigade_wire::Damage;

/// How often and how far apart a torn document is looked at again: Claude Code writes some in place.
/// On a busy machine it was seen to take 116 milliseconds over it.
const LOOKS: usize = 250;
const PAUSE: Duration = Duration::from_millis(2);

/// The revision of a document with these bytes. Coming back to earlier bytes is coming back to the
/// earlier revision; that does no harm, for a change is made of the bytes alone.
pub(crate) fn revision(bytes: &[u8]) -> Revision {
    Revision(Fnv::default().bytes(bytes).finish())
}

pub(crate) fn document(whole: Whole) -> Document {
    let revision = revision(&whole.bytes);
    Document { bytes: whole.bytes, revision }
}

/// Reads a document without a lock, again and again while it is torn. One torn for good is given as
/// it is, for its reader to judge. `known` is a state in which it was found whole before.
pub(crate) async fn read(
    dir: &Dir,
    name: &str,
    known: Option<Stamp>,
    check: fn(&[u8]) -> Result<(), Damage>,
) -> Result<Option<(Document, Stamp)>, StoreError> {
    for look in 0.. {
        let Some(whole) = dir.read(name)? else { break };
        let stamp = whole.stamp;
        if known == Some(stamp) || look == LOOKS || check(&whole.bytes).is_ok() {
            return Ok(Some((document(whole), stamp)));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(None)
}

/// What one try to change a document came to.
pub(crate) enum Tried<T> {
    Done(T),
    Wait(Obstacle),
    Again,
}

/// Which document of a team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub(crate) slot: Slot,
    /// The number of the task, where it is one.
    pub(crate) task: u64,
}

impl Which {
    fn lock(self) -> String {
        match self.slot {
            Slot::Create => ".lock.lock".into(),
            Slot::Task => format!("{}.json.lock", self.task),
            Slot::Roster => "config.json.lock".into(),
        }
    }
}

/// Takes the lock of a document for those who hold what was seen of the team.
struct DocumentTaker<'t> {
    which: Which,
    seen: Option<&'t Seen<'t>>,
}

impl Taker for DocumentTaker<'_> {
    fn taking(&mut self, id: LockId) -> Result<(), StoreError> {
        let Which { slot, task } = self.which;
        self.seen.map_or(Ok(()), |seen| seen.remember_lock(slot, Made { id, task }))
    }

    // A program that sleeps with the lock of a document and then writes undoes what was done
    // meanwhile. Whoever did it had its answer, and sees on the board what became of it.
    fn robbing(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Removes what one of us that died left of its locks in `dir`.
pub(crate) fn clear_locks(dir: &Dir, slots: &[Slot], seen: &Seen<'_>) -> Result<(), StoreError> {
    for &slot in slots {
        if let Some(Made { id, task }) = seen.last_lock(slot)? {
            lock::remove_abandoned(dir, &Which { slot, task }.lock(), id)?;
        }
    }
    Ok(())
}

/// Tries once to take the lock of a document.
pub(crate) fn try_lock<'d>(
    dir: &'d Dir,
    which: Which,
    seen: Option<&'d Seen<'d>>,
    patience: &mut Patience,
) -> Result<Try<'d>, StoreError> {
    let left = seen.map(|seen| seen.last_lock(which.slot)).transpose()?.flatten();
    if let Some(left) = left.filter(|left| left.task != which.task) {
        // One of us died with it, on another task.
        lock::remove_abandoned(dir, &Which { task: left.task, ..which }.lock(), left.id)?;
    }
    let gone = left.filter(|left| left.task == which.task).map(|left| left.id);
    let spare = seen.map(|seen| seen.spare_lock(which.slot));
    let at = LockAt { dir, name: which.lock(), spare };
    patience.try_lock(at, gone, &mut DocumentTaker { which, seen })
}

/// Replaces a document, if it is still at this revision. One try. That the new name of the file is on
/// the disk is the caller's to see to.
pub(crate) fn try_replace(
    dir: &Dir,
    which: Which,
    (bytes, at): (&[u8], Revision),
    seen: Option<&Seen<'_>>,
    patience: &mut Patience,
    sync: Sync,
) -> Result<Tried<()>, StoreError> {
    let lock = which.lock();
    let name = lock.trim_end_matches(".lock");
    let lock = match try_lock(dir, which, seen, patience)? {
        Try::Taken(lock) => lock,
        Try::Not(obstacle) => return Ok(Tried::Wait(obstacle)),
    };
    let Some(whole) = dir.read(name)? else { return Err(StoreError::Conflict) };
    let (stamp, mode) = (whole.stamp, whole.mode);
    if document(whole).revision != at {
        return Err(StoreError::Conflict);
    }
    let temp = Temp::next().name(name);
    dir.write_temp(&temp, bytes, Some(mode), sync)?;
    if !is_still(dir, name, &lock, stamp)? {
        dir.remove_quietly(&temp);
        return Ok(Tried::Again);
    }
    if let Err(error) = dir.rename(&temp, name) {
        dir.remove_quietly(&temp);
        return Err(error);
    }
    Ok(Tried::Done(()))
}

/// Whether the lock is still ours and the document still the one that was read.
fn is_still(dir: &Dir, name: &str, lock: &Lock<'_>, stamp: Stamp) -> Result<bool, StoreError> {
    Ok(dir.stamp(name)? == Some(stamp) && lock.is_held()?)
}

/// Writes a document that must not be there yet; whether it was not.
pub(crate) fn create(dir: &Dir, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
    let temp = Temp::next().name(name);
    // On the disk first: a new name for what is not there yet can be an empty file after a power cut.
    // Where a file is replaced the file systems take care that it is not.
    dir.write_temp(&temp, bytes, None, Sync::Yes)?;
    let made = dir.rename_new(&temp, name);
    if !matches!(made, Ok(true)) {
        dir.remove_quietly(&temp);
    }
    made
}
