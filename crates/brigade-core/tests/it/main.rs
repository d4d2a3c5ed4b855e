//! Integration tests of brigade-core, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails at the first unexpected result"
)]

mod approvals;
mod authority;
mod board;
mod contract;
mod graph;
mod handshake;
mod mail;
mod policy;
mod roster;
mod shutdown;
mod signing;
