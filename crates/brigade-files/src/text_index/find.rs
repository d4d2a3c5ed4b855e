//! Finds records by their words.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Statement};

use super::Survey;
use super::block::{IndexedRecord, decode_numbers, decode_records, kind_word, member_word};
use crate::deleted_records::DeletedHistory;
use crate::dir::Dir;
use crate::searched_journals::{SearchedJournals, read_from};
use crate::sqlite_file::{IndexError, signed};
use brigade_core::search_text::SearchWord;
use brigade_core::store::{RecordPlace, SearchHit, SearchQuery, SearchResults};

/// No word contains this character, so it comes after all words that begin with the same characters.
const LAST_CHAR: char = char::MAX;

/// A block that may contain records that the query selects.
struct CandidateBlock {
    id: i64,
    journal: i64,
    last_at: i64,
}

/// The lookups in a block.
struct BlockReader<'c> {
    select_word: Statement<'c>,
    select_records: Statement<'c>,
}

/// The records found so far.
struct FoundHits {
    hits: Vec<SearchHit>,
    limit: Option<usize>,
    /// The times of the newest hits in milliseconds, as many as the limit allows.
    newest: BinaryHeap<Reverse<i64>>,
}

impl FoundHits {
    fn new(hits: Vec<SearchHit>, limit: Option<usize>) -> Self {
        let mut found = Self { hits: Vec::new(), limit, newest: BinaryHeap::new() };
        hits.into_iter().for_each(|hit| found.push(hit));
        found
    }

    fn push(&mut self, hit: SearchHit) {
        if let Some(limit) = self.limit {
            self.newest.push(Reverse(hit.record.at.as_millisecond()));
            if self.newest.len() > limit {
                self.newest.pop();
            }
        }
        self.hits.push(hit);
    }

    /// Returns the time, in milliseconds, before which records are not needed, because there are enough newer ones.
    fn oldest_needed(&self) -> i64 {
        let is_full = self.limit.is_some_and(|limit| self.newest.len() >= limit);
        let oldest = self.newest.peek().map_or(i64::MAX, |Reverse(at)| *at);
        if is_full { oldest } else { i64::MIN }
    }
}

/// Returns how many lines of the indexed part of a journal are not records. A process that deleted records may have died before it
/// removed them from the index, so a block may contain the end of the deleted part.
fn indexed_unreadable(
    db: &Connection,
    journals: &SearchedJournals<'_>,
    name: &str,
    journal: i64,
    deleted: u64,
) -> Result<u64, IndexError> {
    let sum = "SELECT coalesce(sum(unreadable), 0) FROM block WHERE journal = ?1 AND start >= ?2";
    let values = (journal, signed(deleted));
    let mut unreadable = db.query_row(sum, values, |row| row.get::<_, i64>(0))?.cast_unsigned();
    let cut = "SELECT upto FROM block WHERE journal = ?1 AND start < ?2 AND upto > ?2";
    let cut = db.query_row(cut, values, |row| row.get::<_, i64>(0)).optional()?;
    if let Some(upto) = cut.map(i64::cast_unsigned) {
        journals.journal(name)?.scan_lines(deleted, |offset, record| {
            if offset >= upto {
                return ControlFlow::Break(());
            }
            unreadable += u64::from(record.is_none());
            ControlFlow::Continue(())
        })?;
    }
    Ok(unreadable)
}

/// Returns the records that the query selects, those that are not indexed included.
pub(super) fn find(
    db: &Connection,
    team: &Dir,
    journals: &SearchedJournals<'_>,
    survey: &Survey,
    query: &SearchQuery,
) -> Result<SearchResults, IndexError> {
    // Read this after the index. If the index lacks deleted records, the file lists them.
    let deleted = DeletedHistory::read(team)?;
    let mut hits = Vec::new();
    let mut unreadable: u64 = 0;
    // For each journal in the index: its name, and the end of its deleted records.
    let mut names: HashMap<i64, (&str, u64)> = HashMap::new();
    for (name, indexed) in journals.names.iter().zip(&survey.journals) {
        let deleted = deleted.range(name, &*journals.journal(name)?)?.upto;
        let from = indexed.map_or(deleted, |indexed| indexed.upto.offset.max(deleted));
        unreadable += read_from(journals, name, from, query, &mut hits)?;
        if let Some(indexed) = indexed {
            unreadable += indexed_unreadable(db, journals, name, indexed.id, deleted)?;
            names.insert(indexed.id, (name, deleted));
        }
    }
    let groups = word_groups(query);
    let mut reader = BlockReader::new(db)?;
    let mut found = FoundHits::new(hits, query.limit);
    for block in blocks(db, query)? {
        if block.last_at < found.oldest_needed() {
            break;
        }
        let (name, deleted) = names.get(&block.journal).ok_or(IndexError::Mismatch)?;
        let mut candidates = reader.candidates(&block, &groups)?;
        candidates.retain(|record| record.offset >= *deleted);
        candidates.sort_by_key(|record| Reverse((record.at, record.offset)));
        for IndexedRecord { offset, at } in candidates {
            if at < found.oldest_needed() {
                break;
            }
            let Some(record) = journals.journal(name)?.record_at(offset)? else {
                return Err(IndexError::Mismatch);
            };
            if query.matches(&record) {
                let place = Some(RecordPlace { journal: (*name).to_owned(), offset });
                found.push(SearchHit { record, place });
            }
        }
    }
    let mut results = SearchResults::newest(found.hits, query.limit);
    results.unreadable = unreadable;
    Ok(results)
}

/// Returns the blocks that contain records of the wanted times, newest first.
fn blocks(db: &Connection, query: &SearchQuery) -> Result<Vec<CandidateBlock>, IndexError> {
    let mut select = db.prepare(
        "SELECT id, journal, last_at FROM block
        WHERE records > 0 AND last_at >= ?1 AND first_at <= ?2 ORDER BY last_at DESC",
    )?;
    let millis = |at: Option<Timestamp>, default| at.map_or(default, Timestamp::as_millisecond);
    let times = (millis(query.since, i64::MIN), millis(query.until, i64::MAX));
    let rows = select.query_map(times, |row| {
        Ok(CandidateBlock { id: row.get(0)?, journal: row.get(1)?, last_at: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns groups of words. A record that the query selects contains at least one word of each group.
fn word_groups(query: &SearchQuery) -> Vec<Vec<SearchWord>> {
    let whole = |text: String| SearchWord { text, is_prefix: false };
    let mut groups: Vec<Vec<SearchWord>> =
        query.text.index_words().into_iter().map(|word| vec![word]).collect();
    // A long word is probably rare.
    groups.sort_by_key(|group| Reverse(group.iter().map(|word| word.text.len()).min()));
    if !query.members.is_empty() {
        groups.push(query.members.iter().map(|name| whole(member_word(name.as_str()))).collect());
    }
    if !query.kinds.is_empty() {
        groups.push(query.kinds.iter().map(|kind| whole(kind_word(*kind))).collect());
    }
    groups
}

impl<'c> BlockReader<'c> {
    fn new(db: &'c Connection) -> Result<Self, IndexError> {
        let select_word = db.prepare(
            "SELECT records FROM posting WHERE block = ?1 AND word >= ?2 AND word <= ?3",
        )?;
        let select_records = db.prepare("SELECT records FROM block_record WHERE block = ?1")?;
        Ok(Self { select_word, select_records })
    }

    /// Returns the records of a block that contain a word of each group.
    fn candidates(
        &mut self,
        block: &CandidateBlock,
        groups: &[Vec<SearchWord>],
    ) -> Result<Vec<IndexedRecord>, IndexError> {
        let mut common: Option<Vec<u16>> = None;
        for group in groups {
            let mut numbers = Vec::new();
            for word in group {
                self.add_numbers(block, word, &mut numbers)?;
            }
            numbers.sort_unstable();
            numbers.dedup();
            if let Some(common) = &common {
                numbers.retain(|number| common.binary_search(number).is_ok());
            }
            if numbers.is_empty() {
                return Ok(Vec::new());
            }
            common = Some(numbers);
        }
        let records: Vec<u8> = self.select_records.query_row([block.id], |row| row.get(0))?;
        let records = decode_records(&records).ok_or(IndexError::Mismatch)?;
        let numbers = common.unwrap_or_default().into_iter().map(usize::from);
        let records: Option<Vec<_>> = numbers.map(|number| records.get(number).copied()).collect();
        records.ok_or(IndexError::Mismatch)
    }

    /// Adds the numbers of the records in a block that contain a word.
    fn add_numbers(
        &mut self,
        block: &CandidateBlock,
        word: &SearchWord,
        numbers: &mut Vec<u16>,
    ) -> Result<(), IndexError> {
        let mut end = word.text.clone();
        end.extend(word.is_prefix.then_some(LAST_CHAR));
        let mut rows = self.select_word.query((block.id, &word.text, end))?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(0)?.as_blob().map_err(|_| IndexError::Mismatch)?;
            decode_numbers(bytes, numbers).ok_or(IndexError::Mismatch)?;
        }
        Ok(())
    }
}
