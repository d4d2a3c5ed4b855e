//! Removes deleted records from the index of texts.

use rusqlite::TransactionBehavior;

use super::block::BlockRange;
use super::build::{read_block, remove_block, remove_journal};
use super::{TextIndex, find_journal, fits, is_repairable};
use crate::deleted_records::DeletedRange;
use crate::dir::Dir;
use crate::journal::Journal;
use crate::layout::SEARCH_INDEX;
use crate::sqlite_file::{IndexError, reset, signed};

/// How many blocks to remove in one transaction. Other processes can use the index in between.
const BLOCKS: usize = 16;

impl TextIndex {
    /// Removes the deleted records of a journal from the index, if there is one.
    pub(crate) fn forget(
        team: &Dir,
        name: &str,
        journal: &Journal,
        deleted: &DeletedRange,
    ) -> Result<(), IndexError> {
        if team.stamp(SEARCH_INDEX)?.is_none() {
            return Ok(());
        }
        loop {
            let mut index = Self::open(team)?;
            match index.forget_blocks(name, journal, deleted.upto) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // Emptying a damaged index also removes the records.
                Err(error) if is_repairable(&error) => return Ok(reset(&index.db)?),
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes some blocks with deleted records. Returns whether there may be more.
    fn forget_blocks(
        &mut self,
        name: &str,
        journal: &Journal,
        deleted: u64,
    ) -> Result<bool, IndexError> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(indexed) = find_journal(&transaction, name)? else { return Ok(false) };
        if !fits(&indexed, journal)? || indexed.upto.offset < deleted {
            remove_journal(&transaction, indexed.id)?;
            transaction.commit()?;
            return Ok(false);
        }
        let blocks: Vec<(i64, u64)> = {
            let mut select = transaction.prepare(
                "SELECT id, upto FROM block WHERE journal = ?1 AND start < ?2 ORDER BY start LIMIT ?3",
            )?;
            let values = (indexed.id, signed(deleted), signed(BLOCKS as u64));
            let rows = select.query_map(values, |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
            })?;
            rows.collect::<Result<_, _>>()?
        };
        for (id, upto) in &blocks {
            remove_block(&transaction, *id)?;
            if *upto > deleted {
                // The rest of the block stays.
                let (block, end) = read_block(journal, deleted, *upto)?;
                let range = BlockRange { journal: indexed.id, start: deleted, upto: end.offset };
                block.store(&transaction, range)?;
            }
        }
        transaction.commit()?;
        Ok(blocks.len() == BLOCKS)
    }
}
