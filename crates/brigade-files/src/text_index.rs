//! An index of the words in the journals of a team, so that a search for a text need not read all records.
//!
//! The index is a SQLite database in the folder of the team. It divides each journal into blocks of records. For each word in a
//! block it contains the numbers of the records with that word. A search goes through the blocks, newest first, looks up the words,
//! reads the records with all of them from the journal, and checks them. So the index never decides what a search finds; it only
//! leaves out records that do not contain the words. A rare word costs one look in each block; for a frequent word, the search ends
//! after the first blocks.
//!
//! The index lags behind. A search reads up to [`TAIL`] bytes at the ends of the journals itself. If there is more, it first
//! adds the records to the index. If the index is missing, damaged or of another version, or does not fit a journal, it is built again.

mod block;
mod build;
mod find;
mod forget;
mod schema;

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};

use crate::dir::Dir;
use crate::journal::{Journal, JournalPosition};
use crate::lock_mutex;
use crate::searched_journals::SearchedJournals;
use crate::sqlite_file::{self, IndexError};
use brigade_core::store::{ReportIndexing, SearchQuery, SearchResults, StoreError};

/// How many bytes at the ends of all journals a search reads itself. Short in tests, so that a short history has an index.
pub(crate) const TAIL: u64 = if cfg!(test) { 2 << 10 } else { 256 << 10 };

/// How long to wait for a process that changes the index. Building a long index takes many short transactions.
const WAIT: Duration = Duration::from_secs(10);

/// Held while this process has the index open. A process that closes a file loses its locks on that file, also those of other
/// threads, so only one thread may use an index.
static IN_USE: Mutex<()> = Mutex::new(());

/// An open index of texts.
pub(crate) struct TextIndex {
    db: Connection,
    _in_use: MutexGuard<'static, ()>,
}

/// A journal in the index.
#[derive(Clone, Copy, Debug)]
struct IndexedTexts {
    id: i64,
    /// The end of the indexed part.
    upto: JournalPosition,
}

/// How far each journal is indexed.
struct Survey {
    /// The journals, in the order of their names. `None` if the index lacks a journal, or was made from other content.
    journals: Vec<Option<IndexedTexts>>,
    /// The number of bytes at the ends of the journals that are not indexed.
    tail: u64,
    /// Whether the index contains a journal that was deleted or changed.
    is_wrong: bool,
}

impl TextIndex {
    fn open(team: &Dir) -> Result<Self, IndexError> {
        let in_use = lock_mutex(&IN_USE);
        let db = schema::FORMAT.open(team, WAIT)?;
        // SQLite overwrites deleted rows, so that the file of the index keeps no word of a deleted record.
        db.pragma_update(None, "secure_delete", true)?;
        Ok(Self { db, _in_use: in_use })
    }

    /// Brings the index up to date if it lags far behind, and searches. If the index is damaged, empties it and fails; the next search
    /// builds it again.
    pub(crate) fn search(
        team: &Dir,
        journals: &SearchedJournals<'_>,
        query: &SearchQuery,
        report: ReportIndexing<'_>,
    ) -> Result<SearchResults, IndexError> {
        let mut index = Self::open(team)?;
        let found = match index.try_search(team, journals, query, report) {
            // The index was damaged, or another process has changed a journal meanwhile. So build the index again.
            Err(error) if is_repairable(&error) => {
                tracing::warn!(team = %team.dir_path().display(), %error, "building the index of texts again");
                sqlite_file::reset(&index.db)?;
                drop(index);
                index = Self::open(team)?;
                index.try_search(team, journals, query, report)
            }
            found => found,
        };
        drop(index);
        found
    }

    fn try_search(
        &mut self,
        team: &Dir,
        journals: &SearchedJournals<'_>,
        query: &SearchQuery,
        report: ReportIndexing<'_>,
    ) -> Result<SearchResults, IndexError> {
        let survey = Survey::read(&self.db, journals)?;
        if survey.is_wrong || survey.tail > TAIL {
            self.catch_up(team, journals, survey.tail, report)?;
        }
        let transaction = self.db.transaction()?;
        let survey = Survey::read(&transaction, journals)?;
        if survey.is_wrong {
            return Err(IndexError::Mismatch);
        }
        find::find(&transaction, team, journals, &survey, query)
    }
}

fn is_repairable(error: &IndexError) -> bool {
    match error {
        IndexError::Sqlite(error) => sqlite_file::is_damaged(error),
        IndexError::Mismatch => true,
        _ => false,
    }
}

impl Survey {
    fn read(db: &Connection, journals: &SearchedJournals<'_>) -> Result<Self, IndexError> {
        let mut survey = Self { journals: Vec::new(), tail: 0, is_wrong: false };
        let mut indexed: i64 = 0;
        for name in &journals.names {
            let journal = journals.journal(name)?;
            let found = find_journal(db, name)?;
            indexed += i64::from(found.is_some());
            let fits = match found {
                Some(found) => fits(&found, &journal)?,
                None => true,
            };
            survey.is_wrong |= !fits;
            let found = found.filter(|_| fits);
            let upto = found.map_or(0, |found| found.upto.offset);
            survey.tail += journal.len()?.saturating_sub(upto);
            survey.journals.push(found);
        }
        let all: i64 = db.query_row("SELECT count(*) FROM journal", [], |row| row.get(0))?;
        survey.is_wrong |= all != indexed;
        Ok(survey)
    }
}

/// Returns the state of a journal in the index, if the index has it.
fn find_journal(db: &Connection, name: &str) -> Result<Option<IndexedTexts>, IndexError> {
    let mut select = db.prepare("SELECT id, upto, anchor FROM journal WHERE name = ?1")?;
    let found = select.query_row([name], |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let upto = JournalPosition { offset: number(1)?, anchor: number(2)? };
        Ok(IndexedTexts { id: row.get(0)?, upto })
    });
    Ok(found.optional()?)
}

/// Returns whether the index was made from this content. After power loss, the end of a journal may be missing.
fn fits(indexed: &IndexedTexts, journal: &Journal) -> Result<bool, StoreError> {
    Ok(journal.position(indexed.upto.offset)? == indexed.upto)
}
