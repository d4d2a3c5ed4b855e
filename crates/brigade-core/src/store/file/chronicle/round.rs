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

use super::lines::LineReader;
use super::place::JournalSource;
use crate::chronicle::{Batch, Spot};
use crate::event::{Event, Record};
use crate::store::file::lock_mutex;

/// How many lines a sheet has, and about how many bytes.
const BATCH_LINES: usize = 2048;
const BATCH_BYTES: usize = 1 << 20;
/// How much of all journals is in memory at once, and how much of one at least and at most.
const BUFFER_TOTAL: usize = 8 << 20;
const BUFFER_PER_JOURNAL: (usize, usize) = (16 << 10, 1 << 20);
/// So much is worth a second thread.
const PARALLEL_THRESHOLD: u64 = 1 << 20;
/// More threads than this would wait for each other.
const MAX_THREADS: usize = 3;

/// The spots of one journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalIndex(u64);

/// How many bits of a spot say where in the journal.
const OFFSET_BITS: u32 = 44;

impl JournalIndex {
    /// Those of the journal with this number, unless there are too many.
    pub(super) fn new(number: usize) -> Option<Self> {
        let number = u64::try_from(number).ok().filter(|number| number >> (64 - OFFSET_BITS) == 0);
        number.map(|number| Self(number << OFFSET_BITS))
    }

    pub(super) fn spot(self, offset: u64) -> Spot {
        Spot(self.0 | offset & ((1 << OFFSET_BITS) - 1))
    }

    /// The number of the journal, and the place in it.
    pub(super) fn split(spot: Spot) -> (usize, u64) {
        let number = usize::try_from(spot.0 >> OFFSET_BITS).unwrap_or(usize::MAX);
        (number, spot.0 & ((1 << OFFSET_BITS) - 1))
    }
}

/// What is to be given of one journal.
#[derive(Debug)]
pub(super) struct JournalRange {
    pub(super) source: Arc<JournalSource>,
    pub(super) index: JournalIndex,
    pub(super) from: u64,
    pub(super) upto: u64,
}

/// What is to be given, merged.
#[derive(Debug, Default)]
pub(super) struct MergeRound {
    journals: Vec<LineReader>,
    /// Of each that has a line in hand, when that was. Of the same time the first in the list is first.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    bytes: u64,
    batch_count: u64,
}

/// Lines in the order of time, on their way to become records.
#[derive(Debug, Default)]
struct LineBatch {
    number: u64,
    text: Vec<u8>,
    lines: Vec<(Spot, Option<Timestamp>, usize, usize)>,
    last: bool,
}

/// What threads share that work on a round.
struct RoundWorkers<'r> {
    round: Mutex<MergeRound>,
    /// Which sheet is to be given next; `None` when nobody takes them any more.
    turn: Mutex<Option<u64>>,
    turn_changed: Condvar,
    sender: &'r Sender<Batch>,
    skipped: &'r AtomicU64,
}

impl MergeRound {
    pub(super) fn new(ranges: Vec<JournalRange>) -> Self {
        let size =
            (BUFFER_TOTAL / ranges.len().max(1)).clamp(BUFFER_PER_JOURNAL.0, BUFFER_PER_JOURNAL.1);
        let bytes = ranges.iter().map(|range| range.upto - range.from).sum();
        let journals = ranges.into_iter().map(|range| LineReader::new(range, size)).collect();
        Self { journals, next: BinaryHeap::new(), bytes, batch_count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    /// Whether there is any record in it at all.
    pub(super) fn has_record(mut self) -> bool {
        self.read_first_lines();
        let mut batch = LineBatch::default();
        while self.fill_batch(&mut batch) && !batch.lines.is_empty() {
            if !batch.parse().0.is_empty() {
                return true;
            }
        }
        false
    }

    /// Takes the first line of each journal in hand.
    fn read_first_lines(&mut self) {
        for (number, lines) in self.journals.iter_mut().enumerate() {
            self.next.extend(lines.advance().map(|at| Reverse((at, number))));
        }
    }

    /// Gives it all, until nobody takes it. The last batch says that it is. What is given back are the
    /// journals that could not be read to their ends, and where it is to be tried again.
    pub(super) fn send_all(
        mut self,
        sender: &Sender<Batch>,
        skipped: &AtomicU64,
    ) -> Vec<(JournalIndex, u64)> {
        self.read_first_lines();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let others = if self.bytes < PARALLEL_THRESHOLD { 0 } else { threads - 1 };
        let (round, turn, turn_changed) = (Mutex::new(self), Mutex::new(Some(0)), Condvar::new());
        let workers = RoundWorkers { round, turn, turn_changed, sender, skipped };
        std::thread::scope(|scope| {
            for _ in 0..others {
                let run = || workers.run();
                let started = std::thread::Builder::new()
                    .name("brigade-feed".into())
                    .spawn_scoped(scope, run);
                if let Err(error) = started {
                    tracing::debug!(%error, "one thread less to read the journals");
                }
            }
            workers.run();
        });
        let round = lock_mutex(&workers.round);
        let skipped_lines = round.journals.iter().map(|lines| lines.skipped).sum();
        skipped.fetch_add(skipped_lines, Ordering::Relaxed);
        round.journals.iter().filter_map(LineReader::unread_from).collect()
    }

    /// Puts the next lines on a sheet; whether it is one that is to be given.
    fn fill_batch(&mut self, batch: &mut LineBatch) -> bool {
        batch.text.clear();
        batch.lines.clear();
        while batch.lines.len() < BATCH_LINES && batch.text.len() < BATCH_BYTES {
            let Some(mut first) = self.next.peek_mut() else { break };
            let Some(journal) = self.journals.get_mut(first.0.1) else { break };
            batch.push(journal.line());
            match journal.advance() {
                Some(at) => first.0.0 = at,
                None => drop(PeekMut::pop(first)),
            }
        }
        (batch.number, batch.last) = (self.batch_count, self.next.is_empty());
        self.batch_count += 1;
        // Also one with nothing on it, if it is the only one: somebody waits to hear that this is all.
        !batch.lines.is_empty() || batch.number == 0
    }
}

impl LineBatch {
    fn push(&mut self, (spot, line, time_len, at): (Spot, &[u8], usize, Timestamp)) {
        let start = self.text.len();
        if time_len > 0 {
            self.text.push(b'{');
        }
        self.text.extend_from_slice(line.get(time_len..).unwrap_or_default());
        self.lines.push((spot, (time_len > 0).then_some(at), start, self.text.len()));
    }

    /// The records; and how many lines were none.
    fn parse(&self) -> (Vec<(Spot, Arc<Record>)>, u64) {
        // To look at all of it once whether it is UTF-8 is faster than at each string by itself.
        let text = std::str::from_utf8(&self.text).ok();
        let mut records = Vec::with_capacity(self.lines.len());
        for &(spot, at, start, end) in &self.lines {
            let record = match text.and_then(|text| text.get(start..end)) {
                Some(line) => parse_record(&mut serde_json::Deserializer::from_str(line), at),
                None => {
                    let line = self.text.get(start..end).unwrap_or_default();
                    parse_record(&mut serde_json::Deserializer::from_slice(line), at)
                }
            };
            match record {
                Ok(record) => records.push((spot, Arc::new(record))),
                Err(error) => tracing::warn!(%error, "a line of the journal is no record"),
            }
        }
        let skipped_lines = self.lines.len() - records.len();
        (records, skipped_lines as u64)
    }
}

/// What a record says besides when it was.
#[derive(Deserialize)]
struct RecordBody {
    #[serde(default)]
    by: Option<String>,
    event: Event,
}

fn parse_record<'t, R: serde_json::de::Read<'t>>(
    line: &mut serde_json::Deserializer<R>,
    at: Option<Timestamp>,
) -> serde_json::Result<Record> {
    let record = match at {
        Some(at) => {
            let RecordBody { by, event } = RecordBody::deserialize(&mut *line)?;
            Record { at, by, event }
        }
        None => Record::deserialize(&mut *line)?,
    };
    line.end()?;
    Ok(record)
}

impl RoundWorkers<'_> {
    /// Takes sheets and gives records, until there are no more.
    fn run(&self) {
        let mut lines = LineBatch::default();
        loop {
            if !lock_mutex(&self.round).fill_batch(&mut lines) {
                return;
            }
            let (records, skipped_lines) = lines.parse();
            self.skipped.fetch_add(skipped_lines, Ordering::Relaxed);
            let batch = Batch { records, caught_up: lines.last };
            if !self.wait_for(lines.number) {
                return;
            }
            let sent = self.sender.blocking_send(batch).is_ok();
            *lock_mutex(&self.turn) = sent.then_some(lines.number + 1);
            self.turn_changed.notify_all();
            if !sent {
                return;
            }
        }
    }

    /// Waits for the turn of this sheet; whether it comes.
    fn wait_for(&self, number: u64) -> bool {
        let turn = lock_mutex(&self.turn);
        let not_yet = |turn: &mut Option<u64>| turn.is_some_and(|turn| turn != number);
        let turn = self.turn_changed.wait_while(turn, not_yet);
        turn.unwrap_or_else(PoisonError::into_inner).is_some()
    }
}
