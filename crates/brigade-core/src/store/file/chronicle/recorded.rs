//! The chronicle of a file of records, as `brigade log --json` writes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FileType, Mode, OFlags, fstat};
use thiserror::Error;
use tokio::sync::mpsc;

use super::place::JournalSource;
use super::round::{JournalRange, MergeRound};
use super::{JournalLookup, spawn_reader};
use crate::chronicle::{BATCHES, Feed, Library};

/// What the first line of a team's export has.
const EXPORT_PREFIX: &[u8] = b"{\"brigade_team\":";

/// Why a file has no chronicle.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// The operating system said no.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It cannot be read at any place.
    #[error("{path} is not a regular file; write the records to one first")]
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// There is nothing in it.
    #[error("{path} is empty; `brigade log --json` writes what is wanted")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It is a team, not its journal.
    #[error("{path} is the export of a team; `brigade log --json` writes what is wanted")]
    Export {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{path} has no record in it; `brigade log --json` writes what is wanted")]
    NoRecord {
        /// The file.
        path: PathBuf,
    },
}

/// The records of a file, in its order, as it is now. Lines that are no records are passed over.
pub fn of_file(path: &Path) -> Result<(Feed, Library), RecordedError> {
    let io_error = |error: io::Error| RecordedError::Io { path: path.to_owned(), source: error };
    // A pipe without a writer would keep us waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| io_error(error.into()))?;
    let stat = fstat(&fd).map_err(|error| io_error(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(RecordedError::NotAFile { path: path.to_owned() });
    }
    let upto = u64::try_from(stat.st_size).unwrap_or_default();
    if upto == 0 {
        return Err(RecordedError::Empty { path: path.to_owned() });
    }
    let source = Arc::new(JournalSource::open(fd, path.to_owned()));
    let lookup = Arc::<JournalLookup>::default();
    let no_record = || RecordedError::NoRecord { path: path.to_owned() };
    let index = lookup.add(Arc::clone(&source)).ok_or_else(no_record)?;
    let round = || {
        let source = Arc::clone(&source);
        MergeRound::new(vec![JournalRange { source, index, from: 0, upto }])
    };
    if source.begins_with(EXPORT_PREFIX) {
        return Err(RecordedError::Export { path: path.to_owned() });
    }
    if !round().has_record() {
        return Err(no_record());
    }
    let skipped = Arc::<AtomicU64>::default();
    let (sender, batches) = mpsc::channel(BATCHES);
    let feed = Feed::of(batches, Arc::clone(&skipped), ());
    let round = round();
    spawn_reader(move || drop(round.send_all(&sender, &skipped))).map_err(io_error)?;
    Ok((feed, lookup))
}
