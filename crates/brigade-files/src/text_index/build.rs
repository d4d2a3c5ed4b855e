//! Adds records to the index of texts.

use std::ops::ControlFlow;

use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior};

use super::block::{BLOCK_RECORDS, BlockBuilder, BlockRange};
use super::{IndexedTexts, TextIndex, find_journal, fits};
use crate::deleted_records::DeletedRange;
use crate::dir::Dir;
use crate::journal::{Journal, JournalPosition};
use crate::searched_journals::SearchedJournals;
use crate::sqlite_file::{IndexError, signed};
use brigade_core::store::{IndexingProgress, ReportIndexing};

/// How many blocks to add in one transaction. Other processes can use the index in between.
const BLOCKS: usize = 16;

/// How many bytes of a journal a block covers at most. A journal may have few texts.
const BLOCK_BYTES: u64 = 4 << 20;

impl TextIndex {
    /// Adds the records that the index lacks, and removes journals that do not exist any more. `total_bytes` is about how many bytes
    /// are missing.
    pub(super) fn catch_up(
        &mut self,
        team: &Dir,
        journals: &SearchedJournals<'_>,
        total_bytes: u64,
        report: ReportIndexing<'_>,
    ) -> Result<(), IndexError> {
        self.remove_missing(&journals.names)?;
        let mut progress = IndexingProgress { records: 0, bytes: 0, total_bytes };
        for name in &journals.names {
            let journal = journals.journal(name)?;
            while self.add_blocks(team, name, &journal, &mut progress)? {
                report(progress);
            }
        }
        report(progress);
        Ok(())
    }

    /// Adds some of the records of a journal that the index lacks. Returns whether there may be more.
    fn add_blocks(
        &mut self,
        team: &Dir,
        name: &str,
        journal: &Journal,
        progress: &mut IndexingProgress,
    ) -> Result<bool, IndexError> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = match find_journal(&transaction, name)? {
            Some(found) if !fits(&found, journal)? => {
                remove_journal(&transaction, found.id)?;
                None
            }
            found => found,
        };
        let indexed = match found {
            Some(indexed) => indexed,
            None => {
                let deleted = DeletedRange::in_journal(team, name, journal)?;
                insert_journal(&transaction, name, journal.position(deleted.upto)?)?
            }
        };
        let len = journal.len()?;
        if indexed.upto.offset >= len {
            return Ok(false);
        }
        let mut upto = join_last_blocks(&transaction, journal, indexed, len)?;
        let read_before = indexed.upto.offset - upto.offset;
        let start = upto;
        let mut is_end = false;
        for _ in 0..BLOCKS {
            let from = upto;
            let (block, end) = read_block(journal, from.offset, u64::MAX)?;
            is_end = end == from;
            if is_end {
                break;
            }
            progress.records += block.len() as u64;
            let range = BlockRange { journal: indexed.id, start: from.offset, upto: end.offset };
            block.store(&transaction, range)?;
            upto = end;
        }
        if upto != start || found.is_none() {
            transaction
                .prepare("UPDATE journal SET upto = ?2, anchor = ?3 WHERE id = ?1")?
                .execute((indexed.id, signed(upto.offset), signed(upto.anchor)))?;
            transaction.commit()?;
        }
        progress.bytes += (upto.offset - start.offset).saturating_sub(read_before);
        Ok(!is_end)
    }

    /// Removes the journals that the index contains and that are not among these.
    fn remove_missing(&mut self, names: &[String]) -> Result<(), IndexError> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let missing: Vec<i64> = {
            let mut select = transaction.prepare("SELECT id, name FROM journal")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
            let all: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
            all.into_iter().filter(|(_, name)| !names.contains(name)).map(|(id, _)| id).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        for id in missing {
            remove_journal(&transaction, id)?;
        }
        Ok(transaction.commit()?)
    }
}

/// Reads the records of a block that begins at this offset and ends before `limit`. Also returns where the block ends.
pub(super) fn read_block(
    journal: &Journal,
    from: u64,
    limit: u64,
) -> Result<(BlockBuilder, JournalPosition), IndexError> {
    let mut block = BlockBuilder::default();
    let mut is_past = false;
    let end = journal.scan_lines(from, |offset, record| {
        if offset >= limit {
            is_past = true;
            return ControlFlow::Break(());
        }
        match record {
            Some(record) => block.add(offset, &record),
            None => block.unreadable += 1,
        }
        if block.len() >= BLOCK_RECORDS || offset - from >= BLOCK_BYTES {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let end = if is_past { journal.position(limit)? } else { end };
    Ok((block, end))
}

/// Removes the last blocks of a journal if they are small compared with the part that is not indexed, so that there are not many
/// small blocks. Returns where the remaining blocks end.
fn join_last_blocks(
    transaction: &Transaction<'_>,
    journal: &Journal,
    indexed: IndexedTexts,
    len: u64,
) -> Result<JournalPosition, IndexError> {
    let mut upto = indexed.upto.offset;
    loop {
        let last = transaction
            .prepare(
                "SELECT id, start, records FROM block WHERE journal = ?1 ORDER BY start DESC LIMIT 1",
            )?
            .query_row([indexed.id], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
            .optional()?;
        let Some((id, start, records)) = last else { break };
        let (start, records) = (start.cast_unsigned(), usize::try_from(records).unwrap_or(0));
        let is_small = upto.saturating_sub(start) <= 2 * len.saturating_sub(upto);
        if records >= BLOCK_RECORDS || upto.saturating_sub(start) >= BLOCK_BYTES || !is_small {
            break;
        }
        remove_block(transaction, id)?;
        upto = start;
    }
    Ok(if upto == indexed.upto.offset { indexed.upto } else { journal.position(upto)? })
}

fn insert_journal(
    transaction: &Transaction<'_>,
    name: &str,
    upto: JournalPosition,
) -> Result<IndexedTexts, IndexError> {
    transaction.execute(
        "INSERT INTO journal (name, upto, anchor) VALUES (?1, ?2, ?3)",
        (name, signed(upto.offset), signed(upto.anchor)),
    )?;
    Ok(IndexedTexts { id: transaction.last_insert_rowid(), upto })
}

/// Removes a journal with all its blocks.
pub(super) fn remove_journal(transaction: &Transaction<'_>, id: i64) -> Result<(), IndexError> {
    for table in ["posting", "block_record"] {
        let sql =
            format!("DELETE FROM {table} WHERE block IN (SELECT id FROM block WHERE journal = ?1)");
        transaction.execute(&sql, [id])?;
    }
    transaction.execute("DELETE FROM block WHERE journal = ?1", [id])?;
    transaction.execute("DELETE FROM journal WHERE id = ?1", [id])?;
    Ok(())
}

/// Removes a block.
pub(super) fn remove_block(transaction: &Transaction<'_>, id: i64) -> Result<(), IndexError> {
    for sql in [
        "DELETE FROM posting WHERE block = ?1",
        "DELETE FROM block_record WHERE block = ?1",
        "DELETE FROM block WHERE id = ?1",
    ] {
        transaction.prepare(sql)?.execute([id])?;
    }
    Ok(())
}
