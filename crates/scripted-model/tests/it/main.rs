//! Sends requests to the scripted model as the real agents do.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats;
mod recorded;
mod server;
