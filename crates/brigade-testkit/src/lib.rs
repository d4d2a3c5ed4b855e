//! Helpers for the tests of all crates: a test team, NATS servers, and the contract tests for stores.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed test panics"
)]

pub mod claims;
pub mod contract;
pub mod env;
pub mod event_authors;
pub mod event_log;
pub mod exports;
pub mod files;
pub mod flaky;
pub mod hostile;
pub mod limits;
pub mod nats_server;
pub mod needs;
pub mod notes;
pub mod permission_requests;
pub mod search;
pub mod signing;
pub mod text_search;
pub mod work;
