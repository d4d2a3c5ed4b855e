//! The scripted model, asked as the real programs ask it.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats;
mod recorded;
mod server;
