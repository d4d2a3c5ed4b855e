//! The file that says which records were deleted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::dir::{Dir, Fsync, PRIVATE};
use super::layout::DELETED_RECORDS;
use super::temp_file::{self, TempFile};
use brigade_core::store::StoreError;

/// What was deleted from the journals of a team so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeletedHistory {
    /// Records before this time were deleted. A record shortly before it may remain.
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
    /// The number of requests in the range. The positions of the requests after it continue from there.
    pub(crate) requests: u64,
    /// The first request of a team in the range. The numbers of the team's requests count from it.
    pub(crate) first_request: Option<FirstRequest>,
    /// Requests before this time are settled: their answers may have been deleted.
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
    pub(crate) fn in_journal(team: &Dir, name: &str) -> Result<Self, StoreError> {
        Ok(DeletedHistory::read(team)?.range(name))
    }

    /// Returns the position of the first request of the team that was created at this time, if it was deleted.
    pub(crate) fn first_request_of(&self, created: u64) -> Option<u64> {
        self.first_request.filter(|first| first.team_created == created).map(|first| first.position)
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

    pub(crate) fn range(&self, name: &str) -> DeletedRange {
        let range = self.journals.get(name).copied().unwrap_or_default();
        DeletedRange { before: self.before, ..range }
    }
}
