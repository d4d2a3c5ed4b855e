//! Being told to end.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Trouble};

/// How a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Its terminal is gone.
    HungUp,
    /// Somebody wants it to end.
    Wanted,
}

/// Ends when this process is told to end.
pub(crate) async fn told_to_end() -> Result<Told, CliError> {
    let listen = |kind| {
        signal(kind).map_err(|source| {
            let doing = "listen to signals".into();
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
