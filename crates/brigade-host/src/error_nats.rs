//! Converts errors from the NATS store, its backups and its organisations into a `HostError`, and adds hints.

use brigade_nats::backup::BackupError;
use brigade_nats::org::OrgError;

use crate::error::{ErrorKind, HostError};

impl From<OrgError> for HostError {
    fn from(error: OrgError) -> Self {
        let names = |names: &[brigade_wire::name::TeamName]| {
            names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (kind, hint) = match &error {
            OrgError::NoFolder { .. } => (
                ErrorKind::Failed,
                Some("create an organisation with `brigade org init NAME --dir DIR`, or name another folder with --dir".into()),
            ),
            OrgError::OtherServers { .. } => (
                ErrorKind::Failed,
                Some("omit --nodes to add an organisation on the same servers; for other servers, use another --dir".into()),
            ),
            OrgError::NoOrganisation { there, .. } | OrgError::Several { there } => {
                (ErrorKind::Failed, Some(format!("choose an organisation with --org: {}", names(there))))
            }
            OrgError::Exists { .. } => (
                ErrorKind::Failed,
                Some("give the members credentials with `brigade org add-member`".into()),
            ),
            OrgError::Shards { .. } => (ErrorKind::Usage, None),
            OrgError::Replicas { .. } => {
                (ErrorKind::Usage, Some("name the servers with --nodes HOST:PORT,HOST:PORT,HOST:PORT".into()))
            }
            OrgError::FileExists { .. } => (
                ErrorKind::Failed,
                Some("brigade overwrites nothing: use another --out, or revoke the existing credentials".into()),
            ),
            OrgError::NoCredentials { .. } => {
                (ErrorKind::Nothing, Some("`brigade org list` shows the members with credentials".into()))
            }
            OrgError::Damaged { .. } => {
                (ErrorKind::Failed, Some("restore the file from a backup of the folder".into()))
            }
            _ => (ErrorKind::Failed, None),
        };
        let error = Self::new(kind, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<BackupError> for HostError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => error.into(),
            BackupError::NoStreams => Self::failed(error)
                .hint("is it the right NATS server, and are these the credentials of its admin?"),
            BackupError::NoManifest { .. } => Self::failed(error).hint(
                "an interrupted backup has no manifest; name the folder of a complete backup",
            ),
            BackupError::Changed { .. } => {
                Self::failed(error).hint("nothing was restored; use another copy of the backup")
            }
            error => Self::failed(error),
        }
    }
}
