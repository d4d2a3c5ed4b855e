//! Signals that ask this process to end.

use std::fmt;

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{HostError, failed};

/// Why this process should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// The terminal of this process is gone.
    HungUp,
    /// A person or a program asked this process to end.
    Requested,
}

impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HungUp => "its pane was closed",
            Self::Requested => "its process was terminated",
        })
    }
}

/// Carries out an operation until it is complete. Returns `None` if this process receives a signal before that.
pub async fn until_stop_signal<T>(
    operation: impl Future<Output = Result<T, HostError>>,
) -> Result<Option<T>, HostError> {
    tokio::select! {
        // Listen first: before that, a signal ends this process at once.
        biased;
        signal = stop_signal() => signal.map(|_| None),
        done = operation => done.map(Some),
    }
}

/// Waits until this process receives a signal that asks it to end.
pub async fn stop_signal() -> Result<StopSignal, HostError> {
    let listen = |kind| signal(kind).map_err(|source| failed("listen for signals", source));
    let mut hangup = listen(SignalKind::hangup())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = hangup.recv() => StopSignal::HungUp,
        _ = interrupt.recv() => StopSignal::Requested,
        _ = terminate.recv() => StopSignal::Requested,
    })
}
