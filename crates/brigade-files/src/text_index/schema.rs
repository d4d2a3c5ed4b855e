//! The tables of the index of texts.

use crate::layout::SEARCH_INDEX;
use crate::sqlite_file::DatabaseFormat;

/// The format of the index. The cache is large enough for the changes of one transaction, so that other processes can read
/// until its end.
pub(super) const FORMAT: DatabaseFormat =
    DatabaseFormat { file: SEARCH_INDEX, version: 1, tables: TABLES, cache_kib: 32 << 10 };

/// `journal` is a journal, indexed up to the offset `upto`. `block` is a part of a journal, from `start` up to `upto`; its times are
/// in milliseconds, and `unreadable` is the number of lines that are not records. `block_record` lists the records of a block that
/// have a text, and `posting` those that contain a word.
const TABLES: &str = "
    CREATE TABLE journal (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, upto INTEGER NOT NULL, anchor INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE block (
        id INTEGER PRIMARY KEY, journal INTEGER NOT NULL, start INTEGER NOT NULL, upto INTEGER NOT NULL,
        first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, records INTEGER NOT NULL, unreadable INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX block_start ON block (journal, start);
    CREATE TABLE block_record (block INTEGER PRIMARY KEY, records BLOB NOT NULL) STRICT;
    CREATE TABLE posting (
        block INTEGER NOT NULL, word TEXT NOT NULL, records BLOB NOT NULL,
        PRIMARY KEY (block, word)
    ) STRICT, WITHOUT ROWID;
";
