//! Integration tests of this crate, compiled into one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod delivery;
mod drivers;
mod resend;
mod work;
mod workers;
