//! Removes deleted records from the index.

use rusqlite::{Transaction, TransactionBehavior};

use super::{IN_USE, Index, IndexedJournal, RETENTION_WAIT, find, schema};
use crate::deleted_records::DeletedRange;
use crate::dir::Dir;
use crate::journal::Journal;
use crate::lock_mutex;
use crate::sqlite_file::{IndexError, signed};

/// How many rows of a table to remove in one transaction. Other processes can use the index in between.
const ROWS: usize = 10_000;

/// The tables, each with the column that distinguishes the rows of a journal.
const ROWS_OF: [(&str, &str); 5] = [
    ("message", "key"),
    ("shown", "key"),
    ("unread", "key"),
    ("topic", "id"),
    ("request", "position"),
];

impl Index {
    /// Removes the deleted records of a journal from the index. If the index does not contain all of them, empties the index.
    pub(crate) fn forget(
        team: &Dir,
        name: &str,
        journal: &Journal,
        deleted: &DeletedRange,
    ) -> Result<(), IndexError> {
        for (table, column) in ROWS_OF {
            loop {
                let mut index = Self::open(team, RETENTION_WAIT, lock_mutex(&IN_USE))?;
                let behavior = TransactionBehavior::Immediate;
                let transaction = index.db.transaction_with_behavior(behavior)?;
                let Some(indexed) = find(&transaction, name, journal)? else { return Ok(()) };
                if indexed.upto.offset < deleted.upto {
                    transaction.execute_batch(schema::CLEAR)?;
                    transaction.commit()?;
                    return Ok(());
                }
                let removed = remove_rows(&transaction, (table, column), indexed, deleted)?;
                transaction.commit()?;
                if removed < ROWS {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Removes some rows of deleted records. Returns how many were found.
fn remove_rows(
    transaction: &Transaction<'_>,
    (table, column): (&str, &str),
    journal: IndexedJournal,
    deleted: &DeletedRange,
) -> Result<usize, IndexError> {
    let sql = format!(
        "DELETE FROM {table} WHERE source = ?1 AND offset < ?2 AND {column} IN
        (SELECT {column} FROM {table} WHERE source = ?1 AND offset < ?2 LIMIT {ROWS})"
    );
    Ok(transaction.execute(&sql, (journal.id, signed(deleted.upto)))?)
}
