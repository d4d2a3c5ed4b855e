//! `brigade org`

mod add_member;
mod apply;
mod engine;
mod init;
mod list;
mod revoke;

use brigade_nats::Options;
use brigade_nats::org::{Folder, PushError};

use crate::cli::{Global, OrgCommand};
use crate::error::CliError;

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
