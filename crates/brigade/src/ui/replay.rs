//! Replays a journal: delivers its records at their original pace, or faster or slower.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::chronicle::{Batch, Feed, Spot};
use brigade_core::event::Record;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::keys::Command;
use super::screen::Replay;

/// Upper bound on the wait for the next record, however long the pause in the journal was.
const LONGEST: Duration = Duration::from_secs(2);
/// How many records to read ahead.
const AHEAD: usize = 4096;
/// The range of speeds that the keys can set.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4096.0;

/// A journal that is being replayed.
#[derive(Debug)]
pub(crate) struct Player {
    feed: Feed,
    ahead: VecDeque<(Spot, Arc<Record>)>,
    is_read: bool,
    speed: f64,
    paused: bool,
    /// A moment in the journal, and the instant at which the replay reached it.
    then: Timestamp,
    since: Instant,
}

impl Player {
    /// Starts a replay from the first record. Speed 0 delivers all records immediately.
    pub(crate) async fn start(feed: Feed, speed: f64) -> Self {
        let then = Timestamp::UNIX_EPOCH;
        let mut player = Self {
            feed,
            ahead: VecDeque::new(),
            is_read: false,
            speed,
            paused: false,
            then,
            since: Instant::now(),
        };
        player.read_on().await;
        player.then = player.ahead.front().map_or(then, |(_, record)| record.at);
        player
    }

    pub(crate) fn state(&self) -> Replay {
        let over = self.is_read && self.ahead.is_empty();
        Replay { speed: self.speed, paused: self.paused, over }
    }

    /// The current time in the journal.
    pub(crate) fn now(&self) -> Timestamp {
        if self.paused || self.speed == 0.0 || self.state().over {
            return self.then;
        }
        let gone = self.since.elapsed().as_secs_f64() * self.speed;
        let gone = SignedDuration::try_from_secs_f64(gone).unwrap_or_default();
        let now = self.then.saturating_add(gone).unwrap_or(self.then);
        // A long pause is cut short; the clock must not run past the next record.
        self.ahead.front().map_or(now, |(_, record)| now.min(record.at.max(self.then)))
    }

    /// Handles a replay key: pause, speed or skip.
    pub(crate) fn command(&mut self, command: Command) {
        self.settle(self.now());
        match command {
            Command::Pause => self.paused = !self.paused,
            Command::Faster => {
                self.speed = (self.speed * 2.0).clamp(*SPEEDS.start(), *SPEEDS.end());
            }
            Command::Slower => {
                self.speed = (self.speed / 2.0).clamp(*SPEEDS.start(), *SPEEDS.end());
            }
            Command::Skip => {
                if let Some((_, record)) = self.ahead.front() {
                    let next = record.at.max(self.then);
                    self.settle(next);
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, then: Timestamp) {
        (self.then, self.since) = (then, Instant::now());
    }

    async fn read_on(&mut self) {
        while !self.is_read && self.ahead.len() < AHEAD {
            match self.feed.next().await {
                Some(batch) => self.ahead.extend(batch.records),
                None => self.is_read = true,
            }
        }
    }

    /// Waits until the next records are due and returns them. Never returns while paused or after the last
    /// one.
    pub(crate) async fn next(&mut self) -> Batch {
        self.read_on().await;
        let Some((_, first)) = self.ahead.front() else { return std::future::pending().await };
        if self.paused {
            return std::future::pending().await;
        }
        if self.speed > 0.0 {
            let wait = first.at.duration_since(self.then).as_secs_f64() / self.speed;
            let wait = Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(LONGEST).min(LONGEST);
            tokio::time::sleep_until(self.since + wait).await;
            let now = first.at.max(self.then);
            self.settle(now);
        } else {
            self.then = self.ahead.back().map_or(self.then, |(_, record)| record.at);
        }
        let then = self.then;
        let is_due = |record: &Arc<Record>| self.speed == 0.0 || record.at <= then;
        let due = self.ahead.iter().take_while(|(_, record)| is_due(record)).count();
        Batch { records: self.ahead.drain(..due).collect(), caught_up: true }
    }
}
