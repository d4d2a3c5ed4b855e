//! Searches in the whole history of a team.

use brigade_wire::name::MemberName;
use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Record, RecordKind};
use crate::search_text::SearchText;

/// Selects records of a team by their text.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The text that the records contain.
    pub text: SearchText,
    /// Only records about one of these members; empty for all members.
    pub members: Vec<MemberName>,
    /// Only records of these kinds; empty for all kinds.
    pub kinds: Vec<RecordKind>,
    /// Only records at this time or later.
    pub since: Option<Timestamp>,
    /// Only records before this time.
    pub until: Option<Timestamp>,
    /// Only the newest records, this many at most.
    pub limit: Option<usize>,
}

impl SearchQuery {
    /// Returns the query that selects all records with a text.
    pub fn new(text: SearchText) -> Self {
        let (members, kinds) = (Vec::new(), Vec::new());
        Self { text, members, kinds, since: None, until: None, limit: None }
    }

    /// Returns whether the query selects a record. The limit does not count.
    pub fn matches(&self, record: &Record) -> bool {
        self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
            && (self.kinds.is_empty() || self.kinds.contains(&record.event.record_kind()))
            && (self.members.is_empty()
                || self.members.iter().any(|name| record.is_about_member(name.as_str())))
            && self.text.matches(&record.event.search_text())
    }
}

/// A record that a search found.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The record.
    pub record: Record,
    /// Where the record is stored; `None` if the store has no journal files.
    pub place: Option<RecordPlace>,
}

/// The place of a record in the files of a team.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RecordPlace {
    /// The journal, without the ending of its file: `team`, `mail/bob` or `work/bob`.
    pub journal: String,
    /// The offset of the record's line in the journal.
    pub offset: u64,
}

/// The result of a search in one team.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SearchResults {
    /// The records, newest first.
    pub hits: Vec<SearchHit>,
    /// The number of lines in the journals that are not records, for example because a write was cut short by a full disk. They were
    /// not searched.
    pub unreadable: u64,
    /// Why all records were read instead of an index, if that happened.
    pub index_error: Option<String>,
}

impl SearchResults {
    /// Creates a result of these records, in any order. Keeps the newest ones, `limit` at most.
    pub fn newest(mut hits: Vec<SearchHit>, limit: Option<usize>) -> Self {
        hits.sort_by(|a, b| b.record.at.cmp(&a.record.at).then_with(|| b.place.cmp(&a.place)));
        hits.truncate(limit.unwrap_or(usize::MAX));
        Self { hits, ..Self::default() }
    }
}

/// How far a store has come in adding records to its index of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexingProgress {
    /// The number of records that were added so far.
    pub records: u64,
    /// The number of bytes that were read so far.
    pub bytes: u64,
    /// The number of bytes to read.
    pub total_bytes: u64,
}

/// Receives the progress of indexing.
pub type ReportIndexing<'r> = &'r (dyn Fn(IndexingProgress) + Send + Sync);
