//! Deletes old records from the journals of a team.
//!
//! Deleting leaves the journals as long as they are: zeros replace the deleted records, and the file system gets their space back.
//! So every stored position in a journal stays valid, and a process that appends needs no lock. A process that dies in between
//! leaves the team in order: first the file `deleted.json` says what is deleted, then the index forgets it, and then the space is
//! given back. The next deletion repeats what is missing.
//!
//! The caller decides up to which time records are deleted. Answers to a request may be in another journal than the request, so the
//! time is the same for all journals of a team.

mod size;

use std::ops::ControlFlow;

use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

pub use self::size::HistorySize;
use super::FileStore;
use super::deleted_records::{DeletedHistory, DeletedRange, FirstRequest};
use super::dir::Dir;
use super::index::{self, Index, IndexError};
use super::journal::{self, Journal, STEP};
use super::layout::{RETENTION_LOCK, TEAM_JOURNAL};
use super::team_state::TeamStateDir;
use brigade_core::event::{Topic, TopicKind};
use brigade_core::store::StoreError;

/// Records of a team that exists are deleted only if that frees at least this many bytes in a journal.
const MIN_BYTES: u64 = 64 << 10;

/// The records that one call deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedRecords {
    /// The number of records.
    pub records: u64,
    /// The number of bytes in the journals.
    pub bytes: u64,
}

/// A journal of a team, with its name in the list of deleted records.
struct NamedJournal {
    name: String,
    journal: Journal,
    /// Whether the index contains the journal.
    is_indexed: bool,
}

impl FileStore {
    /// Returns the teams that have a history, also those that were deleted.
    pub fn teams_with_history(&self) -> Result<Vec<TeamName>, StoreError> {
        let Some(teams) = Dir::open(&self.team_states_path)? else { return Ok(Vec::new()) };
        let mut names: Vec<TeamName> =
            teams.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Deletes the records of a team before a time. `created` is when the team was created, in milliseconds. Calls `progress` with
    /// the number of bytes that were examined since the last call. Returns `None` if another process is deleting records of the
    /// team. While the team exists, keeps the end of each journal, and all of the team's own journal: the state of the team can be
    /// computed from it.
    pub fn delete_records(
        &self,
        team: &TeamName,
        before: Timestamp,
        created: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletedRecords>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else {
            return Ok(Some(DeletedRecords::default()));
        };
        let dir = &team_state.dir;
        let lock = dir.private_file(RETENTION_LOCK, OFlags::empty())?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(dir.io_error("lock", RETENTION_LOCK, error)),
        }
        let exists = match self.team_dir(team) {
            Ok(_) => true,
            Err(StoreError::NoTeam { .. }) => false,
            Err(error) => return Err(error),
        };
        let (kept_end, min_bytes) = if exists { (STEP, MIN_BYTES) } else { (0, 1) };
        let mut journals = journals(&team_state)?;
        journals.retain(|named| !exists || named.name != index::TEAM);
        let mut history = DeletedHistory::read(dir)?;
        history.before = history.before.max(before);
        let mut deleted = DeletedRecords::default();
        for named in &journals {
            let mut range = history.range(&named.name);
            let found = examine(named, &mut range, kept_end, created, progress)?;
            if found.bytes >= min_bytes {
                deleted.records += found.records;
                deleted.bytes += found.bytes;
                history.journals.insert(named.name.clone(), range);
            }
        }
        if deleted.bytes > 0 {
            history.records += deleted.records;
            history.bytes += deleted.bytes;
            history.write(dir)?;
        }
        for named in &journals {
            let range = history.range(&named.name);
            if named.journal.has_byte_before(range.upto)? {
                if named.is_indexed {
                    forget(dir, named, &range)?;
                }
                named.journal.punch(0, range.upto)?;
            }
        }
        Ok(Some(deleted))
    }
}

/// Extends the range up to the first record that has to stay. Returns what the range covers in addition.
fn examine(
    named: &NamedJournal,
    range: &mut DeletedRange,
    kept_end: u64,
    created: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<DeletedRecords, StoreError> {
    let (journal, start) = (&named.journal, range.upto);
    let last = journal.len()?.saturating_sub(kept_end);
    let mut found = DeletedRecords::default();
    let mut kept = None;
    let mut reported = start;
    let end = journal.scan(start, |offset, record| {
        if record.at >= range.before || offset > last {
            kept = Some(offset);
            return ControlFlow::Break(());
        }
        found.records += 1;
        if Topic::of_event(&record.event).is_some_and(|topic| topic.kind == TopicKind::Request) {
            range.requests += 1;
            let is_first = range.first_request.is_none_or(|first| first.team_created != created);
            if is_first && record.belongs_to_team(created) {
                let position = range.requests;
                range.first_request = Some(FirstRequest { team_created: created, position });
            }
        }
        if offset - reported > STEP {
            progress(offset - reported);
            reported = offset;
        }
        ControlFlow::Continue(())
    })?;
    // The line break before the first record that stays also stays.
    range.upto = kept.map_or(end.offset, |offset| offset.saturating_sub(1)).max(start);
    found.bytes = range.upto - start;
    Ok(found)
}

/// Removes the deleted records from the index.
fn forget(team: &Dir, named: &NamedJournal, range: &DeletedRange) -> Result<(), StoreError> {
    Index::forget(team, &named.name, &named.journal, range).map_err(|error| match error {
        IndexError::Store(error) => error,
        error => StoreError::Io {
            doing: "delete records from the index in",
            path: team.dir_path().to_owned(),
            source: std::io::Error::other(error),
        },
    })
}

/// Opens the journals of a team.
fn journals(team_state: &TeamStateDir) -> Result<Vec<NamedJournal>, StoreError> {
    let team = Journal::open(&team_state.dir, TEAM_JOURNAL)?;
    let mut found =
        vec![NamedJournal { name: index::TEAM.to_owned(), journal: team, is_indexed: true }];
    let [mail, work] = team_state.member_journal_folders();
    for (folder, is_indexed) in [(mail, true), (work, false)] {
        for file in journal::names(folder)? {
            let Some(member) = file.strip_suffix(".jsonl") else { continue };
            if member.parse::<MemberName>().is_err() {
                continue;
            }
            let name = if is_indexed { index::mailbox(member) } else { format!("work/{member}") };
            let journal = Journal::open(folder, &file)?;
            found.push(NamedJournal { name, journal, is_indexed });
        }
    }
    Ok(found)
}
