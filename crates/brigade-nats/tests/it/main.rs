//! Tests of the NATS store against real NATS servers.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic at the first failure, and prints what it measured"
)]

mod attacks;
mod contract;
mod crowded;
mod event_matrix;
mod forgery;
mod linked;
mod operation;
mod own_entry;
mod own_watch;
mod seats;
mod served;
mod several;
mod shards;
