//! Reports that the shared store became unreachable, or reachable again. Each change is reported once.

use std::fmt;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::{LinkConfig, LinkEvent};

/// A change of the connection to the shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionChange {
    Lost,
    Restored,
}

/// The last report of a link about its connection to the shared store.
pub(super) struct ConnectionReport {
    config: LinkConfig,
    /// Whether the shared store was reported as unreachable.
    unreachable: bool,
    /// Whether the store itself said at the last check that its connection is lost.
    disconnected: bool,
    next_check: Instant,
}

impl fmt::Debug for ConnectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionReport")
            .field("unreachable", &self.unreachable)
            .finish_non_exhaustive()
    }
}

impl ConnectionReport {
    pub(super) fn new(config: &LinkConfig) -> Self {
        let next_check = Instant::now() + config.timing.connection_check;
        Self { config: config.clone(), unreachable: false, disconnected: false, next_check }
    }

    /// Waits until the connection should be checked.
    pub(super) async fn next_check(&self) {
        sleep_until(self.next_check).await;
    }

    /// Asks the store whether it is connected. Without this check, a link that has nothing to do would not notice a
    /// lost connection before its next full check.
    pub(super) fn check(&mut self) -> Option<ConnectionChange> {
        self.next_check = Instant::now() + self.config.timing.connection_check;
        let error = self.config.shared.connection_error();
        let was_disconnected = std::mem::replace(&mut self.disconnected, error.is_some());
        match error {
            Some(why) if !was_disconnected => {
                self.lost(&why);
                Some(ConnectionChange::Lost)
            }
            // Only a pass that succeeds proves that the store works again.
            None if was_disconnected => Some(ConnectionChange::Restored),
            _ => None,
        }
    }

    /// Reports that the store cannot be reached, unless that was reported before.
    pub(super) fn lost(&mut self, why: &str) {
        if !std::mem::replace(&mut self.unreachable, true) {
            let event = LinkEvent::Cut { why: why.to_owned() };
            Arc::clone(&self.config.on_event)(&event);
        }
    }

    /// Reports that the store works again, if it was reported as unreachable.
    pub(super) fn restored(&mut self) {
        if std::mem::take(&mut self.unreachable) {
            Arc::clone(&self.config.on_event)(&LinkEvent::Back);
        }
    }
}
