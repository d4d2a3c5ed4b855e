//! What was added to the journals, merged by time and read by several threads.
//!
//! To merge, no more is looked at of a line than when it was. The lines are put on sheets in that order;
//! whoever is free takes the next sheet and makes records of it, and they are given in the order of the
//! sheets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::mpsc::Sender;

use super::lines::Lines;
use super::place::Place;
use crate::held;
use brigade_core::event::{Event, Record};
use brigade_core::event_log::{Batch, Spot};

/// How many lines a sheet has, and about how many bytes.
const SHEET: usize = 2048;
const SHEET_BYTES: usize = 1 << 20;
/// How much of all journals is in memory at once, and how much of one at least and at most.
const BUFFERS: usize = 8 << 20;
const PIECES: (usize, usize) = (16 << 10, 1 << 20);
/// So much is worth a second thread.
const MUCH: u64 = 1 << 20;
/// More threads than this would wait for each other.
const THREADS: usize = 3;

/// The spots of one journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spots(u64);

/// How many bits of a spot say where in the journal.
const OFFSET_BITS: u32 = 44;

impl Spots {
    /// Those of the journal with this number, unless there are too many.
    pub(super) fn of(number: usize) -> Option<Self> {
        let number = u64::try_from(number).ok().filter(|number| number >> (64 - OFFSET_BITS) == 0);
        number.map(|number| Self(number << OFFSET_BITS))
    }

    pub(super) fn spot(self, offset: u64) -> Spot {
        Spot(self.0 | offset & ((1 << OFFSET_BITS) - 1))
    }

    /// The number of the journal, and the place in it.
    pub(super) fn read(spot: Spot) -> (usize, u64) {
        let number = usize::try_from(spot.0 >> OFFSET_BITS).unwrap_or(usize::MAX);
        (number, spot.0 & ((1 << OFFSET_BITS) - 1))
    }
}

/// What is to be given of one journal.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) place: Arc<Place>,
    pub(super) spots: Spots,
    pub(super) from: u64,
    pub(super) upto: u64,
}

/// What is to be given, merged.
#[derive(Debug, Default)]
pub(super) struct Round {
    journals: Vec<Lines>,
    /// Of each that has a line in hand, when that was. Of the same time the first in the list is first.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    bytes: u64,
    sheets: u64,
}

/// Lines in the order of time, on their way to become records.
#[derive(Debug, Default)]
struct Sheet {
    number: u64,
    text: Vec<u8>,
    lines: Vec<(Spot, Option<Timestamp>, usize, usize)>,
    last: bool,
}

/// What threads share that work on a round.
struct Desk<'r> {
    round: Mutex<Round>,
    /// Which sheet is to be given next; `None` when nobody takes them any more.
    turn: Mutex<Option<u64>>,
    passed_on: Condvar,
    sender: &'r Sender<Batch>,
    passed_over: &'r AtomicU64,
}

impl Round {
    pub(super) fn new(pieces: Vec<Piece>) -> Self {
        let size = (BUFFERS / pieces.len().max(1)).clamp(PIECES.0, PIECES.1);
        let bytes = pieces.iter().map(|piece| piece.upto - piece.from).sum();
        let journals = pieces.into_iter().map(|piece| Lines::new(piece, size)).collect();
        Self { journals, next: BinaryHeap::new(), bytes, sheets: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    /// Whether there is any record in it at all.
    pub(super) fn has_record(mut self) -> bool {
        self.begin();
        let mut sheet = Sheet::default();
        while self.fill(&mut sheet) && !sheet.lines.is_empty() {
            if !sheet.read().0.is_empty() {
                return true;
            }
        }
        false
    }

    /// Takes the first line of each journal in hand.
    fn begin(&mut self) {
        for (number, lines) in self.journals.iter_mut().enumerate() {
            self.next.extend(lines.advance().map(|at| Reverse((at, number))));
        }
    }

    /// Gives it all, until nobody takes it. The last batch says that it is. What is given back are the
    /// journals that could not be read to their ends, and where it is to be tried again.
    pub(super) fn give(
        mut self,
        sender: &Sender<Batch>,
        passed_over: &AtomicU64,
    ) -> Vec<(Spots, u64)> {
        self.begin();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let others = if self.bytes < MUCH { 0 } else { threads - 1 };
        let (round, turn, passed_on) = (Mutex::new(self), Mutex::new(Some(0)), Condvar::new());
        let desk = Desk { round, turn, passed_on, sender, passed_over };
        std::thread::scope(|scope| {
            for _ in 0..others {
                let work = || desk.work();
                let started = std::thread::Builder::new()
                    .name("brigade-feed".into())
                    .spawn_scoped(scope, work);
                if let Err(error) = started {
                    tracing::debug!(%error, "one thread less to read the journals");
                }
            }
            desk.work();
        });
        let round = held(&desk.round);
        let lost = round.journals.iter().map(|lines| lines.passed_over).sum();
        passed_over.fetch_add(lost, Ordering::Relaxed);
        round.journals.iter().filter_map(Lines::stuck_at).collect()
    }

    /// Puts the next lines on a sheet; whether it is one that is to be given.
    fn fill(&mut self, sheet: &mut Sheet) -> bool {
        sheet.text.clear();
        sheet.lines.clear();
        while sheet.lines.len() < SHEET && sheet.text.len() < SHEET_BYTES {
            let Some(mut first) = self.next.peek_mut() else { break };
            let Some(journal) = self.journals.get_mut(first.0.1) else { break };
            sheet.put(journal.line());
            match journal.advance() {
                Some(at) => first.0.0 = at,
                None => drop(PeekMut::pop(first)),
            }
        }
        (sheet.number, sheet.last) = (self.sheets, self.next.is_empty());
        self.sheets += 1;
        // Also one with nothing on it, if it is the only one: somebody waits to hear that this is all.
        !sheet.lines.is_empty() || sheet.number == 0
    }
}

impl Sheet {
    fn put(&mut self, (spot, line, said, at): (Spot, &[u8], usize, Timestamp)) {
        let start = self.text.len();
        if said > 0 {
            self.text.push(b'{');
        }
        self.text.extend_from_slice(line.get(said..).unwrap_or_default());
        self.lines.push((spot, (said > 0).then_some(at), start, self.text.len()));
    }

    /// The records; and how many lines were none.
    fn read(&self) -> (Vec<(Spot, Arc<Record>)>, u64) {
        // To look at all of it once whether it is UTF-8 is faster than at each string by itself.
        let text = std::str::from_utf8(&self.text).ok();
        let mut records = Vec::with_capacity(self.lines.len());
        for &(spot, at, start, end) in &self.lines {
            let record = match text.and_then(|text| text.get(start..end)) {
                Some(line) => read(&mut serde_json::Deserializer::from_str(line), at),
                None => {
                    let line = self.text.get(start..end).unwrap_or_default();
                    read(&mut serde_json::Deserializer::from_slice(line), at)
                }
            };
            match record {
                Ok(record) => records.push((spot, Arc::new(record))),
                Err(error) => tracing::warn!(%error, "a line of the journal is no record"),
            }
        }
        let lost = self.lines.len() - records.len();
        (records, lost as u64)
    }
}

/// What a record says besides when it was.
#[derive(Deserialize)]
struct Rest {
    #[serde(default)]
    by: Option<String>,
    event: Event,
}

fn read<'t, R: serde_json::de::Read<'t>>(
    line: &mut serde_json::Deserializer<R>,
    at: Option<Timestamp>,
) -> serde_json::Result<Record> {
    let record = match at {
        Some(at) => {
            let Rest { by, event } = Rest::deserialize(&mut *line)?;
            Record { at, by, event }
        }
        None => Record::deserialize(&mut *line)?,
    };
    line.end()?;
    Ok(record)
}

impl Desk<'_> {
    /// Takes sheets and gives records, until there are no more.
    fn work(&self) {
        let mut sheet = Sheet::default();
        loop {
            if !held(&self.round).fill(&mut sheet) {
                return;
            }
            let (records, lost) = sheet.read();
            self.passed_over.fetch_add(lost, Ordering::Relaxed);
            let batch = Batch { records, caught_up: sheet.last };
            if !self.wait_for(sheet.number) {
                return;
            }
            let taken = self.sender.blocking_send(batch).is_ok();
            *held(&self.turn) = taken.then_some(sheet.number + 1);
            self.passed_on.notify_all();
            if !taken {
                return;
            }
        }
    }

    /// Waits for the turn of this sheet; whether it comes.
    fn wait_for(&self, number: u64) -> bool {
        let turn = held(&self.turn);
        let not_yet = |turn: &mut Option<u64>| turn.is_some_and(|turn| turn != number);
        let turn = self.passed_on.wait_while(turn, not_yet);
        turn.unwrap_or_else(PoisonError::into_inner).is_some()
    }
}
