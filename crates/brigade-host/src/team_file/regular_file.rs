//! Reads files that a repository may contain. A path may lead to a pipe or a device, or the file may be too large.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    /// The path leads to a folder, a pipe, a device or the like.
    NotAFile,
    /// The file is longer than the maximum.
    TooLong,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a regular file of at most `max` bytes. Never blocks on a pipe.
pub(super) fn read(path: &Path, max: u64) -> Result<Vec<u8>, ReadError> {
    // Opening a device can have an effect, so check the type before.
    if !fs::metadata(path)?.is_file() {
        return Err(ReadError::NotAFile);
    }
    // The path may have been replaced since, so do not block, and check the type of the opened file.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let length = metadata.len().min(max).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(ReadError::TooLong);
    }
    Ok(bytes)
}
