//! Tests of links: one team on several hosts.

mod board;
pub(crate) mod flaky;
mod laws;
mod mail;
mod roster;
mod running;
mod world;
