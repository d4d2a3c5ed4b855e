//! Tests of the scripted model, with requests like those of the real agent programs.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats;
mod recorded;
mod server;
