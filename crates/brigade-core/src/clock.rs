//! The current time, behind a trait so that tests can control it.
//!
//! ```
//! use brigade_core::clock::{Clock, SteppingClock, Timestamp, wire_time};
//!
//! let clock = SteppingClock::from(Timestamp::UNIX_EPOCH);
//! assert_eq!(wire_time(clock.now()), "1970-01-01T00:00:00.000Z");
//! assert_eq!(wire_time(clock.now()), "1970-01-01T00:00:01.000Z");
//! ```

use std::fmt;
use std::sync::Mutex;

use jiff::SignedDuration;
pub use jiff::Timestamp;

/// A source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock for tests. Each call returns a time that is one second later than the previous call's.
#[derive(Debug)]
pub struct SteppingClock(Mutex<Timestamp>);

impl SteppingClock {
    /// Creates a clock whose first call returns `start`.
    pub fn from(start: Timestamp) -> Self {
        Self(Mutex::new(start))
    }
}

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        let mut next = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = *next;
        *next = now.saturating_add(SignedDuration::from_secs(1)).unwrap_or(now);
        now
    }
}

/// Formats a time as Claude Code does: ISO 8601 in UTC with milliseconds.
pub fn wire_time(at: Timestamp) -> String {
    format!("{at:.3}")
}
