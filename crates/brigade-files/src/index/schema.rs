//! The tables of the index.

use crate::layout::INDEX;
use crate::sqlite_file::DatabaseFormat;

/// The format of the index.
pub(super) const FORMAT: DatabaseFormat =
    DatabaseFormat { file: INDEX, version: 1, tables: TABLES, cache_kib: 512 };

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
