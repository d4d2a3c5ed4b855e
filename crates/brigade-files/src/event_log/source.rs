//! Locates a journal and reads from it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dir::{Dir, FileStamp, io_error};
use crate::hole;
use crate::layout::MAX_FILE;
use crate::team_state::TeamStateDir;
use brigade_core::event::{Record, UncheckedRecord};
use brigade_core::hash::Fnv;
use brigade_core::store::StoreError;
use brigade_core::store::event_log::RecordRef;

/// Number of bytes to read when looking up one record. Most records are shorter.
const LOOKUP_BUFFER: usize = 4096;
/// How many bytes of the first line identify a journal.
const FIRST_LINE_MAX: usize = 512;

/// Returns the numbered folders that contain journals. In the first folder, only the team's own
/// journal counts; other files there are not journals.
pub(super) fn journal_folders(team_state: &TeamStateDir) -> impl Iterator<Item = (usize, &Dir)> {
    [&team_state.dir].into_iter().chain(team_state.member_journal_folders()).enumerate()
}

fn journal_folder(team_state: &TeamStateDir, number: usize) -> Option<&Dir> {
    journal_folders(team_state).nth(number).map(|(_, dir)| dir)
}

/// The location of a journal.
#[derive(Debug)]
pub(super) struct JournalSource {
    kind: SourceKind,
    /// Whether another file has replaced the journal.
    gone: AtomicBool,
}

#[derive(Debug)]
enum SourceKind {
    /// A file in a team's folder.
    InTeamDir { team_state: Arc<TeamStateDir>, folder: usize, name: String },
    /// A file that the user named.
    OpenFile { fd: Arc<OwnedFd>, path: PathBuf },
}

/// Identifies a journal by the length and hash of its first line, because the inode number of a
/// deleted file may be reused.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstLine {
    len: usize,
    hash: u64,
}

/// The number of a journal. The upper bits of a record position contain this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalIndex(u64);

/// How many bits of a record position hold the offset in the journal.
const OFFSET_BITS: u32 = 44;

impl JournalIndex {
    /// Returns the index for this journal number, or `None` if the number is too large.
    pub(super) fn new(number: usize) -> Option<Self> {
        let number = u64::try_from(number).ok().filter(|number| number >> (64 - OFFSET_BITS) == 0);
        number.map(|number| Self(number << OFFSET_BITS))
    }

    pub(super) fn spot(self, offset: u64) -> RecordRef {
        RecordRef(self.0 | offset & ((1 << OFFSET_BITS) - 1))
    }

    /// Splits a record position into journal number and offset.
    pub(super) fn split(spot: RecordRef) -> (usize, u64) {
        let number = usize::try_from(spot.0 >> OFFSET_BITS).unwrap_or(usize::MAX);
        (number, spot.0 & ((1 << OFFSET_BITS) - 1))
    }
}

/// A range of one journal. The records in this range will be sent.
#[derive(Debug)]
pub(super) struct JournalRange {
    pub(super) source: Arc<JournalSource>,
    pub(super) index: JournalIndex,
    pub(super) from: u64,
    pub(super) upto: u64,
}

impl JournalSource {
    pub(super) fn new(team_state: Arc<TeamStateDir>, folder: usize, name: String) -> Self {
        Self {
            kind: SourceKind::InTeamDir { team_state, folder, name },
            gone: AtomicBool::new(false),
        }
    }

    pub(super) fn open(fd: OwnedFd, path: PathBuf) -> Self {
        Self { kind: SourceKind::OpenFile { fd: Arc::new(fd), path }, gone: AtomicBool::new(false) }
    }

    pub(super) fn path(&self) -> PathBuf {
        match &self.kind {
            SourceKind::InTeamDir { team_state, folder, name } => {
                journal_folder(team_state, *folder).map(|dir| dir.path(name)).unwrap_or_default()
            }
            SourceKind::OpenFile { path, .. } => path.clone(),
        }
    }

    /// Opens the journal's current file, if it exists.
    pub(super) fn file(&self) -> Result<Option<Arc<OwnedFd>>, StoreError> {
        if self.gone.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match &self.kind {
            SourceKind::InTeamDir { team_state, folder, name } => {
                let Some(dir) = journal_folder(team_state, *folder) else { return Ok(None) };
                Ok(dir.file(name)?.map(|(fd, _)| Arc::new(fd)))
            }
            SourceKind::OpenFile { fd, .. } => Ok(Some(Arc::clone(fd))),
        }
    }

    /// Returns the stamp of the journal's current file, if it exists.
    pub(super) fn stamp(&self) -> Result<Option<FileStamp>, StoreError> {
        match &self.kind {
            SourceKind::InTeamDir { team_state, folder, name } => {
                let dir = journal_folder(team_state, *folder);
                Ok(dir.map(|dir| dir.stamp(name)).transpose()?.flatten())
            }
            SourceKind::OpenFile { fd, .. } => {
                let stat = rustix::fs::fstat(fd).map_err(|e| io_error("stat", self.path(), e))?;
                Ok(Some(FileStamp::from_stat(&stat)))
            }
        }
    }

    /// Marks the journal as replaced. Later lookups in it return nothing.
    pub(super) fn mark_gone(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Fills the buffer from this offset, at most up to the end of the file. Returns the number of
    /// bytes read.
    pub(super) fn fill(
        &self,
        file: impl AsFd,
        buffer: &mut [u8],
        from: u64,
    ) -> Result<usize, StoreError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&file, rest, from + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io_error("read", self.path(), error)),
            }
        }
        Ok(filled)
    }

    /// Returns the end of the last complete line between `from` and `end`, or `from` if there is
    /// none.
    pub(super) fn whole_lines(&self, from: u64, end: u64) -> Result<u64, StoreError> {
        let Some(file) = self.file()? else { return Ok(from) };
        let mut buffer = vec![0; 128];
        let mut end = end;
        // Usually the last byte is the line break.
        while end > from {
            let start = end.saturating_sub(buffer.len() as u64).max(from);
            let capacity = usize::try_from(end - start).unwrap_or_default().min(buffer.len());
            let chunk = buffer.get_mut(..capacity).unwrap_or_default();
            let filled = self.fill(&file, chunk, start)?;
            let chunk = chunk.get(..filled).unwrap_or_default();
            if let Some(at) = memchr::memrchr(b'\n', chunk) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
            buffer.resize((buffer.len() * 2).min(1 << 16), 0);
        }
        Ok(from)
    }

    /// Returns where the first line at or after this offset begins; the end of the file if there is none.
    pub(super) fn line_after(&self, offset: u64) -> Result<u64, StoreError> {
        let Some(file) = self.file()? else { return Ok(0) };
        // If a line begins at the offset, the byte before ends another line.
        let Some(mut start) = offset.checked_sub(1) else { return Ok(0) };
        let mut buffer = vec![0; LOOKUP_BUFFER];
        loop {
            let filled = self.fill(&file, &mut buffer, start)?;
            let piece = buffer.get(..filled).unwrap_or_default();
            match memchr::memchr(b'\n', piece) {
                Some(at) => return Ok(start + at as u64 + 1),
                None if filled < buffer.len() => return Ok(start + filled as u64),
                None => start += filled as u64,
            }
        }
    }

    /// Returns the identity of this journal, or `None` while it has no complete line.
    pub(super) fn first_line(&self) -> Result<Option<FirstLine>, StoreError> {
        let Some(stamp) = self.stamp()? else { return Ok(None) };
        if self.whole_lines(0, stamp.size)? < 2 {
            return Ok(None);
        }
        let start_bytes = self.start_bytes(FIRST_LINE_MAX)?;
        // A record begins and ends with a line break, so the first byte of a journal is a line
        // break.
        let line = memchr::memchr(b'\n', start_bytes.get(1..).unwrap_or_default());
        let len = line.map_or(start_bytes.len(), |end| end + 2);
        let hash = Fnv::default().bytes(start_bytes.get(..len).unwrap_or_default()).finish();
        Ok(Some(FirstLine { len, hash }))
    }

    /// Returns whether the file still begins with this line, or the line was deleted.
    pub(super) fn starts_with_line(&self, first_line: &FirstLine) -> Result<bool, StoreError> {
        let start_bytes = self.start_bytes(first_line.len)?;
        let is_same = Fnv::default().bytes(&start_bytes).finish() == first_line.hash;
        let is_deleted = hole::first_byte(&start_bytes).is_none();
        Ok(start_bytes.len() == first_line.len && (is_same || is_deleted))
    }

    /// Returns whether the file begins with this text.
    pub(super) fn begins_with(&self, text: &[u8]) -> bool {
        self.start_bytes(text.len()).is_ok_and(|start_bytes| start_bytes == text)
    }

    fn start_bytes(&self, len: usize) -> Result<Vec<u8>, StoreError> {
        let Some(file) = self.file()? else { return Ok(Vec::new()) };
        let mut start_bytes = vec![0; len];
        let filled = self.fill(&file, &mut start_bytes, 0)?;
        start_bytes.truncate(filled);
        Ok(start_bytes)
    }

    /// Returns the record whose line begins at this offset.
    pub(super) fn record(&self, offset: u64) -> Option<Record> {
        let parse = |line: &[u8]| {
            let record = serde_json::from_slice::<UncheckedRecord>(line).ok()?;
            Some(record.from_local_file())
        };
        let file = self.file().ok()??;
        let mut line = vec![0; LOOKUP_BUFFER];
        let mut filled = 0;
        loop {
            let rest = line.get_mut(filled..)?;
            let capacity = rest.len();
            let read = self.fill(&file, rest, offset + filled as u64).ok()?;
            let new = line.get(filled..filled + read)?;
            // The record was deleted.
            if filled == 0 && new.first() == Some(&0) {
                return None;
            }
            if let Some(end) = memchr::memchr(b'\n', new) {
                return parse(line.get(..filled + end)?);
            }
            filled += read;
            if read < capacity {
                // The last line of a file that another program wrote may lack a line break.
                return parse(line.get(..filled)?);
            }
            if line.len() as u64 >= MAX_FILE {
                return None;
            }
            line.resize(line.len() * 4, 0);
        }
    }
}
