//! Removes deleted records from the index.

use rusqlite::TransactionBehavior;

use super::{
    IN_USE, Index, IndexError, IndexedJournal, RETENTION_WAIT, TEAM, find, schema, signed,
};
use crate::deleted_records::DeletedRange;
use crate::dir::Dir;
use crate::journal::Journal;
use crate::lock_mutex;

impl Index {
    /// Removes the deleted records of a journal from the index. If the index does not contain all of them, empties the index.
    pub(crate) fn forget(
        team: &Dir,
        name: &str,
        journal: &Journal,
        deleted: &DeletedRange,
    ) -> Result<(), IndexError> {
        let mut index = Self::open(team, RETENTION_WAIT, lock_mutex(&IN_USE))?;
        let IndexedJournal { id, upto, .. } = match find(&index.db, name, journal)? {
            Some(indexed) => indexed,
            // The index will be built from the records that remain.
            None => return Ok(()),
        };
        if upto.offset < deleted.upto {
            schema::reset(&index.db)?;
            return Ok(());
        }
        let transaction = index.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for table in ["message", "shown", "unread", "topic", "request"] {
            let sql = format!("DELETE FROM {table} WHERE source = ?1 AND offset < ?2");
            transaction.execute(&sql, (id, signed(deleted.upto)))?;
        }
        if name == TEAM {
            // Requests before this time count as settled.
            let before = deleted.before.as_millisecond();
            transaction.execute("DELETE FROM settled WHERE at < ?1", [before])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
