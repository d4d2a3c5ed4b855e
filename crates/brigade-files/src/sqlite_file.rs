//! Opens the SQLite databases in the folder of a team.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::OFlags;
use thiserror::Error;

use super::dir::{Dir, identity};
use brigade_core::store::StoreError;

/// An error in using an index. The caller then reads the journals instead.
#[derive(Debug, Error)]
pub(crate) enum IndexError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the folder of the team was moved")]
    Moved,
    #[error("another version of brigade uses the index")]
    Version,
    #[error("the index does not fit the journals")]
    Mismatch,
}

/// A database: its file, its tables, and how it is used.
#[derive(Debug)]
pub(crate) struct DatabaseFormat {
    /// The name of the file.
    pub(crate) file: &'static str,
    /// The version of the tables. A database with another version is emptied.
    pub(crate) version: i64,
    /// The statements that create the tables.
    pub(crate) tables: &'static str,
    /// Memory for its pages, in KiB.
    pub(crate) cache_kib: i64,
}

impl DatabaseFormat {
    /// Opens the database in this folder, creating it if needed. Waits this long if another process uses it. Empties and creates it
    /// again if it is damaged or of another version.
    pub(crate) fn open(&self, dir: &Dir, wait: Duration) -> Result<Connection, IndexError> {
        let db = self.connect(dir, wait)?;
        match self.prepare(&db) {
            Ok(true) => return Ok(db),
            Ok(false) => {}
            Err(error) if is_damaged(&error) => {
                let path = dir.path(self.file);
                tracing::warn!(path = %path.display(), %error, "building a damaged index again");
            }
            Err(error) => return Err(error.into()),
        }
        reset(&db)?;
        if self.prepare(&db)? { Ok(db) } else { Err(IndexError::Version) }
    }

    fn connect(&self, dir: &Dir, wait: Duration) -> Result<Connection, IndexError> {
        // Only the user may read the file. SQLite gives its other file the same rights.
        drop(dir.private_file(self.file, OFlags::empty())?);
        // SQLite can refuse symbolic links only in the whole path, so resolve those above the folder.
        let folder = std::fs::canonicalize(dir.dir_path()).map_err(|_| IndexError::Moved)?;
        if identity(&folder) != identity(dir.dir_path()) {
            return Err(IndexError::Moved);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let db = Connection::open_with_flags(folder.join(self.file), flags)?;
        db.busy_timeout(wait)?;
        Ok(db)
    }

    /// Creates the tables if they are missing. Returns whether the database has this version.
    fn prepare(&self, db: &Connection) -> Result<bool, rusqlite::Error> {
        let version = || db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        db.pragma_update(None, "cache_size", -self.cache_kib)?;
        // Most processes open the index once. Each of them would have to read SQLite's write-ahead log, or write it back.
        db.pragma_update(None, "journal_mode", "TRUNCATE")?;
        if version()? == 0 {
            db.execute_batch("BEGIN IMMEDIATE")?;
            // Another process may have created the tables meanwhile.
            if version()? == 0 {
                db.execute_batch(self.tables)?;
                db.pragma_update(None, "user_version", self.version)?;
            }
            db.execute_batch("COMMIT")?;
        }
        Ok(version()? == self.version)
    }
}

/// Empties a damaged database. Deleting its file would not be safe, because another process may be writing to it.
pub(crate) fn reset(db: &Connection) -> Result<(), rusqlite::Error> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = db.execute_batch("VACUUM");
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied
}

/// Returns whether the error means that the file is not a usable database.
pub(crate) fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::SchemaChanged)
    ) || matches!(error, rusqlite::Error::SqliteFailure(_, Some(text)) if text.contains("no such"))
}

/// SQLite stores signed numbers.
pub(crate) fn signed(number: u64) -> i64 {
    number.cast_signed()
}
