//! Checks of Claude Code's locks. A lock is an empty folder next to the locked file: creating the folder takes the
//! lock, and removing it releases the lock.

use std::fs;

use brigade_files::layout::{LOCK_STALE_SECS, is_lock};

use super::Findings;
use super::fix::Fix;
use super::snapshot::DoctorSnapshot;
use super::team_folder::{FolderEntry, TeamFolder};
use crate::output::duration;

/// The lowest age of a valid lock, in seconds. If the age is lower, the lock's timestamp is more than 60 seconds in
/// the future, and the lock would never become stale. Clock differences on one machine are smaller than that.
const IN_FUTURE: i64 = -60;

fn locks(snapshot: &DoctorSnapshot) -> impl Iterator<Item = &FolderEntry> {
    let all = snapshot.teams.iter().flat_map(TeamFolder::all);
    all.filter(|entry| is_lock(&entry.name))
}

fn is_empty_dir(entry: &FolderEntry) -> bool {
    let first = fs::read_dir(&entry.path).map(|mut entries| entries.next().is_none());
    entry.meta.is_dir() && first.unwrap_or(true)
}

pub(super) fn stale(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for lock in locks(snapshot).filter(|lock| is_empty_dir(lock)) {
        let what = match lock.age {
            age if age > LOCK_STALE_SECS.into() => {
                format!("a lock that was not renewed for {}", duration(age))
            }
            age if age < IN_FUTURE => {
                "a lock with a timestamp in the future, which never expires".to_owned()
            }
            _ => continue,
        };
        found.fixable(
            lock.path.as_path(),
            what,
            Fix::RemoveLock(lock.path.clone(), lock.identity()),
        );
    }
}

pub(super) fn broken(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for lock in
        locks(snapshot).filter(|lock| !is_empty_dir(lock) && lock.age > LOCK_STALE_SECS.into())
    {
        let what = if lock.meta.is_dir() {
            "a lock folder that is not empty"
        } else {
            "a file in place of a lock folder"
        };
        found.fixable(
            lock.path.as_path(),
            what,
            Fix::MoveAside(lock.path.clone(), lock.identity()),
        );
    }
}
