//! `brigade org`

mod add_member;
mod apply;
mod engine;
mod init;
mod list;
mod revoke;

use brigade_nats::Options;
use brigade_nats::org::{Folder, OrgError, PushError};

use crate::cli::{Global, OrgCommand};
use crate::error::{CliError, Kind};

pub(crate) async fn run(global: Global, command: OrgCommand) -> Result<u8, CliError> {
    let json = global.json;
    match command {
        OrgCommand::Init(init) => init::run(json, init),
        OrgCommand::Apply(folder) => apply::run(json, &folder).await,
        OrgCommand::AddMember(asked) => add_member::run(json, asked),
        OrgCommand::Revoke(asked) => revoke::run(json, &asked).await,
        OrgCommand::List(folder) => list::run(json, &folder),
        OrgCommand::Engine(command) => engine::run(&global, command).await,
    }
}

/// Connection options for the servers of an organisation's folder.
fn servers(folder: &Folder) -> Options {
    let ca = folder.cluster().tls.as_ref().and_then(|tls| tls.ca.clone());
    Options { servers: folder.cluster().urls(), ca, ..Options::default() }
}

impl From<OrgError> for CliError {
    fn from(error: OrgError) -> Self {
        let names = |names: &[brigade_wire::name::TeamName]| {
            names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (kind, hint) = match &error {
            OrgError::NoFolder { .. } => (
                Kind::Failed,
                Some("create one with `brigade org init NAME --dir DIR`, or choose a folder with --dir".into()),
            ),
            OrgError::OtherServers { .. } => (
                Kind::Failed,
                Some("omit --nodes to add an organisation on the same servers, or use another folder".into()),
            ),
            OrgError::NoOrganisation { there, .. } | OrgError::Several { there } => {
                (Kind::Failed, Some(format!("choose with --org: {}", names(there))))
            }
            OrgError::Exists { .. } => (
                Kind::Failed,
                Some("create credentials for its members with `brigade org add-member`".into()),
            ),
            OrgError::Shards { .. } => (Kind::Usage, None),
            OrgError::Replicas { .. } => {
                (Kind::Usage, Some("list the servers with --nodes HOST:PORT,HOST:PORT,HOST:PORT".into()))
            }
            OrgError::InTheWay { .. } => (
                Kind::Failed,
                Some("choose another --out file, or revoke the existing credentials".into()),
            ),
            OrgError::NobodyThere { .. } => {
                (Kind::Nothing, Some("`brigade org list` shows all credentials".into()))
            }
            OrgError::Damaged { .. } => {
                (Kind::Failed, Some("restore it from a copy of the folder".into()))
            }
            _ => (Kind::Failed, None),
        };
        let error = Self::new(kind, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The error for servers that could not be updated, with hints.
fn push_failed(error: PushError, servers: &Options) -> CliError {
    match error {
        PushError::Org(error) => error.into(),
        error => CliError::failed(error).hint(format!(
            "are they running at {}? update them later with `brigade org apply` or a restart",
            servers.servers.join(", ")
        )),
    }
}
