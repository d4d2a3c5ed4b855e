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

/// The servers of a folder, for whoever has its keys.
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
                Some("make one with `brigade org init NAME --dir DIR`, or name one with --dir".into()),
            ),
            OrgError::OtherServers { .. } => (
                Kind::Failed,
                Some("leave out --nodes for another organisation on the same servers, or use another folder".into()),
            ),
            OrgError::NoOrganisation { there, .. } | OrgError::Several { there } => {
                (Kind::Failed, Some(format!("choose with --org: {}", names(there))))
            }
            OrgError::Exists { .. } => (
                Kind::Failed,
                Some("give its members credentials with `brigade org add-member`".into()),
            ),
            OrgError::Shards { .. } => (Kind::Usage, None),
            OrgError::Replicas { .. } => {
                (Kind::Usage, Some("name the servers with --nodes HOST:PORT,HOST:PORT,HOST:PORT".into()))
            }
            OrgError::InTheWay { .. } => (
                Kind::Failed,
                Some("nothing is overwritten: use another --out, or revoke what is there".into()),
            ),
            OrgError::NobodyThere { .. } => {
                (Kind::Nothing, Some("see who has with `brigade org list`".into()))
            }
            OrgError::Damaged { .. } => {
                (Kind::Failed, Some("take it from a copy of the folder".into()))
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

/// Why the servers were not told, and what holds until they are.
fn not_told(error: PushError, servers: &Options) -> CliError {
    match error {
        PushError::Org(error) => error.into(),
        error => CliError::failed(error).hint(format!(
            "are they running at {}? `brigade org apply` tells them later, and so does starting them again",
            servers.servers.join(", ")
        )),
    }
}
