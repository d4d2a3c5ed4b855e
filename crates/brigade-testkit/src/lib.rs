//! Helpers for the tests of all crates: a test team, NATS servers, and the contract of a store.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test panics"
)]

pub mod carried;
pub mod chronicled;
pub mod claimed;
pub mod contract;
pub mod engine;
pub mod house;
pub mod remembered;
pub mod worked;
