//! Termination signals.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Trouble};

/// Why this process should exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The terminal was closed (SIGHUP).
    HungUp,
    /// SIGINT or SIGTERM.
    Wanted,
}

/// Waits for SIGHUP, SIGINT or SIGTERM.
pub(crate) async fn told_to_end() -> Result<Told, CliError> {
    let listen = |kind| {
        signal(kind).map_err(|source| {
            let doing = "listen for signals".into();
            CliError::failed(Trouble::Io { doing, source })
        })
    };
    let mut hangup = listen(SignalKind::hangup())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = hangup.recv() => Told::HungUp,
        _ = interrupt.recv() => Told::Wanted,
        _ = terminate.recv() => Told::Wanted,
    })
}
