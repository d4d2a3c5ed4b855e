//! Merges the new lines of all journals in time order, and parses the lines with several threads.
//!
//! Merging parses only the time of each line. The lines are collected into numbered batches in time
//! order. Each free thread takes the next batch and parses its records. The batches are sent in the
//! order of their numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::mpsc::Sender;

use super::lines::LineReader;
use super::source::{JournalIndex, JournalRange};
use crate::lock_mutex;
use brigade_core::event::{Event, Record, UncheckedRecord};
use brigade_core::store::event_log::{RecordBatch, RecordRef};

/// Maximum number of lines in a batch, and approximate maximum size of a batch in bytes.
const BATCH_LINES: usize = 2048;
const BATCH_BYTES: usize = 1 << 20;
/// Total size of the read buffers, and the minimum and maximum size for one journal.
const BUFFER_TOTAL: usize = 8 << 20;
const BUFFER_PER_JOURNAL: (usize, usize) = (16 << 10, 1 << 20);
/// Rounds with at least this many bytes use several threads.
const PARALLEL_THRESHOLD: u64 = 1 << 20;
/// Maximum number of threads; more would only wait for each other.
const MAX_THREADS: usize = 3;

/// Merges ranges of several journals by time.
#[derive(Debug, Default)]
pub(super) struct MergeRound {
    journals: Vec<LineReader>,
    /// The time of the current line of each journal, earliest first. Equal times are ordered by
    /// journal.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    bytes: u64,
    batch_count: u64,
    /// Whether the first line of each journal was read.
    has_begun: bool,
}

/// Lines in time order, to be parsed into records.
#[derive(Debug, Default)]
struct LineBatch {
    number: u64,
    text: Vec<u8>,
    lines: Vec<(RecordRef, Option<Timestamp>, usize, usize)>,
    last: bool,
}

/// State shared by the threads that work on a round.
struct RoundWorkers<'r> {
    round: Mutex<MergeRound>,
    /// Number of the next batch to send; `None` after the receiver was dropped.
    turn: Mutex<Option<u64>>,
    turn_changed: Condvar,
    sender: &'r Sender<RecordBatch>,
    skipped: &'r AtomicU64,
}

impl MergeRound {
    pub(super) fn new(ranges: Vec<JournalRange>) -> Self {
        let size =
            (BUFFER_TOTAL / ranges.len().max(1)).clamp(BUFFER_PER_JOURNAL.0, BUFFER_PER_JOURNAL.1);
        let bytes = ranges.iter().map(|range| range.upto - range.from).sum();
        let journals = ranges.into_iter().map(|range| LineReader::new(range, size)).collect();
        Self { journals, next: BinaryHeap::new(), bytes, batch_count: 0, has_begun: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    /// Returns whether the round contains any record.
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

    /// Returns the time from which on the round contains all records, if it does not read these journals from their beginning;
    /// `None` if there are no such journals.
    pub(super) fn complete_from(&mut self, cut: &[JournalIndex]) -> Option<Timestamp> {
        self.read_first_lines();
        let first = |index: &JournalIndex| {
            let number = self.journals.iter().position(|lines| lines.index() == *index)?;
            self.next.iter().find(|Reverse((_, at))| *at == number).map(|Reverse((at, _))| *at)
        };
        // If no line of the end of a journal is a record, all its records are missing.
        cut.iter().map(|index| first(index).unwrap_or(Timestamp::MAX)).max()
    }

    /// Reads the first line of each journal, unless it was read before.
    fn read_first_lines(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        for (number, lines) in self.journals.iter_mut().enumerate() {
            self.next.extend(lines.advance().map(|at| Reverse((at, number))));
        }
    }

    /// Sends all records, or stops when the receiver is dropped. The last batch is marked as the
    /// last. Returns the journals that could not be read to the end, with the offset to retry from.
    pub(super) fn send_all(
        mut self,
        sender: &Sender<RecordBatch>,
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
                    tracing::debug!(%error, "cannot start another thread to read the journals");
                }
            }
            workers.run();
        });
        let round = lock_mutex(&workers.round);
        let skipped_lines = round.journals.iter().map(|lines| lines.skipped).sum();
        skipped.fetch_add(skipped_lines, Ordering::Relaxed);
        round.journals.iter().filter_map(LineReader::unread_from).collect()
    }

    /// Fills a batch with the next lines. Returns whether there is a batch to send.
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
        // Send an empty batch if it is the only one: the receiver waits for the end of the round.
        !batch.lines.is_empty() || batch.number == 0
    }
}

impl LineBatch {
    fn push(&mut self, (spot, line, time_len, at): (RecordRef, &[u8], usize, Timestamp)) {
        let start = self.text.len();
        if time_len > 0 {
            self.text.push(b'{');
        }
        self.text.extend_from_slice(line.get(time_len..).unwrap_or_default());
        self.lines.push((spot, (time_len > 0).then_some(at), start, self.text.len()));
    }

    /// Returns the records, and the number of lines that are not records.
    fn parse(&self) -> (Vec<(RecordRef, Arc<Record>)>, u64) {
        // Checking all of the text for UTF-8 once is faster than checking each string.
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
                Ok(record) => records.push((spot, Arc::new(record.from_local_file()))),
                Err(error) => {
                    tracing::warn!(%error, "skipping a journal line that is not a record");
                }
            }
        }
        let skipped_lines = self.lines.len() - records.len();
        (records, skipped_lines as u64)
    }
}

/// The fields of a record other than `at`.
#[derive(Deserialize)]
struct RecordBody {
    #[serde(default)]
    by: Option<String>,
    event: Event,
}

fn parse_record<'t, R: serde_json::de::Read<'t>>(
    line: &mut serde_json::Deserializer<R>,
    at: Option<Timestamp>,
) -> serde_json::Result<UncheckedRecord> {
    let record = match at {
        Some(at) => {
            let RecordBody { by, event } = RecordBody::deserialize(&mut *line)?;
            UncheckedRecord { at, by, event }
        }
        None => UncheckedRecord::deserialize(&mut *line)?,
    };
    line.end()?;
    Ok(record)
}

impl RoundWorkers<'_> {
    /// Parses and sends batches until there are no more.
    fn run(&self) {
        let mut lines = LineBatch::default();
        loop {
            if !lock_mutex(&self.round).fill_batch(&mut lines) {
                return;
            }
            let (records, skipped_lines) = lines.parse();
            self.skipped.fetch_add(skipped_lines, Ordering::Relaxed);
            let batch = RecordBatch { records, caught_up: lines.last };
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

    /// Waits until all earlier batches were sent. Returns false if the receiver was dropped.
    fn wait_for(&self, number: u64) -> bool {
        let turn = lock_mutex(&self.turn);
        let not_yet = |turn: &mut Option<u64>| turn.is_some_and(|turn| turn != number);
        let turn = self.turn_changed.wait_while(turn, not_yet);
        turn.unwrap_or_else(PoisonError::into_inner).is_some()
    }
}
