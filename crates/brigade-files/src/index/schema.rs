//! The tables of the index, and how its file is opened.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::OFlags;

use super::IndexError;
use crate::dir::{Dir, identity};
use crate::layout::INDEX;

/// The version of the tables. An index with another version is built again.
const VERSION: i64 = 1;

/// Memory for pages of the index, in KiB.
const CACHE_KIB: i64 = 512;

/// `source` is a journal: `upto` is the offset up to which it is indexed, `requests` the number of requests up to there. The other
/// tables lead to the offset of a record. Times are in milliseconds.
const TABLES: &str = "
    CREATE TABLE source (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        upto INTEGER NOT NULL, anchor INTEGER NOT NULL, requests INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE message (
        source INTEGER NOT NULL, key INTEGER NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (source, key, offset)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE shown (
        source INTEGER NOT NULL, key INTEGER NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (source, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE unread (
        source INTEGER NOT NULL, key INTEGER NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (source, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE topic (
        source INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (source, kind, id, offset)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE request (
        source INTEGER NOT NULL, position INTEGER NOT NULL, id TEXT NOT NULL, sender TEXT NOT NULL,
        at INTEGER NOT NULL, team INTEGER NOT NULL, offset INTEGER NOT NULL, open INTEGER NOT NULL,
        PRIMARY KEY (source, position)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX request_id ON request (source, id);
    CREATE INDEX request_team ON request (source, team, position);
    CREATE INDEX request_open ON request (source, position) WHERE open = 1;
    CREATE TABLE answered (
        member TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (member, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE settled (
        asked TEXT NOT NULL, asker TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (asked, asker, id)
    ) STRICT, WITHOUT ROWID;
";

/// Empties all tables.
pub(super) const CLEAR: &str = "
    DELETE FROM source; DELETE FROM message; DELETE FROM shown; DELETE FROM unread; DELETE FROM topic;
    DELETE FROM request; DELETE FROM answered; DELETE FROM settled;
";

/// Opens the index in this folder, creating it if needed. Waits this long if another process uses it. Empties and creates it again if it is damaged or of another version.
pub(super) fn open(dir: &Dir, wait: Duration) -> Result<Connection, IndexError> {
    let db = connect(dir, wait)?;
    match prepare(&db) {
        Ok(true) => return Ok(db),
        Ok(false) => {}
        Err(error) if is_damaged(&error) => {
            tracing::warn!(path = %dir.path(INDEX).display(), %error, "building a damaged index again");
        }
        Err(error) => return Err(error.into()),
    }
    reset(&db)?;
    if prepare(&db)? { Ok(db) } else { Err(IndexError::Version) }
}

/// Empties a damaged index. Deleting its file would not be safe, because another process may be writing to it.
pub(super) fn reset(db: &Connection) -> Result<(), rusqlite::Error> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = db.execute_batch("VACUUM");
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied
}

/// Returns whether the error means that the file is not a usable index.
pub(super) fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::SchemaChanged)
    ) || matches!(error, rusqlite::Error::SqliteFailure(_, Some(text)) if text.contains("no such"))
}

/// Opens the file of the index.
fn connect(dir: &Dir, wait: Duration) -> Result<Connection, IndexError> {
    // Only the user may read the file. SQLite gives its other file the same rights.
    drop(dir.private_file(INDEX, OFlags::empty())?);
    // SQLite can refuse symbolic links only in the whole path, so resolve those above the folder.
    let folder = std::fs::canonicalize(dir.dir_path()).map_err(|_| IndexError::Moved)?;
    if identity(&folder) != identity(dir.dir_path()) {
        return Err(IndexError::Moved);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(folder.join(INDEX), flags)?;
    db.busy_timeout(wait)?;
    Ok(db)
}

/// Creates the tables if they are missing. Returns whether the index has this version.
fn prepare(db: &Connection) -> Result<bool, rusqlite::Error> {
    let version = || db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    db.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Most processes open the index once. Each of them would have to read SQLite's write-ahead log, or write it back.
    db.pragma_update(None, "journal_mode", "TRUNCATE")?;
    if version()? == 0 {
        db.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have created the tables meanwhile.
        if version()? == 0 {
            db.execute_batch(TABLES)?;
            db.pragma_update(None, "user_version", VERSION)?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(version()? == VERSION)
}
