//! One test binary: what the crate promises, on real files and on made-up ones.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be, and prints what it saw"
)]

#[path = "../../fuzz/laws.rs"]
mod laws;

mod absences;
mod bodies;
mod envelopes;
mod files;
mod fixtures;
mod inboxes;
mod names;
mod properties;
mod random;
mod settings;
mod strange_bodies;
mod tasks;
mod teams;
