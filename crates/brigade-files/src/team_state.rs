//! Brigade's own files for a team: the journals, and the roster and board as last seen.
//!
//! These files are outside Claude Code's folders, because Claude Code deletes its folders for a
//! team when its session ends.

pub(crate) mod intent;
pub(crate) mod seen;

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::team::Team;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::dir::{Dir, Fsync, PRIVATE, io_error, is_read_only};
use super::index::{self, Index};
use super::journal::Journal;
use super::layout::{
    BOARD_SEEN, CREATED, CREATING, DELETING, DEPARTURES, INTENT, LAST_ROSTER, MAIL, SHARED,
    TEAM_JOURNAL, WORK, member_journal,
};
use super::lock_mutex;
use super::temp_file::{self, TempFile};
use brigade_core::clock::Clock;
use brigade_core::event::{Event, UncheckedRecord};
use brigade_core::store::{Actor, StoreError};

/// Brigade's folder for one team.
#[derive(Debug)]
pub(crate) struct TeamStateDir {
    pub(crate) dir: Dir,
    pub(crate) mail: Arc<Dir>,
    work: Dir,
    pub(crate) journal: Journal,
    /// Open journals of members' work.
    work_journals: Mutex<HashMap<MemberName, Journal>>,
    /// The paths of the notes beside which this store has removed the temporary files of dead processes.
    swept_notes: Mutex<HashSet<PathBuf>>,
    seen_file: OwnedFd,
    /// The end of the journal when this store last recorded a difference and saved the new state. While the journal ends
    /// there, no process has died in between.
    recorded_upto: AtomicU64,
    /// The change that a process is about to make; `None` if the folder can only be read.
    intent_file: Option<OwnedFd>,
    /// Excludes other threads; the `flock` on `seen_file` excludes other processes.
    thread_lock: Mutex<()>,
}

impl TeamStateDir {
    /// Fails as on a read-only file system if [`TeamStateDir::open`] would create something in this folder.
    pub(crate) fn check_complete(path: &Path) -> Result<(), StoreError> {
        let missing = || io_error("open", path.to_owned(), Errno::ROFS);
        let files = [MAIL, WORK, TEAM_JOURNAL, BOARD_SEEN, INTENT];
        Dir::open(path)?.ok_or_else(missing)?.check_exists(&files)
    }

    /// Opens the team's folder, creating it if needed. On a read-only file system, the folder can
    /// be read but not changed.
    pub(crate) fn open(teams: &Dir, team: &str) -> Result<Self, StoreError> {
        let dir = teams.private_child(team)?;
        let mail = Arc::new(dir.private_child(MAIL)?);
        let work = dir.private_child(WORK)?;
        let journal = Journal::open(&dir, TEAM_JOURNAL)?;
        let seen_file = dir.private_file(BOARD_SEEN, OFlags::empty())?;
        let intent_file = match dir.private_file(INTENT, OFlags::empty()) {
            Ok(file) => Some(file).filter(|_| journal.is_writable()),
            Err(error) if is_read_only(&error) => None,
            Err(error) => return Err(error),
        };
        let (work_journals, thread_lock) = (Mutex::default(), Mutex::default());
        let swept_notes = Mutex::default();
        let recorded_upto = AtomicU64::new(u64::MAX);
        Ok(Self {
            dir,
            mail,
            work,
            journal,
            work_journals,
            swept_notes,
            seen_file,
            recorded_upto,
            intent_file,
            thread_lock,
        })
    }

    /// Returns whether the folder still exists.
    pub(crate) fn exists(&self) -> bool {
        self.journal.exists() && self.member_journal_folders().into_iter().all(Dir::exists)
    }

    /// Wakes the members that watch for departures. If this fails, they notice a departure a while later.
    pub(crate) fn announce_departures(&self) {
        if let Ok(file) = self.dir.private_file(DEPARTURES, OFlags::empty()) {
            let _unnoticed = rustix::io::pwrite(file, b"\n", 0);
        }
    }

    /// Returns the folders that hold one journal per member.
    pub(crate) fn member_journal_folders(&self) -> [&Dir; 2] {
        [&self.mail, &self.work]
    }

    /// Removes temporary files of processes that were killed.
    pub(crate) fn sweep(&self) -> Result<(), StoreError> {
        temp_file::sweep(&self.dir, &self.dir.names()?, |_| true);
        Ok(())
    }

    /// Removes temporary files of processes that were killed while they wrote this note, at the first call for the note.
    pub(crate) fn sweep_note(&self, dir: &Dir, name: &str) -> Result<(), StoreError> {
        if lock_mutex(&self.swept_notes).insert(dir.path(name)) {
            temp_file::sweep(dir, &dir.names()?, |file| file == name);
        }
        Ok(())
    }

    /// Records that brigade is about to create the team with this configuration, and which tasks of an earlier team it
    /// then removes from the board.
    pub(crate) fn record_creating(
        &self,
        config: &[u8],
        to_clear: &[TaskId],
    ) -> Result<(), StoreError> {
        let tasks: String = to_clear.iter().map(|id| format!("\n{id}")).collect();
        self.write(CREATING, format!("{}{tasks}", creation_mark(config)).as_bytes())
    }

    /// If brigade has not finished creating the team with this configuration, returns the tasks of an earlier team that
    /// are to be removed from the board.
    pub(crate) fn tasks_to_clear(&self, config: &[u8]) -> Result<Option<Vec<TaskId>>, StoreError> {
        let Some(contents) = self.dir.read(CREATING)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&contents.bytes);
        let mut lines = text.lines();
        if lines.next() != Some(&creation_mark(config)) {
            return Ok(None);
        }
        Ok(Some(lines.filter_map(|line| line.parse().ok()).collect()))
    }

    /// Records that brigade created the team with this configuration.
    pub(crate) fn record_created(&self, config: &[u8]) -> Result<(), StoreError> {
        self.write(CREATED, creation_mark(config).as_bytes())?;
        self.dir.remove_quietly(CREATING);
        Ok(())
    }

    /// Returns whether brigade created the team that was created at this time, in milliseconds.
    pub(crate) fn is_created_by_us(&self, created: u64) -> Result<bool, StoreError> {
        for name in [CREATED, CREATING] {
            if let Some(contents) = self.dir.read(name)?
                && let Some(mark) = String::from_utf8_lossy(&contents.bytes).lines().next()
                && mark.parse() == Ok(created)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records that brigade is about to delete the team. `id` is in the new names of its folders.
    pub(crate) fn record_deleting(&self, id: &str) -> Result<(), StoreError> {
        self.write(DELETING, id.as_bytes())
    }

    /// Returns the id of a deletion that is not finished.
    pub(crate) fn deleting(&self) -> Result<Option<String>, StoreError> {
        let contents = self.dir.read(DELETING)?;
        let id = contents.map(|contents| String::from_utf8_lossy(&contents.bytes).into_owned());
        // The id becomes part of a path.
        Ok(id.filter(|id| uuid::Uuid::parse_str(id).is_ok()))
    }

    /// Records that the deletion is finished.
    pub(crate) fn clear_deleting(&self) -> Result<(), StoreError> {
        self.dir.remove(DELETING).map(drop)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let temp = TempFile::next().name(name);
        self.dir.write_temp(&temp, bytes, Some(PRIVATE), Fsync::No)?;
        self.dir.rename(&temp, name)
    }

    /// Returns the roster as last seen.
    pub(crate) fn last_roster(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.dir.read(LAST_ROSTER)?.map(|contents| contents.bytes))
    }

    /// Returns whether another program has ever written the roster.
    pub(crate) fn is_shared(&self) -> Result<bool, StoreError> {
        Ok(self.dir.stamp(SHARED)?.is_some())
    }

    /// Appends a work event to the member's work journal, and any other event to the team's
    /// journal.
    pub(crate) fn record_event(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        event: Event,
    ) -> Result<(), StoreError> {
        let member = match &event {
            Event::Worked { name, .. } => name.parse::<MemberName>().ok(),
            _ => None,
        };
        match member {
            Some(member) => self.record_work(member, &[record(clock, by, event)]),
            None => self.record_events(clock, by, vec![event]).map(drop),
        }
    }

    /// Appends events to the team's journal in one write. Returns the new end of the journal.
    pub(crate) fn record_events(
        &self,
        clock: &dyn Clock,
        by: Option<&Actor>,
        events: Vec<Event>,
    ) -> Result<u64, StoreError> {
        let records: Vec<_> = events.into_iter().map(|event| record(clock, by, event)).collect();
        let end = self.journal.append(&records, Fsync::No)?;
        Index::update_if_due(&self.dir, index::TEAM, &self.journal);
        Ok(end)
    }

    /// Appends to the journal of a member's work. Work events far outnumber all other events. They
    /// have separate journals, so that a reader of mail or tasks need not read them.
    fn record_work(
        &self,
        member: MemberName,
        record: &[UncheckedRecord],
    ) -> Result<(), StoreError> {
        let mut work_journals = lock_mutex(&self.work_journals);
        // If a user has deleted the journal file, open a new one.
        if let Some(journal) = work_journals.get(&member).filter(|journal| journal.exists()) {
            return journal.append(record, Fsync::No).map(drop);
        }
        let journal = Journal::open(&self.work, &member_journal(&member))?;
        journal.append(record, Fsync::No)?;
        work_journals.insert(member, journal);
        Ok(())
    }
}

fn record(clock: &dyn Clock, by: Option<&Actor>, event: Event) -> UncheckedRecord {
    UncheckedRecord { at: clock.now(), by: by.map(|by| by.0.clone()), event }
}

fn creation_mark(config: &[u8]) -> String {
    let created = Team::read(config).ok().and_then(|team| team.created_at());
    created.unwrap_or_default().to_string()
}
