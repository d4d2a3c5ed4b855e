//! The store on real servers.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise, and says what it measured"
)]

mod attacks;
mod contract;
mod forgery;
mod operation;
mod seats;
mod served;
