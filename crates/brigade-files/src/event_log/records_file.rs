//! Streams the records of a file written by `brigade log --json`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FileType, Mode, OFlags, fstat};
use thiserror::Error;
use tokio::sync::mpsc;

use super::merge::MergeRound;
use super::source::{JournalRange, JournalSource};
use super::{JournalLookup, spawn_reader};
use brigade_core::store::event_log::{BATCHES, EventStream, RecordLookupHandle};

/// The first line of a team export begins with these bytes.
const EXPORT_PREFIX: &[u8] = b"{\"brigade_team\":";

/// Why a file of records cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordsFileError {
    /// The file could not be opened or read.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The path is not a regular file (for example a pipe), so it cannot be read at an offset.
    #[error("{path} is not a regular file; write the records to a file first")]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{path} is empty; expected the output of `brigade log --json`")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is a team export, not a journal.
    #[error("{path} is a team export; expected the output of `brigade log --json`")]
    Export {
        /// The file.
        path: PathBuf,
    },
    /// The file contains no records.
    #[error("{path} contains no records; expected the output of `brigade log --json`")]
    NoRecord {
        /// The file.
        path: PathBuf,
    },
}

/// Streams the records that a file contains now, in file order. Lines that are not records are
/// skipped.
pub fn stream_records_file(
    path: &Path,
) -> Result<(EventStream, RecordLookupHandle), RecordsFileError> {
    let io_error = |error: io::Error| RecordsFileError::Io { path: path.to_owned(), source: error };
    // Without `NONBLOCK`, opening a pipe that has no writer would block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| io_error(error.into()))?;
    let stat = fstat(&fd).map_err(|error| io_error(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(RecordsFileError::NotAFile { path: path.to_owned() });
    }
    let upto = u64::try_from(stat.st_size).unwrap_or_default();
    if upto == 0 {
        return Err(RecordsFileError::Empty { path: path.to_owned() });
    }
    let source = Arc::new(JournalSource::open(fd, path.to_owned()));
    let lookup = Arc::<JournalLookup>::default();
    let no_record = || RecordsFileError::NoRecord { path: path.to_owned() };
    let index = lookup.add(Arc::clone(&source)).ok_or_else(no_record)?;
    let round = || {
        let source = Arc::clone(&source);
        MergeRound::new(vec![JournalRange { source, index, from: 0, upto }])
    };
    if source.begins_with(EXPORT_PREFIX) {
        return Err(RecordsFileError::Export { path: path.to_owned() });
    }
    if !round().has_record() {
        return Err(no_record());
    }
    let skipped = Arc::<AtomicU64>::default();
    let (sender, batches) = mpsc::channel(BATCHES);
    let feed = EventStream::with_source(batches, Arc::clone(&skipped), ());
    let round = round();
    spawn_reader(move || drop(round.send_all(&sender, &skipped))).map_err(io_error)?;
    Ok((feed, lookup))
}
