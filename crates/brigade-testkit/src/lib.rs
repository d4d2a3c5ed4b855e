//! What brigade's own tests share.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

pub mod carried;
pub mod chronicled;
pub mod claimed;
pub mod contract;
pub mod engine;
pub mod house;
pub mod remembered;
pub mod worked;
