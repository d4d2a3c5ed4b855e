//! All integration tests of the crate in one binary, on recorded and generated files.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a failed test panics, and may print"
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
