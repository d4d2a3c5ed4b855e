//! Errors from the NATS server, converted to [`StoreError`].

use brigade_core::store::StoreError;
use thiserror::Error;

/// Why an operation on the NATS server failed.
#[derive(Debug, Error)]
pub(crate) enum NatsError {
    /// The server is too old.
    #[error("the server is nats-server {found}; brigade needs {needed} or later")]
    Version { found: String, needed: &'static str },
    /// A newer version of brigade has changed the layout.
    #[error("its streams have layout {version}; this version of brigade is too old for it")]
    NewerLayout { version: u32 },
    /// The server did not answer, although the request was retried until the time limit.
    #[error("the NATS server did not answer for {secs} s: {last}")]
    Timeout { secs: u64, last: String },
    /// The server is running, but JetStream does not answer.
    #[error("JetStream did not answer for {secs} s: {why}")]
    NoJetStream { secs: u64, why: &'static str },
    /// The server returned an error.
    #[error("{0}")]
    Server(String),
    /// The server's answer could not be parsed.
    #[error("unexpected answer from the NATS server: {0}")]
    Malformed(String),
}

impl NatsError {
    /// Converts this error to a [`StoreError`]; `doing` completes the sentence "cannot …".
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> StoreError {
        StoreError::Engine { doing: doing.into(), source: Box::new(self) }
    }
}
