//! `brigade org`

mod add_member;
mod apply;
mod engine;
mod init;
mod list;
mod next_step;
mod revoke;
mod shards;

pub(super) use self::revoke::revoke_stopped;

use brigade_core::store::StoreError;
use brigade_nats::connect_error::ConnectFailure;
use brigade_nats::org::{Folder, Organisation, PushError};
use brigade_nats::{NatsOptions, NatsStore};

use crate::cli::{GlobalArgs, OrgCommand};
use crate::error::CliError;

pub(crate) async fn run(global: GlobalArgs, command: OrgCommand) -> Result<u8, CliError> {
    let json = global.json;
    match command {
        OrgCommand::Init(init) => init::run(json, init),
        OrgCommand::Apply(folder) => apply::run(&global, &folder).await,
        OrgCommand::AddMember(asked) => add_member::run(&global, asked).await,
        OrgCommand::Revoke(asked) => revoke::run(json, &asked).await,
        OrgCommand::List(folder) => list::run(json, &folder),
        OrgCommand::Shards(asked) => shards::list(&global, &asked).await,
        OrgCommand::AddShard(asked) => shards::add(&global, &asked).await,
        OrgCommand::AssignShard(asked) => shards::assign(&global, &asked).await,
        OrgCommand::Engine(command) => engine::run(&global, command).await,
    }
}

/// Returns the connection options for the servers in an organisation's folder.
fn servers(folder: &Folder) -> NatsOptions {
    let ca = folder.cluster().tls.as_ref().and_then(|tls| tls.ca.clone());
    NatsOptions { servers: folder.cluster().urls(), ca, ..NatsOptions::default() }
}

/// Connects to the servers of an organisation, as its administrator.
async fn connect_admin(
    global: &GlobalArgs,
    folder: &Folder,
    organisation: &Organisation,
) -> Result<NatsStore, CliError> {
    let options = NatsOptions {
        creds: Some(folder.admin(&organisation.name)),
        settings: organisation.settings(),
        connect_wait: global.server_wait().connect,
        ..servers(folder)
    };
    Ok(NatsStore::connect(options).await?)
}

/// Returns the error for servers that could not be updated, with a hint.
fn push_failed(error: PushError, servers: &NatsOptions) -> CliError {
    match error {
        PushError::Org(error) => error.into(),
        // The servers know another operator.
        PushError::Connect(failure @ ConnectFailure::Refused { .. }) => {
            CliError::failed(failure).hint(format!(
                "start the servers at {} with the configuration in this folder (server-1.conf …)",
                servers.servers.join(", ")
            ))
        }
        PushError::Connect(failure) => CliError::from(StoreError::from(failure))
            .hint("update the servers with `brigade org apply` or a restart"),
        error => CliError::failed(error).hint(format!(
            "check that the servers are running at {}; update them with `brigade org apply` or a restart",
            servers.servers.join(", ")
        )),
    }
}
