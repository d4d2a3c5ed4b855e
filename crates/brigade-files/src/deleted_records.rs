//! The file that lists which records were deleted from the journals of a team.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::dir::{Dir, Fsync, PRIVATE};
use super::journal::{ANCHOR_LEN, Journal};
use super::layout::DELETED_RECORDS;
use super::temp_file::{self, TempFile};
use brigade_core::store::StoreError;

/// The records that were deleted from the journals of a team so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeletedHistory {
    /// Records before this time were deleted. Some of them may remain.
    pub(crate) before: Timestamp,
    /// The number of deleted records.
    pub(crate) records: u64,
    /// The number of their bytes.
    pub(crate) bytes: u64,
    pub(crate) journals: BTreeMap<String, DeletedRange>,
}

/// The deleted records of one journal: all of those before an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeletedRange {
    /// The end of the range.
    pub(crate) upto: u64,
    /// A hash of the bytes after the range, and their number. They identify the journal.
    pub(crate) next_hash: u64,
    pub(crate) next_len: usize,
    /// The number of requests in the range. The positions of the requests after it continue from there.
    pub(crate) requests: u64,
    /// The first request of a team in the range. The numbers of the team's requests count from it.
    pub(crate) first_request: Option<FirstRequest>,
    /// The length of the journal at the last deletion. Every request up to there that is older than the deleted records was
    /// settled, although its answer may have been deleted.
    pub(crate) examined: u64,
    #[serde(skip)]
    pub(crate) before: Timestamp,
}

/// The first request of the team that was created at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstRequest {
    /// In milliseconds.
    pub(crate) team_created: u64,
    pub(crate) position: u64,
}

impl DeletedRange {
    /// Returns the deleted range of a journal, given its name in the index.
    pub(crate) fn in_journal(
        team: &Dir,
        name: &str,
        journal: &Journal,
    ) -> Result<Self, StoreError> {
        DeletedHistory::read(team)?.range(name, journal)
    }

    /// Returns the position of the first request of the team that was created at this time, if it was deleted.
    pub(crate) fn first_request_of(&self, created: u64) -> Option<u64> {
        self.first_request.filter(|first| first.team_created == created).map(|first| first.position)
    }

    /// Returns whether a request at this offset was settled when records were last deleted.
    pub(crate) fn is_settled(&self, offset: u64, at: Timestamp) -> bool {
        offset < self.examined && at < self.before
    }
}

impl DeletedHistory {
    pub(crate) fn read(team: &Dir) -> Result<Self, StoreError> {
        let Some(contents) = team.read(DELETED_RECORDS)? else { return Ok(Self::default()) };
        serde_json::from_slice(&contents.bytes).map_err(|error| StoreError::Io {
            doing: "read",
            path: team.path(DELETED_RECORDS),
            source: error.into(),
        })
    }

    /// Writes the file, and waits until it is on the disk.
    pub(crate) fn write(&self, team: &Dir) -> Result<(), StoreError> {
        temp_file::sweep(team, &team.names()?, |file| file == DELETED_RECORDS);
        let temp = TempFile::next().name(DELETED_RECORDS);
        // A map of plain values always serializes.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        team.write_temp(&temp, &bytes, Some(PRIVATE), Fsync::Yes)?;
        team.rename(&temp, DELETED_RECORDS)?;
        team.sync()
    }

    /// Returns the deleted range of a journal. An entry of another journal with the same name does not count: a user may have
    /// deleted the journal.
    pub(crate) fn range(&self, name: &str, journal: &Journal) -> Result<DeletedRange, StoreError> {
        let Some(range) = self.journals.get(name) else { return Ok(DeletedRange::default()) };
        if journal.hash_at(range.upto, range.next_len)? != Some(range.next_hash) {
            return Ok(DeletedRange::default());
        }
        Ok(DeletedRange { before: self.before, ..*range })
    }

    /// Sets the deleted range of a journal.
    pub(crate) fn set_range(
        &mut self,
        name: &str,
        journal: &Journal,
        range: DeletedRange,
    ) -> Result<(), StoreError> {
        let next_len = journal.len()?.saturating_sub(range.upto).min(ANCHOR_LEN as u64);
        let next_len = usize::try_from(next_len).unwrap_or_default();
        let next_hash = journal.hash_at(range.upto, next_len)?.unwrap_or_default();
        self.journals.insert(name.to_owned(), DeletedRange { next_hash, next_len, ..range });
        Ok(())
    }
}
