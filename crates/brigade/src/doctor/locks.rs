//! Claude Code's locks: an empty folder beside the file, made to take it and removed to give it back.

use std::fs;

use super::Found;
use super::fix::Deed;
use super::snapshot::{Entry, House, TeamFolder};

/// When Claude Code takes a lock for abandoned, in seconds.
const STALE: i64 = 10;
/// A lock whose time is this far ahead never grows old for anybody; clocks of one machine are not.
const AHEAD: i64 = -60;

fn locks(house: &House) -> impl Iterator<Item = &Entry> {
    let all = house.teams.iter().flat_map(TeamFolder::all);
    all.filter(|entry| entry.name.ends_with(".json.lock") || entry.name == ".lock.lock")
}

fn is_empty_dir(entry: &Entry) -> bool {
    let first = fs::read_dir(&entry.path).map(|mut inside| inside.next().is_none());
    entry.meta.is_dir() && first.unwrap_or(true)
}

pub(super) fn stale(house: &House, found: &mut Found) {
    for lock in locks(house).filter(|lock| is_empty_dir(lock)) {
        let what = match lock.age {
            age if age > STALE => format!("a lock that nobody has renewed for {}", ago(age)),
            age if age < AHEAD => "a lock from the future, which never grows old".to_owned(),
            _ => continue,
        };
        found.fixable(lock.path.as_path(), what, Deed::RemoveLock(lock.path.clone()));
    }
}

pub(super) fn broken(house: &House, found: &mut Found) {
    for lock in locks(house).filter(|lock| !is_empty_dir(lock) && lock.age > STALE) {
        let what = if lock.meta.is_dir() {
            "a lock with something in it"
        } else {
            "a file where a lock belongs"
        };
        found.fixable(lock.path.as_path(), what, Deed::MoveAside(lock.path.clone()));
    }
}

/// How long ago, in words.
pub(super) fn ago(seconds: i64) -> String {
    match seconds {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}
