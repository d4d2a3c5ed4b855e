//! One test binary: the command line as people and programs meet it.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod absences;
mod agents;
mod client;
mod errors;
mod graphs;
mod guard;
mod help;
mod house;
mod identity;
mod init;
mod init_files;
mod init_undo;
mod log;
mod mail;
mod mcp;
mod mcp_broken;
mod mcp_forgery;
mod mcp_load;
mod overview;
mod pipes;
mod tasks;
mod teammate;
mod teams;
