//! An append-only file with one record per line.
//!
//! A record is written by one `write` to a file opened with `O_APPEND`, so writers need no lock. A
//! record begins and ends with a line break. If a writer runs out of disk space, its partial record
//! is therefore a separate line that does not parse, and the next record is on a new line.
//!
//! A journal never becomes shorter, and its records never move. Deleted records are zeros, which use no space on the disk.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, OFlags};
use rustix::io::Errno;

use super::dir::{Dir, Fsync, identity_of, io_error};
use super::hole;
use brigade_core::event::{Record, UncheckedRecord};
use brigade_core::hash::Fnv;
use brigade_core::store::StoreError;

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    fd: OwnedFd,
    path: PathBuf,
    is_writable: bool,
    /// Whether this process has made the journal longer than a multiple of [`STEP`] since the last check.
    has_passed_step: AtomicBool,
}

/// The records between some position and the end of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalTail {
    /// Where the records begin, with the hash of the preceding bytes.
    pub(crate) start: JournalPosition,
    pub(crate) records: Vec<Record>,
    /// The end of the last complete line.
    pub(crate) end: JournalPosition,
}

/// A position in a journal, with a hash of the bytes before it. After power loss, the end of a
/// journal may be missing, and new records may have been written at the same offset. The hash
/// detects such a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalPosition {
    pub(crate) offset: u64,
    pub(crate) anchor: u64,
}

/// How many bytes before a position are hashed: enough to include a message id.
pub(crate) const ANCHOR_LEN: usize = 128;
/// A search has to read the end of a journal that is not indexed yet. A process that makes a journal longer than a multiple of
/// this number of bytes brings the index up to date.
pub(crate) const STEP: u64 = 128 << 10;
/// How many bytes to read first. Most readers want only the newest records.
const FIRST_PIECE: usize = 4096;
/// How many bytes to read at once in a long journal.
const PIECE: usize = 256 << 10;

impl Default for JournalPosition {
    fn default() -> Self {
        Self { offset: 0, anchor: anchor(b"") }
    }
}

/// Returns the names of the journals in a folder, in no particular order.
pub(crate) fn names(folder: &Dir) -> Result<Vec<String>, StoreError> {
    Ok(folder.names()?.into_iter().filter(|name| name.ends_with(".jsonl")).collect())
}

fn anchor(before: &[u8]) -> u64 {
    let start = before.len().saturating_sub(ANCHOR_LEN);
    Fnv::default().bytes(before.get(start..).unwrap_or_default()).finish()
}

impl Journal {
    /// Opens a journal, creating it if needed. On a read-only file system, the journal can be read
    /// but not appended to.
    pub(crate) fn open(dir: &Dir, name: &str) -> Result<Self, StoreError> {
        let fd = dir.private_file(name, OFlags::APPEND)?;
        let flags = fs::fcntl_getfl(&fd).map_err(|error| dir.io_error("open", name, error))?;
        let is_writable = flags.contains(OFlags::RDWR);
        let has_passed_step = AtomicBool::new(false);
        Ok(Self { fd, path: dir.path(name), is_writable, has_passed_step })
    }

    /// Appends records in one write. Returns the offset of the end of the last record.
    pub(crate) fn append(
        &self,
        records: &[UncheckedRecord],
        sync: Fsync,
    ) -> Result<u64, StoreError> {
        let mut lines = Vec::with_capacity(1024);
        for record in records {
            lines.push(b'\n');
            // Records are plain data, so serialization cannot fail.
            let _cannot_fail = serde_json::to_writer(&mut lines, record);
            lines.push(b'\n');
        }
        let io_error = |doing| move |error| io_error(doing, self.path.clone(), error);
        if !self.is_writable {
            return Err(io_error("write")(Errno::ROFS));
        }
        match rustix::io::write(&self.fd, &lines) {
            Ok(written) if written == lines.len() => {}
            // A short write means that the disk is full. Readers ignore the partial record.
            Ok(_) => return Err(io_error("write")(Errno::NOSPC)),
            Err(error) => return Err(io_error("write")(error)),
        }
        if sync == Fsync::Yes {
            fs::fdatasync(&self.fd).map_err(io_error("sync"))?;
        }
        // After an append, the file offset is at the end of the appended records.
        let end = fs::tell(&self.fd).map_err(io_error("stat"))?;
        if end / STEP != end.saturating_sub(lines.len() as u64) / STEP {
            self.has_passed_step.store(true, Ordering::Relaxed);
        }
        Ok(end)
    }

    /// Returns whether this process has made the journal longer than a multiple of [`STEP`] since the last call.
    pub(crate) fn has_passed_step(&self) -> bool {
        self.has_passed_step.swap(false, Ordering::Relaxed)
    }

    /// Returns the records from `start` on, like [`Journal::scan`].
    pub(crate) fn read_from(&self, start: u64) -> Result<JournalTail, StoreError> {
        let mut records = Vec::new();
        let end = self.scan(start, |_, record| {
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(JournalTail { start: self.position(start)?, records, end })
    }

    /// Calls `visit` with each record from `start` on and the offset of its line, until `visit` breaks. Returns the end of the
    /// last line that was read. Reads the file in pieces. Lines that do not parse (torn, or from a later version) are
    /// skipped. A line without a line break at its end is incomplete and is not read yet.
    pub(crate) fn scan(
        &self,
        start: u64,
        mut visit: impl FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<JournalPosition, StoreError> {
        self.scan_lines(start, |offset, record| match record {
            Some(record) => visit(offset, record),
            None => ControlFlow::Continue(()),
        })
    }

    /// Like [`Journal::scan`], but also calls `visit` with each line that does not parse, without a record.
    pub(crate) fn scan_lines(
        &self,
        start: u64,
        mut visit: impl FnMut(u64, Option<Record>) -> ControlFlow<()>,
    ) -> Result<JournalPosition, StoreError> {
        self.scan_bytes(start, |offset, line| visit(offset, self.parse(line)))
    }

    /// Returns the records whose lines are `wanted`. Does not parse the other lines.
    pub(crate) fn read_wanted(
        &self,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        self.scan_bytes(0, |_, line| {
            if wanted(line) {
                records.extend(self.parse(line));
            }
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// Like [`Journal::scan`], but calls `visit` with the bytes of each line.
    fn scan_bytes(
        &self,
        start: u64,
        mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<JournalPosition, StoreError> {
        let io_error = |error| io_error("read", self.path.clone(), error);
        let mut bytes: Vec<u8> = Vec::with_capacity(FIRST_PIECE);
        // Where the bytes begin in the file. They begin with a complete line.
        let mut base = start;
        loop {
            let capacity = bytes.spare_capacity_mut().len();
            let position = base + bytes.len() as u64;
            let spare = rustix::buffer::spare_capacity(&mut bytes);
            // A read from a regular file returns less than requested only at the end of the file.
            let is_end = rustix::io::pread(&self.fd, spare, position).map_err(io_error)? < capacity;
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
            let mut done = 0;
            while let Some(len) = memchr::memchr(b'\n', bytes.get(done..whole).unwrap_or_default())
            {
                let line = hole::without_zeros(bytes.get(done..done + len).unwrap_or_default());
                let offset = base + done as u64;
                done += len + 1;
                if !line.is_empty() && visit(offset, line).is_break() {
                    return self.position(base + done as u64);
                }
            }
            base += done as u64;
            bytes.drain(..done);
            if let Some(zero) = memchr::memchr(0, &bytes) {
                let after = hole::first_byte(bytes.get(zero..).unwrap_or_default());
                base += zero as u64 + after.unwrap_or((bytes.len() - zero) as u64);
                bytes.clear();
                if after.is_none() && !is_end {
                    base = self.end_of_hole(base)?;
                }
                if !is_end {
                    continue;
                }
            }
            if is_end {
                return self.position(base);
            }
            // Use larger pieces for a long journal, and for a line that is longer than a piece.
            let wanted = PIECE.max(bytes.len() * 2);
            bytes.reserve(wanted.saturating_sub(bytes.len()));
        }
    }

    /// Returns the record whose line begins at this offset; `None` if there is none.
    pub(crate) fn record_at(&self, offset: u64) -> Result<Option<Record>, StoreError> {
        let mut found = None;
        self.scan(offset, |at, record| {
            found = Some(record).filter(|_| at == offset);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Returns the position with this offset. If the journal is shorter, its hash differs from that of the same offset in a
    /// longer journal.
    pub(crate) fn position(&self, offset: u64) -> Result<JournalPosition, StoreError> {
        let first = offset.saturating_sub(ANCHOR_LEN as u64);
        let wanted = usize::try_from(offset - first).unwrap_or_default();
        let mut before = [0; ANCHOR_LEN];
        let before = before.get_mut(..wanted).unwrap_or_default();
        let read = rustix::io::pread(&self.fd, &mut *before, first)
            .map_err(|error| io_error("read", self.path.clone(), error))?;
        Ok(JournalPosition { offset, anchor: anchor(before.get(..read).unwrap_or_default()) })
    }

    /// Returns where the zeros at this offset end, or an offset before that.
    fn end_of_hole(&self, offset: u64) -> Result<u64, StoreError> {
        let io_error = |error| io_error("read", self.path.clone(), error);
        // Looking for the end moves the offset of the open file, which `append` uses. So open the file once more.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(other) = fs::open(&self.path, flags, fs::Mode::empty()) else { return Ok(offset) };
        let is_same =
            identity_of(&other).map_err(io_error)? == identity_of(&self.fd).map_err(io_error)?;
        if is_same { hole::end(other, offset).map_err(io_error) } else { Ok(offset) }
    }

    /// Replaces these bytes with zeros, and gives their space back to the file system.
    pub(crate) fn punch(&self, from: u64, upto: u64) -> Result<(), StoreError> {
        hole::punch(&self.fd, from, upto)
            .map_err(|error| io_error("delete records from", self.path.clone(), error))
    }

    /// Returns whether the byte before this offset is there and was not deleted.
    pub(crate) fn has_byte_before(&self, offset: u64) -> Result<bool, StoreError> {
        let Some(before) = offset.checked_sub(1) else { return Ok(false) };
        let mut byte = [0];
        rustix::io::pread(&self.fd, &mut byte, before)
            .map_err(|error| io_error("read", self.path.clone(), error))?;
        Ok(byte != [0])
    }

    /// Returns how many bytes the journal uses on the disk.
    pub(crate) fn disk_bytes(&self) -> Result<u64, StoreError> {
        let stat = fs::fstat(&self.fd);
        let stat = stat.map_err(|error| io_error("stat", self.path.clone(), error))?;
        Ok(u64::try_from(stat.st_blocks).unwrap_or_default() * 512)
    }

    /// Returns a hash of this many bytes from an offset, at most [`ANCHOR_LEN`]; `None` if the journal is shorter.
    pub(crate) fn hash_at(&self, offset: u64, len: usize) -> Result<Option<u64>, StoreError> {
        let mut bytes = [0; ANCHOR_LEN];
        let Some(bytes) = bytes.get_mut(..len) else { return Ok(None) };
        let read = rustix::io::pread(&self.fd, &mut *bytes, offset)
            .map_err(|error| io_error("read", self.path.clone(), error))?;
        Ok((read == len && self.len()? >= offset).then(|| Fnv::default().bytes(bytes).finish()))
    }

    fn parse(&self, line: &[u8]) -> Option<Record> {
        match serde_json::from_slice::<UncheckedRecord>(line) {
            Ok(record) => Some(record.from_local_file()),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "skipping a journal line that is not a record");
                None
            }
        }
    }

    /// Waits until the disk has written the records.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        fs::fdatasync(&self.fd).map_err(|error| io_error("sync", self.path.clone(), error))
    }

    /// Returns whether records can be appended.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns the last records, from at most this many bytes.
    pub(crate) fn last_records(&self, bytes: u64) -> Result<Vec<Record>, StoreError> {
        let start = self.line_after(self.len()?.saturating_sub(bytes))?;
        Ok(self.read_from(start)?.records)
    }

    /// Returns where the first line at or after this offset begins.
    pub(crate) fn line_after(&self, offset: u64) -> Result<u64, StoreError> {
        // If a line begins at the offset, the byte before ends another line.
        let Some(mut start) = offset.checked_sub(1) else { return Ok(0) };
        let mut bytes = [0; FIRST_PIECE];
        loop {
            let read = rustix::io::pread(&self.fd, &mut bytes, start)
                .map_err(|error| io_error("read", self.path.clone(), error))?;
            let piece = bytes.get(..read).unwrap_or_default();
            match memchr::memchr2(b'\n', 0, piece) {
                // Zeros are deleted records, and a line begins after them.
                Some(at) => return Ok(start + at as u64 + 1),
                None if read < bytes.len() => return Ok(start + read as u64),
                None => start += read as u64,
            }
        }
    }

    /// Returns the current length of the journal.
    pub(crate) fn len(&self) -> Result<u64, StoreError> {
        let stat = fs::fstat(&self.fd);
        let stat = stat.map_err(|error| io_error("stat", self.path.clone(), error))?;
        Ok(u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Returns whether the file still exists. Records written to a deleted file are lost.
    pub(crate) fn exists(&self) -> bool {
        fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink > 0)
    }
}
