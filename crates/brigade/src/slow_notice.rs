//! Telling a person why nothing happens.

use std::pin::pin;
use std::time::Duration;

use brigade_files::LOCK_WAIT;

use crate::output;

/// How long nothing is said. Most waits are over in a few milliseconds.
const QUIET: Duration = Duration::from_secs(1);

/// Does what may have to wait for a lock; if it does, says so once.
pub(crate) async fn patiently<T>(work: impl Future<Output = T>) -> T {
    let secs = LOCK_WAIT.as_secs();
    saying(&format!("waiting: another program holds a lock (for up to {secs} s)"), work).await
}

/// Does what may take a while; if it does, says these words once.
pub(crate) async fn saying<T>(words: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(QUIET, work.as_mut()).await {
        return done;
    }
    output::say(words);
    work.await
}
