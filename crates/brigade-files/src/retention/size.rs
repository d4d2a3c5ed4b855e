//! The size of a team's history.

use std::ops::ControlFlow;

use brigade_wire::name::TeamName;
use jiff::Timestamp;

use super::{MemberJournal, member_journals};
use crate::FileStore;
use crate::deleted_records::DeletedHistory;
use crate::journal::Journal;
use crate::layout::{INDEX, SEARCH_INDEX};
use brigade_core::store::StoreError;

/// How many bytes at the end of a journal to read for its newest record.
const LAST_BYTES: u64 = 64 << 10;

/// How much space the history of a team uses, and what was deleted from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistorySize {
    /// Bytes on the disk of the journals of mailboxes.
    pub mail: u64,
    /// Bytes on the disk of the journals of members' work.
    pub work: u64,
    /// Bytes on the disk of the team's own journal.
    pub team: u64,
    /// Bytes of the indexes.
    pub index: u64,
    /// When the oldest record was made.
    pub oldest: Option<Timestamp>,
    /// When the newest record was made.
    pub newest: Option<Timestamp>,
    /// Records before this time were deleted; `None` if none were.
    pub deleted_before: Option<Timestamp>,
    /// How many records were deleted so far.
    pub deleted_records: u64,
    /// How many bytes they had.
    pub deleted_bytes: u64,
}

impl HistorySize {
    /// Returns the bytes on the disk of all journals.
    pub fn journals(&self) -> u64 {
        self.mail + self.work + self.team
    }

    fn add_times(&mut self, journal: &Journal) -> Result<(), StoreError> {
        let oldest = journal.time_at(0)?;
        self.oldest = [self.oldest, oldest].into_iter().flatten().min();
        let newest = journal.last_records(LAST_BYTES)?.last().map(|record| record.at);
        self.newest = self.newest.max(newest.or(oldest));
        Ok(())
    }
}

impl FileStore {
    /// Returns the size of a team's history; `None` if the team has none.
    pub fn history_size(&self, team: &TeamName) -> Result<Option<HistorySize>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(None) };
        let deleted = DeletedHistory::read(&team_state.dir)?;
        let mut index = 0;
        for file in [INDEX, SEARCH_INDEX] {
            index += team_state.dir.stamp(file)?.map_or(0, |stamp| stamp.size);
        }
        let mut size = HistorySize {
            index,
            deleted_before: (deleted.records > 0).then_some(deleted.before),
            deleted_records: deleted.records,
            deleted_bytes: deleted.bytes,
            ..HistorySize::default()
        };
        size.team = team_state.journal.disk_bytes()?;
        size.add_times(&team_state.journal)?;
        for MemberJournal { journal, is_mail, .. } in member_journals(&team_state)? {
            *(if is_mail { &mut size.mail } else { &mut size.work }) += journal.disk_bytes()?;
            size.add_times(&journal)?;
        }
        Ok(Some(size))
    }

    /// Returns a time so that the mail and the work of a team have at most about this many bytes in records after it; `None` if they
    /// have no more than that.
    pub fn time_for_size(
        &self,
        team: &TeamName,
        bytes: u64,
    ) -> Result<Option<Timestamp>, StoreError> {
        let Some(size) = self.history_size(team)?.filter(|size| size.mail + size.work > bytes)
        else {
            return Ok(None);
        };
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(None) };
        let journals = member_journals(&team_state)?;
        let (Some(oldest), Some(newest)) = (size.oldest, size.newest) else { return Ok(None) };
        let (mut low, mut high) = (oldest.as_millisecond(), newest.as_millisecond());
        while high - low > 1000 {
            let middle = low + (high - low) / 2;
            let Ok(time) = Timestamp::from_millisecond(middle) else { break };
            let mut after = 0;
            for member in &journals {
                after += member.journal.bytes_after(time)?;
            }
            if after > bytes {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Timestamp::from_millisecond(high).ok())
    }
}

impl Journal {
    /// Returns the time of the first record at or after an offset.
    fn time_at(&self, offset: u64) -> Result<Option<Timestamp>, StoreError> {
        let mut time = None;
        self.scan(self.line_after(offset)?, |_, record| {
            time = Some(record.at);
            ControlFlow::Break(())
        })?;
        Ok(time)
    }

    /// Returns about how many bytes the records from a time on have.
    fn bytes_after(&self, time: Timestamp) -> Result<u64, StoreError> {
        let len = self.len()?;
        let (mut low, mut high) = (0, len);
        while high - low > 4096 {
            let middle = low + (high - low) / 2;
            if self.time_at(middle)?.is_some_and(|at| at < time) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(len - high)
    }
}
