//! Errors from operations on an operator's folder.

use std::io;
use std::path::PathBuf;

use brigade_wire::name::{MemberName, TeamName};
use thiserror::Error;

/// Why an operation on an operator's folder failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OrgError {
    /// The file system failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file cannot be parsed.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The folder holds no operator.
    #[error("{} is not an operator's folder", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder was created for other servers.
    #[error("{} was created with other servers", dir.display())]
    OtherServers {
        /// The folder.
        dir: PathBuf,
    },
    /// An organisation with this name exists.
    #[error("organisation {name} already exists")]
    Exists {
        /// The name.
        name: TeamName,
    },
    /// No organisation has this name.
    #[error("no organisation {name}")]
    NoOrganisation {
        /// The name.
        name: TeamName,
        /// The existing organisations.
        there: Vec<TeamName>,
    },
    /// The caller named no organisation, and there are several.
    #[error("there are several organisations")]
    Several {
        /// The existing organisations.
        there: Vec<TeamName>,
    },
    /// The number of shards is not allowed.
    #[error("the number of shards must be 1, 4 or 16, not {shards}")]
    Shards {
        /// The requested number.
        shards: u16,
    },
    /// Shards were added to the organisation, and the caller did not ask the servers for the team's shard.
    #[error("the servers have to name the shard of team {team}, because shards were added")]
    UnknownShard {
        /// The team.
        team: TeamName,
    },
    /// The caller asked for more replicas than there are servers.
    #[error("{replicas} replicas need {replicas} servers; this operator has {servers}")]
    Replicas {
        /// The requested number.
        replicas: usize,
        /// Number of servers.
        servers: usize,
    },
    /// The file already exists.
    #[error("{} already exists", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// The member has no credentials to revoke.
    #[error("no valid credentials were issued for {name} of team {team}")]
    NoCredentials {
        /// The team.
        team: TeamName,
        /// The member.
        name: MemberName,
    },
    /// Signing failed.
    #[error("a key could not be used")]
    Key(#[from] nkeys::error::Error),
}
