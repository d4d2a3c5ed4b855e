//! The credentials with which the supervisor of a NATS store was started. It starts the members with the same ones.

use std::path::{Path, PathBuf};

use brigade_wire::name::TeamName;
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::location::{NatsServers, ServerWait};
use crate::progress::silent;
use crate::registry::{self, Registry};

/// The credentials with which a supervisor was started.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CredentialsRecord {
    pub(crate) file: PathBuf,
    pub(crate) team: TeamName,
    pub(crate) id: String,
}

impl CredentialsRecord {
    /// Describes the credentials in a file; `None` if they are not for a team.
    pub(crate) fn of_file(file: &Path) -> Option<Self> {
        let (team, id) = NatsServers::credentials_id(file)?;
        Some(Self { file: file.to_owned(), team, id })
    }

    /// Returns the recorded credentials.
    pub(crate) fn read(registry: &Registry) -> Result<Option<Self>, HostError> {
        registry::read(&registry.credentials())
    }

    /// Records that a supervisor is about to be started with the credentials in this file.
    pub(crate) fn write(registry: &Registry, file: Option<&Path>) -> Result<(), HostError> {
        match file.and_then(Self::of_file) {
            Some(record) => registry::write(&registry.credentials(), &record),
            None => registry::remove(&registry.credentials()),
        }
    }

    /// Returns whether processes with these credentials cannot connect any more: the server refuses them, or the file was
    /// removed or contains others.
    pub(crate) async fn is_obsolete(&self, servers: &NatsServers) -> bool {
        let in_file = NatsServers::credentials_id(&self.file);
        if in_file.is_none_or(|(_, id)| id != self.id) {
            return true;
        }
        let servers = NatsServers { creds: Some(self.file.clone()), ..servers.clone() };
        let opened = servers.open(false, ServerWait::NONE, &silent).await;
        opened.is_err_and(|error| error.is_unreachable() && !error.is_temporary())
    }
}
