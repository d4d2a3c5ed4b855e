//! What can go wrong with the engine, in words.

use brigade_core::store::StoreError;
use thiserror::Error;

/// What can go wrong with the engine.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    /// No server took the connection.
    #[error("no connection to {servers}: {why}")]
    Unreachable { servers: String, why: String },
    /// The server is too old.
    #[error("the server is nats-server {found}; brigade needs {needed} or later")]
    Version { found: String, needed: &'static str },
    /// Nobody answered in time, though it was tried again and again.
    #[error("the engine did not answer for {secs} s: {last}")]
    Silent { secs: u64, last: String },
    /// There is a server, and nothing in it that keeps anything.
    #[error("JetStream has not answered for {secs} s: {why}")]
    NoJetStream { secs: u64, why: &'static str },
    /// The engine said no.
    #[error("{0}")]
    Said(String),
    /// It answered something that cannot be understood.
    #[error("it answered what cannot be understood: {0}")]
    Garbled(String),
}

impl Trouble {
    /// As an error of a store that was doing something.
    pub(crate) fn doing(self, doing: impl Into<String>) -> StoreError {
        StoreError::Engine { doing: doing.into(), source: Box::new(self) }
    }
}
