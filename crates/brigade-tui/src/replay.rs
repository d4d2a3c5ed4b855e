//! A journal, played: what happened comes in its own time, faster or slower.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::event_log::{Batch, Feed, Spot};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::keys::Command;
use super::screen::Replay;

/// However long nothing happened, nobody waits longer for the next thing.
const LONGEST: Duration = Duration::from_secs(2);
/// How much of a journal is read ahead.
const AHEAD: usize = 4096;
/// How fast a replay can be made.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4096.0;

/// A journal being played.
#[derive(Debug)]
pub(crate) struct Player {
    feed: Feed,
    ahead: VecDeque<(Spot, Arc<Record>)>,
    is_read: bool,
    speed: f64,
    paused: bool,
    /// What time it is in the journal, and when that was.
    then: Timestamp,
    since: Instant,
}

impl Player {
    /// Plays a feed from its beginning. At a speed of 0 all of it happens at once.
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

    /// What time it is in the journal.
    pub(crate) fn now(&self) -> Timestamp {
        if self.paused || self.speed == 0.0 || self.state().over {
            return self.then;
        }
        let gone = self.since.elapsed().as_secs_f64() * self.speed;
        let gone = SignedDuration::try_from_secs_f64(gone).unwrap_or_default();
        let now = self.then.saturating_add(gone).unwrap_or(self.then);
        // Where a long wait is cut short, time does not run past what comes next.
        self.ahead.front().map_or(now, |(_, record)| now.min(record.at.max(self.then)))
    }

    /// A key that changes how it runs.
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

    /// What happens next, when its time has come; never, once all has happened or while it is paused.
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
