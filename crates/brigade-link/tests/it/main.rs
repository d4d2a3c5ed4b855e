//! Tests of one team on several hosts, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test stops at the first unexpected result"
)]

mod board;
mod ending;
mod laws;
mod mail;
mod roster;
mod running;
mod world;
