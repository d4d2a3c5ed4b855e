//! The lines of one journal, from one place to another, read in pieces.

use std::sync::Arc;

use jiff::Timestamp;

use super::place::JournalSource;
use super::round::{JournalIndex, JournalRange};
use super::time;

/// The lines, with one of them in hand.
#[derive(Debug)]
pub(super) struct LineReader {
    source: Arc<JournalSource>,
    index: JournalIndex,
    upto: u64,
    /// A piece of the journal, and where it begins there.
    buffer: Vec<u8>,
    base: u64,
    /// Where in the buffer that begins which was not looked at.
    next: usize,
    /// How much is read at once.
    buffer_size: usize,
    /// The line in hand, in the buffer.
    line: (usize, usize),
    /// When it was, and how much of the line says so where it is put in our way.
    at: Timestamp,
    time_len: usize,
    /// How many lines were no records.
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

    /// Up to where it was read, if it could not be read to its end.
    pub(super) fn unread_from(&self) -> Option<(JournalIndex, u64)> {
        self.failed.then_some((self.index, self.base + self.next as u64))
    }

    /// The line in hand: its place, its bytes, and how many of them say when it was, which is known.
    pub(super) fn line(&self) -> (crate::chronicle::Spot, &[u8], usize, Timestamp) {
        let (start, end) = self.line;
        let spot = self.index.spot(self.base + start as u64);
        (spot, self.buffer.get(start..end).unwrap_or_default(), self.time_len, self.at)
    }

    /// Takes the next line in hand; when it was.
    pub(super) fn advance(&mut self) -> Option<Timestamp> {
        loop {
            let rest = self.buffer.get(self.next..).unwrap_or_default();
            let Some(len) = memchr::memchr(b'\n', rest) else {
                if self.read_more() {
                    continue;
                }
                if self.failed {
                    return None;
                }
                // Only a file that somebody wrote ends without a line break.
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

    fn accept(&mut self, start: usize, end: usize) -> bool {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let known = time::parse_prefix(line).or_else(|| time::parse_json(line).map(|at| (at, 0)));
        match known {
            Some((at, time_len)) => {
                (self.line, self.at, self.time_len) = ((start, end), at, time_len);
                true
            }
            None => {
                let path = self.source.path();
                tracing::warn!(path = %path.display(), "a line of the journal is no record");
                self.skipped += 1;
                false
            }
        }
    }

    /// Reads some more behind what is left in the buffer; whether there was any.
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
        // A line that is longer than a piece takes ever larger ones.
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
            tracing::warn!(%error, "reading a journal");
            self.failed = true;
            0
        });
        self.buffer.truncate(old + read);
        if read < wanted {
            // It was cut meanwhile; the next round sees that.
            self.upto = end + read as u64;
        }
        read > 0
    }
}
