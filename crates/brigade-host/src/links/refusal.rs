//! Finds out whether the NATS server refuses the credentials of running links.
//!
//! A server closes the connection of revoked credentials. For the client library that is a lost connection, so a running
//! link would try again for ever.

use std::sync::Arc;

use super::process::HeldLink;
use crate::error::HostError;
use crate::link_registry::LinkCondition;
use crate::location::{NatsServers, ServerWait};
use crate::progress;

/// How many checks in a row have to fail before the links end. A server that has just started may not know all accounts
/// yet.
const MAX_REFUSALS: usize = 3;

/// Counts how often the server refused the connection.
#[derive(Debug, Default)]
pub(super) struct RefusalWatch {
    refusals: usize,
}

impl RefusalWatch {
    /// If a link has lost its connection, opens another connection, and reports why that fails. Returns the error if the
    /// server has refused the connection several times.
    pub(super) async fn check(
        &mut self,
        servers: &NatsServers,
        links: impl Iterator<Item = &Arc<HeldLink>>,
    ) -> Result<(), HostError> {
        let lost: Vec<&Arc<HeldLink>> =
            links.filter(|link| link.state() == LinkCondition::Unreachable).collect();
        if lost.is_empty() {
            self.refusals = 0;
            return Ok(());
        }
        let Err(error) = servers.open(false, ServerWait::NONE, &progress::silent).await else {
            self.refusals = 0;
            return Ok(());
        };
        // The reason of the client library is less precise.
        for link in lost.iter().filter(|link| link.state() == LinkCondition::Unreachable) {
            link.report(LinkCondition::Unreachable, Some(error.to_agent_text()));
        }
        let is_refused = error.is_unreachable() && !error.is_temporary();
        self.refusals = if is_refused { self.refusals + 1 } else { 0 };
        match self.refusals {
            0..MAX_REFUSALS => Ok(()),
            _ => Err(error),
        }
    }
}
