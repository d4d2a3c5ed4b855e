//! A random number generator.

use std::time::Duration;

use uuid::Uuid;

/// A random number generator (xorshift).
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4().as_u64_pair().0 | 1)
    }

    /// Returns a random number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Returns a random index into a list of this length.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    /// Returns a random duration below this limit.
    pub(crate) fn moment(&mut self, milliseconds: u64) -> Duration {
        Duration::from_micros(self.below(milliseconds * 1_000))
    }
}
