//! Where a journal is, and what can be read of it there.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dir::{Dir, Stamp, failed};
use crate::own::Own;
use brigade_core::event::Record;
use brigade_core::hash::Fnv;
use brigade_core::store::StoreError;

/// How much is read to look one record up. Most are shorter.
const LOOK_UP: usize = 4096;
/// No line is longer than this; what is, is not looked up.
const LONGEST: usize = 256 << 20;
/// How much of the first line tells a journal from another.
const HEAD: usize = 512;

/// The folders that have journals, by number. In the first, only the team's own is one.
pub(super) fn folders(own: &Own) -> impl Iterator<Item = (usize, &Dir)> {
    [&own.dir].into_iter().chain(own.folders()).enumerate()
}

fn folder_of(own: &Own, number: usize) -> Option<&Dir> {
    folders(own).nth(number).map(|(_, dir)| dir)
}

/// Where a journal is.
#[derive(Debug)]
pub(super) struct Place {
    at: At,
    /// Whether another file has come to stand there.
    gone: AtomicBool,
}

#[derive(Debug)]
enum At {
    /// In a folder of a team.
    Named { own: Arc<Own>, folder: usize, name: String },
    /// Wherever somebody said.
    Open { fd: Arc<OwnedFd>, path: PathBuf },
}

/// What tells a journal from one that comes to stand in its place, for the number of a file that is gone
/// may be given to another: how long its first line is, and a hash of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    len: usize,
    hash: u64,
}

impl Place {
    pub(super) fn new(own: Arc<Own>, folder: usize, name: String) -> Self {
        Self { at: At::Named { own, folder, name }, gone: AtomicBool::new(false) }
    }

    pub(super) fn open(fd: OwnedFd, path: PathBuf) -> Self {
        Self { at: At::Open { fd: Arc::new(fd), path }, gone: AtomicBool::new(false) }
    }

    pub(super) fn path(&self) -> PathBuf {
        match &self.at {
            At::Named { own, folder, name } => {
                folder_of(own, *folder).map(|dir| dir.path(name)).unwrap_or_default()
            }
            At::Open { path, .. } => path.clone(),
        }
    }

    /// The file that is there now, open.
    pub(super) fn file(&self) -> Result<Option<Arc<OwnedFd>>, StoreError> {
        if self.gone.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match &self.at {
            At::Named { own, folder, name } => {
                let Some(dir) = folder_of(own, *folder) else { return Ok(None) };
                Ok(dir.file(name)?.map(|(fd, _)| Arc::new(fd)))
            }
            At::Open { fd, .. } => Ok(Some(Arc::clone(fd))),
        }
    }

    /// Which file is there now, and how long it is.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, StoreError> {
        match &self.at {
            At::Named { own, folder, name } => {
                let dir = folder_of(own, *folder);
                Ok(dir.map(|dir| dir.stamp(name)).transpose()?.flatten())
            }
            At::Open { fd, .. } => {
                let stat = rustix::fs::fstat(fd).map_err(|e| failed("look at", self.path(), e))?;
                Ok(Some(Stamp::of(&stat)))
            }
        }
    }

    /// Nothing more is looked up here.
    pub(super) fn give_up(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Fills the buffer from this place of the file on, as far as the file goes; how much that was.
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
                Err(error) => return Err(failed("read", self.path(), error)),
            }
        }
        Ok(filled)
    }

    /// The end of the last whole line up to `end`; `from`, if there is none behind that.
    pub(super) fn whole_lines(&self, from: u64, end: u64) -> Result<u64, StoreError> {
        let Some(file) = self.file()? else { return Ok(from) };
        let mut buffer = vec![0; 128];
        let mut end = end;
        // Mostly the last byte is it.
        while end > from {
            let start = end.saturating_sub(buffer.len() as u64).max(from);
            let room = usize::try_from(end - start).unwrap_or_default().min(buffer.len());
            let piece = buffer.get_mut(..room).unwrap_or_default();
            let filled = self.fill(&file, piece, start)?;
            let piece = piece.get(..filled).unwrap_or_default();
            if let Some(at) = memchr::memrchr(b'\n', piece) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
            buffer.resize((buffer.len() * 2).min(1 << 16), 0);
        }
        Ok(from)
    }

    /// What tells this journal from others; `None` as long as there is no whole line in it.
    pub(super) fn head(&self) -> Result<Option<Head>, StoreError> {
        let Some(stamp) = self.stamp()? else { return Ok(None) };
        if self.whole_lines(0, stamp.size)? < 2 {
            return Ok(None);
        }
        let first = self.first(HEAD)?;
        // A record begins and ends with a line break: the first is at the very beginning.
        let line = memchr::memchr(b'\n', first.get(1..).unwrap_or_default());
        let len = line.map_or(first.len(), |end| end + 2);
        let hash = Fnv::default().bytes(first.get(..len).unwrap_or_default()).finish();
        Ok(Some(Head { len, hash }))
    }

    /// Whether what is there begins so.
    pub(super) fn has(&self, head: &Head) -> Result<bool, StoreError> {
        let first = self.first(head.len)?;
        Ok(first.len() == head.len && Fnv::default().bytes(&first).finish() == head.hash)
    }

    /// Whether the file begins so.
    pub(super) fn begins_with(&self, text: &[u8]) -> bool {
        self.first(text.len()).is_ok_and(|first| first == text)
    }

    fn first(&self, len: usize) -> Result<Vec<u8>, StoreError> {
        let Some(file) = self.file()? else { return Ok(Vec::new()) };
        let mut first = vec![0; len];
        let filled = self.fill(&file, &mut first, 0)?;
        first.truncate(filled);
        Ok(first)
    }

    /// The record whose line begins at this place.
    pub(super) fn record(&self, offset: u64) -> Option<Record> {
        let file = self.file().ok()??;
        let mut line = vec![0; LOOK_UP];
        let mut filled = 0;
        loop {
            let rest = line.get_mut(filled..)?;
            let room = rest.len();
            let read = self.fill(&file, rest, offset + filled as u64).ok()?;
            let new = line.get(filled..filled + read)?;
            if let Some(end) = memchr::memchr(b'\n', new) {
                return serde_json::from_slice(line.get(..filled + end)?).ok();
            }
            filled += read;
            if read < room {
                // The last line of a file that somebody wrote may have no end.
                return serde_json::from_slice(line.get(..filled)?).ok();
            }
            if line.len() >= LONGEST {
                return None;
            }
            line.resize(line.len() * 4, 0);
        }
    }
}
