//! An index of the journals of a team, so that a search need not read them from the beginning.
//!
//! The index is a SQLite database in the folder of the team. It contains the positions of records. A reader reads the record at the
//! position and checks it. The index alone decides which requests need no look any more, because the journals contain their answer
//! or their withdrawal. It never contains a record before the journal does, also on the disk. If it is missing or damaged, or does
//! not fit the journals, it is built again.
//!
//! The index lags behind. A search reads the records after the indexed part of a journal itself. A process that makes a journal
//! longer than the next multiple of [`STEP`] also brings the index up to date, so that the part to read stays short. Sending a
//! message does not open the index otherwise.

mod add;
mod forget;
mod schema;
mod search;

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior};

use self::add::IndexWriter;
pub(crate) use self::add::mailbox;
pub(crate) use self::search::{
    IndexedRequest, answered as search_answered, mail as search_mail, requests as search_requests,
    unread as search_unread,
};
use crate::deleted_records::DeletedRange;
use crate::dir::Dir;
use crate::journal::{Journal, JournalPosition, STEP};
use crate::lock_mutex;
use crate::sqlite_file::{self, IndexError, signed};
use brigade_core::store::StoreError;

/// How long a process that deletes records waits for one that uses the index.
const RETENTION_WAIT: Duration = Duration::from_secs(5);

/// How long a process that adds to a journal waits for one that uses the index.
const WRITER_WAIT: Duration = Duration::from_millis(20);

/// How long a search waits for a process that changes the index.
const READER_WAIT: Duration = Duration::from_millis(100);

/// How many records a search adds in one transaction.
const BATCH: usize = 20_000;

/// How many records a process adds at most when it has made a journal longer: more than fit into a step.
const SMALL_BATCH: usize = 2_000;

/// The name in the index of the journal of the team.
pub(crate) const TEAM: &str = "team";

/// Held while this process has the index open. A process that closes a file loses its locks on that file, also those of other
/// threads, so only one thread may use an index.
static IN_USE: Mutex<()> = Mutex::new(());

/// An open index.
#[derive(Debug)]
pub(crate) struct Index {
    db: Connection,
    _in_use: MutexGuard<'static, ()>,
}

/// A journal in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexedJournal {
    pub(crate) id: i64,
    /// The end of the indexed part.
    pub(crate) upto: JournalPosition,
    /// The number of requests in the indexed part.
    pub(crate) requests: u64,
}

/// The result of a search in the index.
#[derive(Debug)]
pub(crate) struct IndexSearch<T> {
    /// The deleted records of the journal.
    pub(crate) deleted: DeletedRange,
    pub(crate) indexed: IndexedJournal,
    pub(crate) found: T,
}

impl IndexedJournal {
    /// Returns the state of a journal that is not in the index: only the deleted records count as indexed.
    pub(crate) fn unindexed(journal: &Journal, deleted: &DeletedRange) -> Result<Self, StoreError> {
        let upto = journal.position(deleted.upto)?;
        Ok(Self { id: 0, upto, requests: deleted.requests })
    }
}

impl Index {
    /// Opens the index of a team, creating it if needed. Waits this long if another process uses it.
    fn open(
        team: &Dir,
        wait: Duration,
        in_use: MutexGuard<'static, ()>,
    ) -> Result<Self, IndexError> {
        Ok(Self { db: schema::FORMAT.open(team, wait)?, _in_use: in_use })
    }

    /// Opens the index, brings it up to date if it lags far behind, and calls `search`. `search` gets the state of the index at
    /// one moment. If the journal is short or the index cannot be used, finds nothing and returns the state of a journal that is
    /// not in the index. The caller has to read the records after the indexed part itself.
    pub(crate) fn search<T: Default>(
        team: &Dir,
        name: &str,
        journal: &Journal,
        search: impl FnOnce(&Connection, IndexedJournal, &DeletedRange) -> Result<T, IndexError>,
    ) -> Result<IndexSearch<T>, StoreError> {
        if let Some(found) = Self::try_search(team, name, journal, search) {
            return Ok(found);
        }
        let deleted = DeletedRange::in_journal(team, name, journal)?;
        let indexed = IndexedJournal::unindexed(journal, &deleted)?;
        Ok(IndexSearch { deleted, indexed, found: T::default() })
    }

    fn try_search<T>(
        team: &Dir,
        name: &str,
        journal: &Journal,
        search: impl FnOnce(&Connection, IndexedJournal, &DeletedRange) -> Result<T, IndexError>,
    ) -> Option<IndexSearch<T>> {
        let len = journal.len().ok().filter(|len| *len > STEP)?;
        let found = Self::open(team, READER_WAIT, lock_mutex(&IN_USE)).and_then(|mut index| {
            let found = index.search_once(team, len, name, journal, search);
            if matches!(&found, Err(IndexError::Sqlite(error)) if sqlite_file::is_damaged(error)) {
                sqlite_file::reset(&index.db)?;
            }
            found
        });
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::warn!(team = %team.dir_path().display(), %error, "cannot use the index");
                None
            }
        }
    }

    fn search_once<T>(
        &mut self,
        team: &Dir,
        len: u64,
        name: &str,
        journal: &Journal,
        search: impl FnOnce(&Connection, IndexedJournal, &DeletedRange) -> Result<T, IndexError>,
    ) -> Result<IndexSearch<T>, IndexError> {
        let upto = match find(&self.db, name, journal)? {
            Some(indexed) => indexed.upto.offset,
            None => DeletedRange::in_journal(team, name, journal)?.upto,
        };
        if len.saturating_sub(upto) > STEP {
            self.catch_up(team, name, journal)?;
        }
        let transaction = self.db.transaction()?;
        let indexed = find(&transaction, name, journal)?;
        // Read this after the index. If the index lacks deleted records, the file lists them.
        let deleted = DeletedRange::in_journal(team, name, journal)?;
        let indexed = match indexed {
            Some(indexed) => indexed,
            None => IndexedJournal::unindexed(journal, &deleted)?,
        };
        let found = search(&transaction, indexed, &deleted)?;
        Ok(IndexSearch { deleted, indexed, found })
    }

    /// If this process has made the journal longer than the next step, adds the next records to the index.
    pub(crate) fn update_if_due(team: &Dir, name: &str, journal: &Journal) {
        if journal.has_passed_step() {
            Self::update(team, name, journal);
        }
    }

    /// Adds the next records to the index, unless another thread or process is using it.
    pub(crate) fn update(team: &Dir, name: &str, journal: &Journal) {
        // A process that sends a message must not wait for one that builds the index, and must not build a long one itself.
        let Ok(in_use) = IN_USE.try_lock() else { return };
        let updated = Self::open(team, WRITER_WAIT, in_use)
            .and_then(|mut index| index.add_batch(team, name, journal, SMALL_BATCH));
        if let Err(error) = updated {
            tracing::debug!(team = %team.dir_path().display(), %error, "cannot update the index");
        }
    }

    /// Adds the records that the index lacks.
    fn catch_up(&mut self, team: &Dir, name: &str, journal: &Journal) -> Result<(), IndexError> {
        while self.add_batch(team, name, journal, BATCH)? {}
        Ok(())
    }

    /// Adds some of the records that the index lacks. Returns whether there may be more.
    fn add_batch(
        &mut self,
        team: &Dir,
        name: &str,
        journal: &Journal,
        limit: usize,
    ) -> Result<bool, IndexError> {
        let begun = self.db.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = match begun {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                return Ok(false);
            }
            begun => begun?,
        };
        let found = find(&transaction, name, journal)?;
        // Read this while no other process can change the index.
        let deleted = DeletedRange::in_journal(team, name, journal)?;
        let indexed = match found {
            Some(indexed) => indexed,
            None => insert(&transaction, name, IndexedJournal::unindexed(journal, &deleted)?)?,
        };
        let mut writer = IndexWriter::new(&transaction, name, indexed, deleted)?;
        let mut added = 0;
        let mut failed = None;
        let end = journal.scan(indexed.upto.offset, |offset, record| {
            added += 1;
            match writer.add(offset, &record) {
                Ok(()) if added < limit => ControlFlow::Continue(()),
                Ok(()) => ControlFlow::Break(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        let requests = writer.requests();
        drop(writer);
        if let Some(error) = failed {
            return Err(error);
        }
        if end != indexed.upto {
            transaction.execute(
                "UPDATE source SET upto = ?2, anchor = ?3, requests = ?4 WHERE id = ?1",
                (indexed.id, signed(end.offset), signed(end.anchor), signed(requests)),
            )?;
            // After power loss, the index must not contain a record that the journal has lost.
            journal.sync()?;
            transaction.commit()?;
        }
        Ok(added >= limit)
    }
}

/// Returns the state of a journal in the index. Returns `None` if the index lacks the journal, or was made from other content: after
/// power loss, the end of the journal may be missing.
fn find(
    db: &Connection,
    name: &str,
    journal: &Journal,
) -> Result<Option<IndexedJournal>, IndexError> {
    let mut query = db.prepare("SELECT id, upto, anchor, requests FROM source WHERE name = ?1")?;
    let found = query
        .query_row([name], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let upto = JournalPosition { offset: number(1)?, anchor: number(2)? };
            Ok(IndexedJournal { id: row.get(0)?, upto, requests: number(3)? })
        })
        .optional()?;
    let Some(found) = found else { return Ok(None) };
    let is_same = journal.position(found.upto.offset)? == found.upto;
    Ok(is_same.then_some(found))
}

/// Adds a journal to the index. If the index has it already, that entry was made from other content: then all journals are indexed
/// again.
fn insert(
    transaction: &Transaction<'_>,
    name: &str,
    start: IndexedJournal,
) -> Result<IndexedJournal, IndexError> {
    let exists: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM source WHERE name = ?1)",
        [name],
        |row| row.get(0),
    )?;
    if exists {
        tracing::warn!(journal = name, "the index does not fit the journal; building it again");
        transaction.execute_batch(schema::CLEAR)?;
    }
    transaction.execute(
        "INSERT INTO source (name, upto, anchor, requests) VALUES (?1, ?2, ?3, ?4)",
        (name, signed(start.upto.offset), signed(start.upto.anchor), signed(start.requests)),
    )?;
    Ok(IndexedJournal { id: transaction.last_insert_rowid(), ..start })
}
