//! Integration tests of brigade-core, in one binary.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails at the first unexpected result"
)]

mod actions;
mod answers;
mod approvals;
mod authority;
mod board;
mod contract;
mod graph;
mod handshake;
mod mail;
mod policy;
#[path = "../../fuzz/laws.rs"]
mod policy_laws;
mod roster;
mod shutdown;
mod signing;
mod task_story;
