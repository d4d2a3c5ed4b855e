//! Prints a notice if an operation takes longer than a second.

use std::pin::pin;
use std::time::Duration;

use brigade_files::DEFAULT_LOCK_WAIT;

use crate::output;

/// How long to wait before printing the notice. Most operations finish within a few milliseconds.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Runs an operation that may wait for a file lock, and prints a notice if the wait takes longer than a second.
pub(crate) async fn with_lock_notice<T>(work: impl Future<Output = T>) -> T {
    let secs = DEFAULT_LOCK_WAIT.as_secs();
    with_notice(&format!("waiting: another program holds a lock (for up to {secs} s)"), work).await
}

/// Runs an operation, and prints this notice once if the operation takes longer than a second.
pub(crate) async fn with_notice<T>(notice: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(NOTICE_DELAY, work.as_mut()).await {
        return done;
    }
    output::eprint_line(notice);
    work.await
}
