//! Changes that took effect, although a later step failed.
//!
//! A change to a team has one step that makes it visible to other programs. If a step after that one fails, for
//! example because the disk is full, the caller must not be told that the change failed: a retry would make the
//! change a second time.

use super::{FileStore, lock_mutex};
use brigade_core::store::{IncompleteWrite, StoreError};

/// The steps after a change that are common to all changes.
pub(crate) const NOT_LOGGED: &str = "the log does not show it yet";
pub(crate) const NOT_SYNCED: &str = "it may not survive a power failure";

impl FileStore {
    /// Keeps the error of a step after the change `done` for [`Store::incomplete_writes`].
    ///
    /// [`Store::incomplete_writes`]: brigade_core::store::Store::incomplete_writes
    pub(crate) fn after_commit<T>(
        &self,
        step: Result<T, StoreError>,
        missing: &'static str,
        done: impl FnOnce() -> String,
    ) -> Option<T> {
        match step {
            Ok(value) => Some(value),
            Err(source) => {
                let incomplete = IncompleteWrite { done: done(), missing, source };
                tracing::warn!(error = %incomplete.source, "{incomplete}");
                lock_mutex(&self.incomplete).push(incomplete);
                None
            }
        }
    }
}
