//! What time it is, asked in one place so that tests can answer.
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

/// Where the time comes from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock for tests: each look at it is one second later than the last.
#[derive(Debug)]
pub struct SteppingClock(Mutex<Timestamp>);

impl SteppingClock {
    /// A clock whose first answer is `start`.
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

/// The time as Claude Code writes it: ISO 8601 in UTC with milliseconds.
pub fn wire_time(at: Timestamp) -> String {
    format!("{at:.3}")
}
