//! Reads the lines in a range of one journal, in chunks.

use std::sync::Arc;

use jiff::Timestamp;

use super::source::{JournalIndex, JournalRange, JournalSource};
use super::time;
use crate::hole;

/// A cursor over the lines of a journal, positioned at one line.
#[derive(Debug)]
pub(super) struct LineReader {
    source: Arc<JournalSource>,
    index: JournalIndex,
    upto: u64,
    /// A chunk of the journal, and its offset in the file.
    buffer: Vec<u8>,
    base: u64,
    /// Start of the part of the buffer that was not scanned yet.
    next: usize,
    /// Number of bytes to read at once.
    buffer_size: usize,
    /// The current line, as a range of the buffer.
    line: (usize, usize),
    /// The time of the current line. `time_len` is the length of the `at` field at the start of the
    /// line, if the field has the form that brigade writes.
    at: Timestamp,
    time_len: usize,
    /// How many lines were skipped because they are not records.
    pub(super) skipped: u64,
    failed: bool,
}

impl LineReader {
    pub(super) fn new(range: JournalRange, size: usize) -> Self {
        Self {
            source: range.source,
            index: range.index,
            upto: range.upto,
            buffer: Vec::new(),
            base: range.from,
            next: 0,
            buffer_size: size,
            line: (0, 0),
            at: Timestamp::UNIX_EPOCH,
            time_len: 0,
            skipped: 0,
            failed: false,
        }
    }

    pub(super) fn index(&self) -> JournalIndex {
        self.index
    }

    /// Returns the offset where reading failed, if it did.
    pub(super) fn unread_from(&self) -> Option<(JournalIndex, u64)> {
        self.failed.then_some((self.index, self.base + self.next as u64))
    }

    /// Returns the current line: its position, its bytes, the length of the parsed time prefix, and
    /// the time.
    pub(super) fn line(
        &self,
    ) -> (brigade_core::store::event_log::RecordRef, &[u8], usize, Timestamp) {
        let (start, end) = self.line;
        let spot = self.index.spot(self.base + start as u64);
        (spot, self.buffer.get(start..end).unwrap_or_default(), self.time_len, self.at)
    }

    /// Moves to the next line and returns its time.
    pub(super) fn advance(&mut self) -> Option<Timestamp> {
        loop {
            let rest = self.buffer.get(self.next..).unwrap_or_default();
            let Some(len) = memchr::memchr(b'\n', rest) else {
                if self.skip_hole() || self.read_more() {
                    continue;
                }
                if self.failed {
                    return None;
                }
                // Only a file that another program wrote can end without a line break.
                let (start, end) = (self.next, self.buffer.len());
                self.next = end;
                return if start < end && self.accept(start, end) { Some(self.at) } else { None };
            };
            let start = self.next;
            self.next += len + 1;
            if len > 0 && self.accept(start, start + len) {
                return Some(self.at);
            }
        }
    }

    /// If the rest of the buffer begins a range of deleted records, moves to the end of that range. Returns whether it did.
    fn skip_hole(&mut self) -> bool {
        let rest = self.buffer.get(self.next..).unwrap_or_default();
        let Some(zero) = memchr::memchr(0, rest) else { return false };
        let after = hole::first_byte(rest.get(zero..).unwrap_or_default());
        let read = self.base + (self.next + zero) as u64;
        let end = match (after, self.source.file()) {
            (Some(after), _) => read + after,
            (None, Ok(Some(file))) => {
                let read = self.base + self.buffer.len() as u64;
                hole::end(file, read).unwrap_or(read)
            }
            (None, _) => self.base + self.buffer.len() as u64,
        };
        self.buffer.clear();
        (self.base, self.next) = (end, 0);
        true
    }

    fn accept(&mut self, start: usize, end: usize) -> bool {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let zeros = line.len() - hole::without_zeros(line).len();
        let (start, line) = (start + zeros, line.get(zeros..).unwrap_or_default());
        if line.is_empty() {
            return false;
        }
        let known = time::parse_prefix(line).or_else(|| time::parse_json(line).map(|at| (at, 0)));
        match known {
            Some((at, time_len)) => {
                (self.line, self.at, self.time_len) = ((start, end), at, time_len);
                true
            }
            None => {
                let path = self.source.path();
                tracing::warn!(path = %path.display(), "skipping a journal line that is not a record");
                self.skipped += 1;
                false
            }
        }
    }

    /// Reads another chunk into the buffer. Returns whether there was any data.
    fn read_more(&mut self) -> bool {
        let end = self.base + self.buffer.len() as u64;
        let left = usize::try_from(self.upto.saturating_sub(end)).unwrap_or(usize::MAX);
        if left == 0 {
            return false;
        }
        self.buffer.drain(..self.next);
        self.base += self.next as u64;
        self.next = 0;
        let old = self.buffer.len();
        // For a line longer than the buffer, the buffer doubles until the line fits.
        let wanted = self.buffer_size.max(old).min(left);
        self.buffer.resize(old + wanted, 0);
        let read = match self.source.file() {
            Ok(Some(file)) => {
                let wanted = self.buffer.get_mut(old..).unwrap_or_default();
                self.source.fill(&file, wanted, end)
            }
            Ok(None) => Ok(0),
            Err(error) => Err(error),
        };
        let read = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read a journal");
            self.failed = true;
            0
        });
        self.buffer.truncate(old + read);
        if read < wanted {
            // The file was truncated meanwhile. The next round handles that.
            self.upto = end + read as u64;
        }
        read > 0
    }
}
