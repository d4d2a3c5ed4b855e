//! Checks of Claude Code's locks. A lock is an empty folder next to the file: creating it takes the lock,
//! removing it releases the lock.

use std::fs;

use super::Findings;
use super::fix::Fix;
use super::snapshot::{DoctorSnapshot, Entry, TeamFolder};

/// Seconds after which Claude Code treats a lock as abandoned.
const STALE: i64 = 10;
/// A lock whose timestamp is this many seconds in the future never becomes stale. On one machine, clocks cannot
/// differ this much.
const IN_FUTURE: i64 = -60;

fn locks(snapshot: &DoctorSnapshot) -> impl Iterator<Item = &Entry> {
    let all = snapshot.teams.iter().flat_map(TeamFolder::all);
    all.filter(|entry| entry.name.ends_with(".json.lock") || entry.name == ".lock.lock")
}

fn is_empty_dir(entry: &Entry) -> bool {
    let first = fs::read_dir(&entry.path).map(|mut entries| entries.next().is_none());
    entry.meta.is_dir() && first.unwrap_or(true)
}

pub(super) fn stale(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for lock in locks(snapshot).filter(|lock| is_empty_dir(lock)) {
        let what = match lock.age {
            age if age > STALE => format!("a lock that was not renewed for {}", ago(age)),
            age if age < IN_FUTURE => {
                "a lock with a timestamp in the future, which never expires".to_owned()
            }
            _ => continue,
        };
        found.fixable(lock.path.as_path(), what, Fix::RemoveLock(lock.path.clone()));
    }
}

pub(super) fn broken(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for lock in locks(snapshot).filter(|lock| !is_empty_dir(lock) && lock.age > STALE) {
        let what = if lock.meta.is_dir() {
            "a lock folder that is not empty"
        } else {
            "a file in place of a lock folder"
        };
        found.fixable(lock.path.as_path(), what, Fix::MoveAside(lock.path.clone()));
    }
}

/// Formats an age in a readable unit.
pub(super) fn ago(seconds: i64) -> String {
    match seconds {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}
