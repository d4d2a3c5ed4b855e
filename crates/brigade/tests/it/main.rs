//! One test binary: the command line as people and programs meet it.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod errors;
mod graphs;
mod help;
mod house;
mod identity;
mod log;
mod mail;
mod overview;
mod pipes;
mod tasks;
mod teams;
