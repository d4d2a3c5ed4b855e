//! The records and words of one block, and how they are stored.

use std::collections::HashMap;

use rusqlite::Transaction;

use crate::sqlite_file::{IndexError, signed};
use brigade_core::event::{Record, RecordKind};
use brigade_core::search_text::each_word;

/// How many records with a text a block has at most. With larger blocks, a search for a rare word is faster; with smaller ones,
/// adding a few records. Small in tests, so that a short history has several blocks.
pub(super) const BLOCK_RECORDS: usize = if cfg!(test) { 8 } else { 2048 };

/// A record in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedRecord {
    /// The offset of its line in the journal.
    pub(super) offset: u64,
    /// Its time in milliseconds.
    pub(super) at: i64,
}

/// Collects the records of a block.
#[derive(Default)]
pub(super) struct BlockBuilder {
    records: Vec<IndexedRecord>,
    /// The numbers of the records with each word, in order.
    words: HashMap<String, Vec<u16>>,
    pub(super) unreadable: u64,
}

/// The part of a journal that a block covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRange {
    pub(super) journal: i64,
    pub(super) start: u64,
    pub(super) upto: u64,
}

impl BlockBuilder {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a record. A record without a text is left out: no search finds it.
    pub(super) fn add(&mut self, offset: u64, record: &Record) {
        let text = record.event.search_text();
        let Ok(number) = u16::try_from(self.records.len()) else { return };
        if text.is_empty() {
            return;
        }
        self.records.push(IndexedRecord { offset, at: record.at.as_millisecond() });
        each_word(&text, |word| self.add_word(word, number));
        self.add_word(&kind_word(record.event.record_kind()), number);
        for member in record.members() {
            self.add_word(&member_word(&member), number);
        }
    }

    fn add_word(&mut self, word: &str, number: u16) {
        match self.words.get_mut(word) {
            Some(numbers) if numbers.last() == Some(&number) => {}
            Some(numbers) => numbers.push(number),
            None => drop(self.words.insert(word.to_owned(), vec![number])),
        }
    }

    /// Stores the block.
    pub(super) fn store(
        self,
        transaction: &Transaction<'_>,
        range: BlockRange,
    ) -> Result<(), IndexError> {
        let times = self.records.iter().map(|record| record.at);
        let (first, last) =
            (times.clone().min().unwrap_or(i64::MAX), times.max().unwrap_or(i64::MIN));
        transaction
            .prepare(
                "INSERT INTO block (journal, start, upto, first_at, last_at, records, unreadable)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                range.journal,
                signed(range.start),
                signed(range.upto),
                first,
                last,
                signed(self.records.len() as u64),
                signed(self.unreadable),
            ))?;
        let block = transaction.last_insert_rowid();
        if self.records.is_empty() {
            return Ok(());
        }
        transaction
            .prepare("INSERT INTO block_record VALUES (?1, ?2)")?
            .execute((block, encode_records(&self.records)))?;
        let mut insert = transaction.prepare("INSERT INTO posting VALUES (?1, ?2, ?3)")?;
        let mut words: Vec<(String, Vec<u16>)> = self.words.into_iter().collect();
        // SQLite adds rows in this order fastest.
        words.sort_unstable();
        for (word, numbers) in words {
            insert.execute((block, word, encode_numbers(&numbers)))?;
        }
        Ok(())
    }
}

/// Returns the word that stands for a kind of record. The words of texts contain no control characters.
pub(super) fn kind_word(kind: RecordKind) -> String {
    format!("\u{1}{}", kind.as_str())
}

/// Returns the word that stands for a member.
pub(super) fn member_word(name: &str) -> String {
    format!("\u{2}{name}")
}

fn encode_records(records: &[IndexedRecord]) -> Vec<u8> {
    let (mut bytes, mut offset, mut at) = (Vec::with_capacity(records.len() * 4), 0, 0_i64);
    for record in records {
        push_number(&mut bytes, record.offset - offset);
        let change = record.at.wrapping_sub(at);
        // A small negative number becomes a small positive one.
        push_number(&mut bytes, (change.wrapping_shl(1) ^ (change >> 63)).cast_unsigned());
        (offset, at) = (record.offset, record.at);
    }
    bytes
}

/// Decodes the records of a block; `None` if the bytes are damaged.
pub(super) fn decode_records(mut bytes: &[u8]) -> Option<Vec<IndexedRecord>> {
    let (mut records, mut offset, mut at) = (Vec::new(), 0_u64, 0_i64);
    while !bytes.is_empty() {
        offset = offset.checked_add(take_number(&mut bytes)?)?;
        let change = take_number(&mut bytes)?;
        let change = (change >> 1).cast_signed() ^ -((change & 1).cast_signed());
        at = at.wrapping_add(change);
        records.push(IndexedRecord { offset, at });
    }
    Some(records)
}

fn encode_numbers(numbers: &[u16]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::with_capacity(numbers.len()), 0);
    for number in numbers {
        push_number(&mut bytes, u64::from(number - last));
        last = *number;
    }
    bytes
}

/// Adds the numbers of records to `numbers`. Returns `None` if the bytes are damaged.
pub(super) fn decode_numbers(mut bytes: &[u8], numbers: &mut Vec<u16>) -> Option<()> {
    let mut last: u16 = 0;
    while !bytes.is_empty() {
        last = last.checked_add(u16::try_from(take_number(&mut bytes)?).ok()?)?;
        numbers.push(last);
    }
    Some(())
}

/// Adds a number in groups of seven bits. The highest bit of a byte tells that another one follows.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        bytes.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    bytes.push(low);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stored_and_read_again() {
        let records = [(0, 5), (300, 5), (301, 4), (1 << 40, i64::MAX), (1 << 41, i64::MIN)]
            .map(|(offset, at)| IndexedRecord { offset, at });
        assert_eq!(decode_records(&encode_records(&records)).unwrap(), records);
        let (numbers, mut found) = ([0, 1, 127, 300, 2047], Vec::new());
        decode_numbers(&encode_numbers(&numbers), &mut found).unwrap();
        assert_eq!(found, numbers);
    }

    #[test]
    fn damaged_numbers_are_noticed() {
        assert_eq!(decode_records(&[0x80]), None);
        assert_eq!(decode_records(&[0]), None);
        assert_eq!(decode_numbers(&[0xff; 3], &mut Vec::new()), None);
    }
}
