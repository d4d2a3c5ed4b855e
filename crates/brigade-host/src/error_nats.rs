//! Errors of NATS servers and organisations, with hints.

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
                Some("make one with `brigade org init NAME --dir DIR`, or name one with --dir".into()),
            ),
            OrgError::OtherServers { .. } => (
                ErrorKind::Failed,
                Some("leave out --nodes for another organisation on the same servers, or use another folder".into()),
            ),
            OrgError::NoOrganisation { there, .. } | OrgError::Several { there } => {
                (ErrorKind::Failed, Some(format!("choose with --org: {}", names(there))))
            }
            OrgError::Exists { .. } => (
                ErrorKind::Failed,
                Some("give its members credentials with `brigade org add-member`".into()),
            ),
            OrgError::Shards { .. } => (ErrorKind::Usage, None),
            OrgError::Replicas { .. } => {
                (ErrorKind::Usage, Some("name the servers with --nodes HOST:PORT,HOST:PORT,HOST:PORT".into()))
            }
            OrgError::InTheWay { .. } => (
                ErrorKind::Failed,
                Some("nothing is overwritten: use another --out, or revoke what is there".into()),
            ),
            OrgError::NobodyThere { .. } => {
                (ErrorKind::Nothing, Some("see who has with `brigade org list`".into()))
            }
            OrgError::Damaged { .. } => {
                (ErrorKind::Failed, Some("take it from a copy of the folder".into()))
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
                .hint("is it the right engine, and are the credentials those of its admin?"),
            BackupError::NoManifest { .. } => Self::failed(error)
                .hint("a backup that was broken off has none; name the folder of a whole one"),
            BackupError::Changed { .. } => {
                Self::failed(error).hint("nothing was restored; take it from another copy")
            }
            error => Self::failed(error),
        }
    }
}
