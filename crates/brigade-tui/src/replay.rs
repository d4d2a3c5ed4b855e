//! Replays a journal: delivers its records at their original speed, or faster or slower.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::store::event_log::{EventStream, RecordBatch, RecordRef};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::keys::KeyCommand;
use super::screen::ReplayState;

/// Maximum wait between two records, even if they are further apart in the journal.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How many records to read in advance.
const READ_AHEAD: usize = 4096;
/// The range of replay speeds that the keys can set.
const SPEED_RANGE: std::ops::RangeInclusive<f64> = 0.25..=4096.0;

/// A journal that is being replayed.
#[derive(Debug)]
pub(crate) struct ReplayPlayer {
    feed: EventStream,
    queued: VecDeque<(RecordRef, Arc<Record>)>,
    is_at_end: bool,
    speed: f64,
    paused: bool,
    /// At the instant `reached_at`, the replay reached the time `journal_time` of the journal.
    journal_time: Timestamp,
    reached_at: Instant,
}

impl ReplayPlayer {
    /// Starts a replay from the first record. Speed 0 delivers all records immediately.
    pub(crate) async fn start(feed: EventStream, speed: f64) -> Self {
        let journal_time = Timestamp::UNIX_EPOCH;
        let mut player = Self {
            feed,
            queued: VecDeque::new(),
            is_at_end: false,
            speed,
            paused: false,
            journal_time,
            reached_at: Instant::now(),
        };
        player.read_ahead().await;
        player.journal_time = player.queued.front().map_or(journal_time, |(_, record)| record.at);
        player
    }

    pub(crate) fn state(&self) -> ReplayState {
        let over = self.is_at_end && self.queued.is_empty();
        ReplayState { speed: self.speed, paused: self.paused, over }
    }

    /// Returns the current time in the journal.
    pub(crate) fn now(&self) -> Timestamp {
        if self.paused || self.speed == 0.0 || self.state().over {
            return self.journal_time;
        }
        let elapsed = self.reached_at.elapsed().as_secs_f64() * self.speed;
        let elapsed = SignedDuration::try_from_secs_f64(elapsed).unwrap_or_default();
        let now = self.journal_time.saturating_add(elapsed).unwrap_or(self.journal_time);
        // The clock must not pass the time of the next record before that record is delivered.
        self.queued.front().map_or(now, |(_, record)| now.min(record.at.max(self.journal_time)))
    }

    /// Handles a key that pauses the replay, changes its speed or skips ahead.
    pub(crate) fn command(&mut self, command: KeyCommand) {
        self.set_clock(self.now());
        match command {
            KeyCommand::Pause => self.paused = !self.paused,
            KeyCommand::Faster => {
                self.speed = (self.speed * 2.0).clamp(*SPEED_RANGE.start(), *SPEED_RANGE.end());
            }
            KeyCommand::Slower => {
                self.speed = (self.speed / 2.0).clamp(*SPEED_RANGE.start(), *SPEED_RANGE.end());
            }
            KeyCommand::Skip => {
                if let Some((_, record)) = self.queued.front() {
                    let next = record.at.max(self.journal_time);
                    self.set_clock(next);
                }
            }
            _ => {}
        }
    }

    fn set_clock(&mut self, journal_time: Timestamp) {
        (self.journal_time, self.reached_at) = (journal_time, Instant::now());
    }

    async fn read_ahead(&mut self) {
        while !self.is_at_end && self.queued.len() < READ_AHEAD {
            match self.feed.next().await {
                Some(batch) => self.queued.extend(batch.records),
                None => self.is_at_end = true,
            }
        }
    }

    /// Waits until the next records are due and returns them. Never returns while the replay is paused or
    /// after the last record.
    pub(crate) async fn next(&mut self) -> RecordBatch {
        self.read_ahead().await;
        let Some((_, first)) = self.queued.front() else { return std::future::pending().await };
        if self.paused {
            return std::future::pending().await;
        }
        if self.speed > 0.0 {
            let wait = first.at.duration_since(self.journal_time).as_secs_f64() / self.speed;
            let wait = Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(MAX_WAIT).min(MAX_WAIT);
            tokio::time::sleep_until(self.reached_at + wait).await;
            let now = first.at.max(self.journal_time);
            self.set_clock(now);
        } else {
            self.journal_time =
                self.queued.back().map_or(self.journal_time, |(_, record)| record.at);
        }
        let journal_time = self.journal_time;
        let is_due = |record: &Arc<Record>| self.speed == 0.0 || record.at <= journal_time;
        let due = self.queued.iter().take_while(|(_, record)| is_due(record)).count();
        RecordBatch { records: self.queued.drain(..due).collect(), caught_up: true }
    }
}
