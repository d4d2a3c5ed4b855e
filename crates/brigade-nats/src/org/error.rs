//! Why something was not done to an operator's folder.

use std::io;
use std::path::PathBuf;

use brigade_wire::name::{MemberName, TeamName};
use thiserror::Error;

/// Why something was not done to an operator's folder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OrgError {
    /// The file system said no.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no operator in the folder.
    #[error("{} is no operator's folder", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// The servers are others.
    #[error("{} has its servers already", dir.display())]
    OtherServers {
        /// The folder.
        dir: PathBuf,
    },
    /// There is one of that name.
    #[error("there is an organisation {name} already")]
    Exists {
        /// The name.
        name: TeamName,
    },
    /// There is none of that name.
    #[error("there is no organisation {name}")]
    NoOrganisation {
        /// The name.
        name: TeamName,
        /// Those there are.
        there: Vec<TeamName>,
    },
    /// There are several.
    #[error("there are several organisations")]
    Several {
        /// All of them.
        there: Vec<TeamName>,
    },
    /// Only so many shards there can be.
    #[error("there can be 1, 4 or 16 shards, and not {shards}")]
    Shards {
        /// How many were asked for.
        shards: u16,
    },
    /// There are fewer servers than copies.
    #[error("{replicas} replicas need as many servers; there are {servers}")]
    Replicas {
        /// How many were asked for.
        replicas: usize,
        /// How many there are.
        servers: usize,
    },
    /// The file is there already.
    #[error("{} is there already", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// Nobody has such credentials.
    #[error("nobody has credentials as {name} of team {team}")]
    NobodyThere {
        /// The team.
        team: TeamName,
        /// The member.
        name: MemberName,
    },
    /// A key does not sign.
    #[error("a key cannot be used")]
    Key(#[from] nkeys::error::Error),
}
