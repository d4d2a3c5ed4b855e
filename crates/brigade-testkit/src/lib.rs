//! What brigade's own tests share.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

pub mod claims;
pub mod contract;
pub mod env;
pub mod event_log;
pub mod exports;
pub mod files;
pub mod flaky;
pub mod nats_server;
pub mod notes;
pub mod signing;
pub mod work;
