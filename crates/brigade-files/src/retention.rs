//! Deletes old records from the journals of a team.
//!
//! The journals stay as long as they are: zeros replace the deleted records, and the file system gets their space back. So every
//! stored position in a journal stays valid, and a process that appends needs no lock. Brigade first writes the file `deleted.json`,
//! then removes the records from the index, and then frees the space. If the process dies in between, the next deletion does the
//! steps that are missing.
//!
//! The caller decides up to which time records are deleted. The answer to a request may be in another journal than the request, so
//! the time is the same for all journals of a team.

mod size;

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use uuid::Uuid;

pub use self::size::HistorySize;
use super::deleted_records::{DeletedHistory, DeletedRange, FirstRequest};
use super::dir::Dir;
use super::index::{self, Index};
use super::journal::{self, ANCHOR_LEN, Journal, STEP};
use super::layout::{DELETED, RETENTION_LOCK};
use super::mailbox::state::MailboxStateFile;
use super::sqlite_file::IndexError;
use super::team_state::TeamStateDir;
use super::text_index::TextIndex;
use super::{FileStore, hole};
use brigade_core::event::{Topic, TopicKind};
use brigade_core::store::StoreError;

/// Records are deleted only if that frees at least this many bytes in a journal.
const MIN_BYTES: u64 = 64 << 10;

/// The records that one call deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedRecords {
    /// The number of records.
    pub records: u64,
    /// The number of bytes in the journals.
    pub bytes: u64,
}

/// The journal of a mailbox or of a member's work, with its name in the list of deleted records.
struct MemberJournal {
    name: String,
    journal: Journal,
    is_mail: bool,
    /// The records before this offset may be deleted.
    limit: u64,
}

impl FileStore {
    /// Returns the teams that have a history, also those that were deleted.
    pub fn teams_with_history(&self) -> Result<Vec<TeamName>, StoreError> {
        let Some(teams) = Dir::open(&self.team_states_path)? else { return Ok(Vec::new()) };
        let names = teams.names()?.into_iter().filter(|name| !name.contains(DELETED));
        let mut names: Vec<TeamName> = names.filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Deletes the mail and the work of a team before a time. `created` is when the team was created, in milliseconds. Calls
    /// `progress` with the number of bytes that were examined since the last call. Returns `None` if another process is deleting
    /// records of the team. Keeps the end of each journal, and the journal of the team, from which its state can be computed.
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
        let journals = member_journals(&team_state)?;
        let mut history = DeletedHistory::read(dir)?;
        let mut deleted = DeletedRecords::default();
        // The clock may have been wrong at an earlier deletion. Then the records up to that time stay a while longer.
        if before > history.before {
            for member in &journals {
                let mut range = history.range(&member.name, &member.journal)?;
                let found = member.extend(&mut range, before, created, progress)?;
                range.examined = member.journal.len()?;
                deleted.records += found.records;
                deleted.bytes += found.bytes;
                history.set_range(&member.name, &member.journal, range)?;
            }
        }
        if deleted.bytes > 0 {
            check_holes(dir, &lock)?;
            history.before = before;
            history.records += deleted.records;
            history.bytes += deleted.bytes;
            for member in &journals {
                member.journal.sync()?;
            }
            history.write(dir)?;
        }
        let saved = DeletedHistory::read(dir)?;
        for member in &journals {
            let range = saved.range(&member.name, &member.journal)?;
            if member.journal.has_byte_before(range.upto)? {
                let forgotten = match member.is_mail {
                    true => Index::forget(dir, &member.name, &member.journal, &range),
                    false => Ok(()),
                };
                forgotten
                    .and_then(|()| TextIndex::forget(dir, &member.name, &member.journal, &range))
                    .map_err(|error| forget_error(dir, error))?;
                member.journal.punch(0, range.upto)?;
            }
        }
        Ok(Some(deleted))
    }

    /// Deletes everything that brigade has stored about a team, if the team does not exist and nothing was recorded since a time.
    /// Returns what was deleted; `None` if the team exists, or something was recorded since.
    pub fn delete_ended_team(
        &self,
        team: &TeamName,
        before: Timestamp,
    ) -> Result<Option<DeletedRecords>, StoreError> {
        let is_ended = || match self.team_dir(team) {
            Ok(_) => Ok(false),
            Err(StoreError::NoTeam { .. }) => Ok(true),
            Err(error) => Err(error),
        };
        let size = self.history_size(team)?.unwrap_or_default();
        if !is_ended()? || size.newest.is_none_or(|newest| newest >= before) {
            return Ok(None);
        }
        let records = self.record_count(team)?;
        let Some(teams) = Dir::open(&self.team_states_path)? else { return Ok(None) };
        for name in teams.names()?.iter().filter(|name| name.contains(DELETED)) {
            // A process died while it deleted the folder.
            remove_folder(&teams.path(name))?;
        }
        let name = format!("{team}{DELETED}{}", Uuid::new_v4());
        teams.rename(team.as_str(), &name)?;
        if !is_ended()? {
            // The team was created meanwhile.
            teams.rename(&name, team.as_str())?;
            return Ok(None);
        }
        remove_folder(&teams.path(&name))?;
        Ok(Some(DeletedRecords { records, bytes: size.journals() }))
    }
}

impl FileStore {
    fn record_count(&self, team: &TeamName) -> Result<u64, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(0) };
        let members = member_journals(&team_state)?;
        let mut count = 0;
        for journal in members.iter().map(|one| &one.journal).chain([&team_state.journal]) {
            journal.scan(0, |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
        }
        Ok(count)
    }
}

fn remove_folder(path: &Path) -> Result<(), StoreError> {
    std::fs::remove_dir_all(path).map_err(|source| StoreError::Io {
        doing: "delete",
        path: path.to_owned(),
        source,
    })
}

impl MemberJournal {
    /// Extends the range up to the first record that has to stay, if that is worth it. Returns what the range covers in addition.
    fn extend(
        &self,
        range: &mut DeletedRange,
        before: Timestamp,
        created: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<DeletedRecords, StoreError> {
        let start = range.upto;
        // The range if it ends before the last record that was read.
        let mut extended = *range;
        let mut records = 0;
        let mut last: Option<DeletedRange> = None;
        let mut reported = start;
        self.journal.scan(start, |offset, record| {
            // The line break before a record that stays also stays.
            let upto = offset.saturating_sub(1);
            if upto > self.limit {
                return ControlFlow::Break(());
            }
            if let Some(last) = last.take() {
                extended = DeletedRange { upto, ..last };
                records += 1;
            }
            if record.at >= before {
                return ControlFlow::Break(());
            }
            let mut next = extended;
            let topic = Topic::of_event(&record.event);
            if topic.is_some_and(|topic| topic.kind == TopicKind::Request) {
                next.requests += 1;
                if next.first_request_of(created).is_none() && record.belongs_to_team(created) {
                    let position = next.requests;
                    next.first_request = Some(FirstRequest { team_created: created, position });
                }
            }
            last = Some(next);
            if offset - reported > STEP {
                progress(offset - reported);
                reported = offset;
            }
            ControlFlow::Continue(())
        })?;
        let bytes = extended.upto - start;
        if bytes < MIN_BYTES {
            return Ok(DeletedRecords::default());
        }
        *range = extended;
        Ok(DeletedRecords { records, bytes })
    }
}

/// Fails if the file system cannot free a part of a file. Tries it with the file of the lock.
fn check_holes(dir: &Dir, lock: &OwnedFd) -> Result<(), StoreError> {
    let punched = rustix::io::pwrite(lock, &[1; 8192], 0).and_then(|_| hole::punch(lock, 0, 4096));
    let emptied = rustix::fs::ftruncate(lock, 0);
    let checked = punched.and(emptied);
    checked.map_err(|error| dir.io_error("free a part of the file", RETENTION_LOCK, error))
}

/// Returns the error of a process that could not remove deleted records from an index.
fn forget_error(team: &Dir, error: IndexError) -> StoreError {
    match error {
        IndexError::Store(error) => error,
        error => StoreError::Io {
            doing: "delete records from the index in",
            path: team.dir_path().to_owned(),
            source: std::io::Error::other(error),
        },
    }
}

/// Opens the journals of the mailboxes and of the members' work.
fn member_journals(team_state: &TeamStateDir) -> Result<Vec<MemberJournal>, StoreError> {
    let mut found = Vec::new();
    let [mail, work] = team_state.member_journal_folders();
    for (folder, is_mail) in [(mail, true), (work, false)] {
        for file in journal::names(folder)? {
            let Some(member) = file.strip_suffix(".jsonl") else { continue };
            if member.parse::<MemberName>().is_err() {
                continue;
            }
            let name = if is_mail { index::mailbox(member) } else { format!("work/{member}") };
            let journal = Journal::open(folder, &file)?;
            let mut limit = journal.len()?.saturating_sub(STEP);
            if is_mail {
                limit = limit.min(saved_position(folder, member)?);
            }
            found.push(MemberJournal { name, journal, is_mail, limit });
        }
    }
    Ok(found)
}

/// Returns the offset from which a mailbox needs the records of its journal: those before are in the inbox, or were.
fn saved_position(mail: &Dir, member: &str) -> Result<u64, StoreError> {
    let state = MailboxStateFile::open(mail, &format!("{member}.state"))?;
    let Some(head) = state.head()? else { return Ok(0) };
    let risk = head.risk.map_or(u64::MAX, |risk| risk.from);
    let needed = head.before.upto.offset.min(head.after.upto.offset).min(risk);
    Ok(needed.saturating_sub(ANCHOR_LEN as u64))
}
