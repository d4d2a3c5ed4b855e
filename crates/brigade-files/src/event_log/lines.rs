//! The lines of one journal, from one place to another, read in pieces.

use std::sync::Arc;

use jiff::Timestamp;

use super::place::Place;
use super::round::{Piece, Spots};
use super::time;

/// The lines, with one of them in hand.
#[derive(Debug)]
pub(super) struct Lines {
    place: Arc<Place>,
    spots: Spots,
    upto: u64,
    /// A piece of the journal, and where it begins there.
    buffer: Vec<u8>,
    base: u64,
    /// Where in the buffer that begins which was not looked at.
    next: usize,
    /// How much is read at once.
    piece: usize,
    /// The line in hand, in the buffer.
    line: (usize, usize),
    /// When it was, and how much of the line says so where it is put in our way.
    at: Timestamp,
    said: usize,
    /// How many lines were no records.
    pub(super) passed_over: u64,
    failed: bool,
}

impl Lines {
    pub(super) fn new(piece: Piece, size: usize) -> Self {
        Self {
            place: piece.place,
            spots: piece.spots,
            upto: piece.upto,
            buffer: Vec::new(),
            base: piece.from,
            next: 0,
            piece: size,
            line: (0, 0),
            at: Timestamp::UNIX_EPOCH,
            said: 0,
            passed_over: 0,
            failed: false,
        }
    }

    /// Up to where it was read, if it could not be read to its end.
    pub(super) fn stuck_at(&self) -> Option<(Spots, u64)> {
        self.failed.then_some((self.spots, self.base + self.next as u64))
    }

    /// The line in hand: its place, its bytes, and how many of them say when it was, which is known.
    pub(super) fn line(&self) -> (brigade_core::event_log::Spot, &[u8], usize, Timestamp) {
        let (start, end) = self.line;
        let spot = self.spots.spot(self.base + start as u64);
        (spot, self.buffer.get(start..end).unwrap_or_default(), self.said, self.at)
    }

    /// Takes the next line in hand; when it was.
    pub(super) fn advance(&mut self) -> Option<Timestamp> {
        loop {
            let rest = self.buffer.get(self.next..).unwrap_or_default();
            let Some(len) = memchr::memchr(b'\n', rest) else {
                if self.read_on() {
                    continue;
                }
                if self.failed {
                    return None;
                }
                // Only a file that somebody wrote ends without a line break.
                let (start, end) = (self.next, self.buffer.len());
                self.next = end;
                return if start < end && self.take(start, end) { Some(self.at) } else { None };
            };
            let start = self.next;
            self.next += len + 1;
            if len > 0 && self.take(start, start + len) {
                return Some(self.at);
            }
        }
    }

    fn take(&mut self, start: usize, end: usize) -> bool {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let known = time::quick(line).or_else(|| time::slow(line).map(|at| (at, 0)));
        match known {
            Some((at, said)) => {
                (self.line, self.at, self.said) = ((start, end), at, said);
                true
            }
            None => {
                let path = self.place.path();
                tracing::warn!(path = %path.display(), "a line of the journal is no record");
                self.passed_over += 1;
                false
            }
        }
    }

    /// Reads some more behind what is left in the buffer; whether there was any.
    fn read_on(&mut self) -> bool {
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
        let room = self.piece.max(old).min(left);
        self.buffer.resize(old + room, 0);
        let read = match self.place.file() {
            Ok(Some(file)) => {
                let room = self.buffer.get_mut(old..).unwrap_or_default();
                self.place.fill(&file, room, end)
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
        if read < room {
            // It was cut meanwhile; the next round sees that.
            self.upto = end + read as u64;
        }
        read > 0
    }
}
