//! Tests of the file store, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first unexpected result"
)]

mod contract;
mod deep_json;
mod event_log;
mod files;
mod helpers;
mod inboxes;
mod index;
mod interrupted;
mod regressions;
mod retention;
