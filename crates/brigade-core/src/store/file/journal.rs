//! A file of records, one on a line, that only ever grows.
//!
//! A record is written by one `write` to a file opened for appending, so writers need no lock. It
//! begins and ends with a line break: what a writer that ran out of disk left of a record is a line
//! by itself that does not parse, and the next record is not glued to it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{self, OFlags};
use rustix::io::Errno;

use super::dir::{Dir, Fsync, io_error};
use crate::event::Record;
use crate::hash::Fnv;
use crate::store::StoreError;

/// A journal, open.
#[derive(Debug)]
pub(crate) struct Journal {
    fd: OwnedFd,
    path: PathBuf,
}

/// Records of a journal from some place on.
#[derive(Debug, Default)]
pub(crate) struct JournalTail {
    /// Where they begin, with what stands before them.
    pub(crate) start: JournalPosition,
    pub(crate) records: Vec<Record>,
    /// The end of the last whole line.
    pub(crate) end: JournalPosition,
}

/// A place in a journal, and a hash of what stands right before it. After a power cut the end of a
/// journal may be missing and other records have come to stand there; the hash tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalPosition {
    pub(crate) offset: u64,
    pub(crate) anchor: u64,
}

/// How much of the journal before a place is hashed: enough to hold a message's id.
const ANCHOR_LEN: usize = 128;

impl Default for JournalPosition {
    fn default() -> Self {
        Self { offset: 0, anchor: anchor(b"") }
    }
}

fn anchor(before: &[u8]) -> u64 {
    let start = before.len().saturating_sub(ANCHOR_LEN);
    Fnv::default().bytes(before.get(start..).unwrap_or_default()).finish()
}

impl Journal {
    /// Opens a journal, making it if need be.
    pub(crate) fn open(dir: &Dir, name: &str) -> Result<Self, StoreError> {
        Ok(Self { fd: dir.private_file(name, OFlags::APPEND)?, path: dir.path(name) })
    }

    /// Adds records in one piece, and gives the place behind them back: at least this much of the
    /// file has to be read to have read them.
    pub(crate) fn append(&self, records: &[Record], sync: Fsync) -> Result<u64, StoreError> {
        let mut lines = Vec::with_capacity(1024);
        for record in records {
            lines.push(b'\n');
            // Records are plain data; this cannot fail.
            let _cannot_fail = serde_json::to_writer(&mut lines, record);
            lines.push(b'\n');
        }
        let io_error = |doing| move |error| io_error(doing, self.path.clone(), error);
        match rustix::io::write(&self.fd, &lines) {
            Ok(written) if written == lines.len() => {}
            // A piece of a record counts for nothing, and the disk is full.
            Ok(_) => return Err(io_error("write")(Errno::NOSPC)),
            Err(error) => return Err(io_error("write")(error)),
        }
        if sync == Fsync::Yes {
            fs::fdatasync(&self.fd).map_err(io_error("sync"))?;
        }
        // Appending moves this descriptor's place to the end of what it wrote.
        fs::tell(&self.fd).map_err(io_error("look at"))
    }

    /// The records from `start` on. A line that is no record, torn or of a later version, is passed
    /// over; one without an end is not there yet.
    pub(crate) fn read_from(&self, start: u64) -> Result<JournalTail, StoreError> {
        let io_error = |error| io_error("read", self.path.clone(), error);
        let first = start.saturating_sub(ANCHOR_LEN as u64);
        let mut bytes: Vec<u8> = Vec::with_capacity(4096);
        loop {
            if bytes.spare_capacity_mut().len() < 4096 {
                bytes.reserve(bytes.len().max(4096));
            }
            let position = first + bytes.len() as u64;
            let capacity = bytes.spare_capacity_mut().len();
            let spare = rustix::buffer::spare_capacity(&mut bytes);
            // A file gives less than was asked for only at its end.
            if rustix::io::pread(&self.fd, spare, position).map_err(io_error)? < capacity {
                break;
            }
        }
        let before = usize::try_from(start - first).unwrap_or_default().min(bytes.len());
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let whole = whole.max(before);
        let lines = bytes.get(before..whole).unwrap_or_default().split(|&byte| byte == b'\n');
        let records = lines
            .filter(|line| !line.is_empty())
            .filter_map(|line| match serde_json::from_slice(line) {
                Ok(record) => Some(record),
                Err(error) => {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "a line of the journal is no record");
                    None
                }
            })
            .collect();
        let position = |end: usize| JournalPosition {
            offset: first + end as u64,
            anchor: anchor(bytes.get(..end).unwrap_or_default()),
        };
        Ok(JournalTail { start: position(before), records, end: position(whole) })
    }

    /// How long the journal is now.
    pub(crate) fn len(&self) -> Result<u64, StoreError> {
        let stat = fs::fstat(&self.fd);
        let stat = stat.map_err(|error| io_error("look at", self.path.clone(), error))?;
        Ok(u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Whether the file is still where it was opened; what is written to one that is not is lost.
    pub(crate) fn exists(&self) -> bool {
        fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink > 0)
    }
}
