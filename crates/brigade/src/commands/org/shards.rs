//! `brigade org shards`, `add-shard` and `assign-shard`

use brigade_nats::org::{Folder, Organisation};
use brigade_nats::{NatsOptions, NatsStore};
use serde_json::json;

use super::connect_admin;
use crate::cli::{GlobalArgs, OrgAssignShardArgs, OrgShardArgs};
use crate::error::{CliError, CliTrouble};
use crate::output::{self, STRONG, Table};
use crate::{env, exit};

/// The servers, and the folder with the organisation's record.
struct ShardServers {
    store: NatsStore,
    /// `None` for a server that accepts clients without credentials.
    organisation: Option<(Folder, Organisation)>,
}

pub(super) async fn list(global: &GlobalArgs, asked: &OrgShardArgs) -> Result<u8, CliError> {
    let servers = connect(global, asked).await?;
    let shards = servers.store.shards().await?;
    if global.json {
        output::print_json(&shards)?;
        return Ok(exit::DONE);
    }
    let mut table = Table::new(&["SHARD", "TEAMS", "MESSAGES", "BYTES"]);
    for shard in &shards {
        table.row([
            shard.shard.to_string().into(),
            shard.teams.to_string().into(),
            shard.messages.to_string().into(),
            shard.bytes.to_string().into(),
        ]);
    }
    output::print(&table.render("", output::width()))?;
    Ok(exit::DONE)
}

pub(super) async fn add(global: &GlobalArgs, asked: &OrgShardArgs) -> Result<u8, CliError> {
    let mut servers = connect_to_change(global, asked).await?;
    if let Some((folder, organisation)) = &mut servers.organisation
        && !organisation.shards_added
    {
        // Credentials issued before name the hashed shard. From now on, `org add-member` asks the servers for the shard.
        servers.store.fix_shards(&organisation.teams()).await?;
        folder.record_added_shards(organisation)?;
    }
    let shard = servers.store.add_shard().await?;
    if global.json {
        output::print_json(&json!({ "shard": shard, "shards": shard + 1 }))?;
    } else {
        output::print(&format!(
            "added shard {STRONG}{shard}{STRONG:#}: new teams are now spread over {} shards\n",
            shard + 1
        ))?;
    }
    Ok(exit::DONE)
}

pub(super) async fn assign(
    global: &GlobalArgs,
    asked: &OrgAssignShardArgs,
) -> Result<u8, CliError> {
    let servers = connect_to_change(global, &asked.servers).await?;
    let OrgAssignShardArgs { team, shard, .. } = asked;
    if servers.organisation.is_some_and(|(_, organisation)| !organisation.shards_added) {
        return Err(
            CliError::failed(CliTrouble::NoAddedShard).hint("add one with `brigade org add-shard`")
        );
    }
    servers.store.assign_shard(team, *shard).await?;
    if global.json {
        output::print_json(&json!({ "team": team, "shard": shard }))?;
    } else {
        output::print(&format!("team {STRONG}{team}{STRONG:#} is assigned to shard {shard}\n"))?;
    }
    Ok(exit::DONE)
}

/// Connects for a change. Credentials name the shard of their team, so a change needs the folder with the record of all
/// credentials, if there are any.
async fn connect_to_change(
    global: &GlobalArgs,
    asked: &OrgShardArgs,
) -> Result<ShardServers, CliError> {
    if asked.dir.is_none() && store_options(global)?.creds.is_some() {
        return Err(CliError::usage(CliTrouble::NoOrgFolder)
            .hint("add `--dir DIR` with the folder created by `brigade org init`"));
    }
    connect(global, asked).await
}

async fn connect(global: &GlobalArgs, asked: &OrgShardArgs) -> Result<ShardServers, CliError> {
    let Some(dir) = &asked.dir else {
        let store = NatsStore::connect(store_options(global)?).await?;
        return Ok(ShardServers { store, organisation: None });
    };
    let folder = Folder::open(dir)?;
    let organisation = folder.organisation(asked.org.as_ref())?;
    let store = connect_admin(global, &folder, &organisation).await?;
    Ok(ShardServers { store, organisation: Some((folder, organisation)) })
}

/// Returns the connection options for the server given with `--store`.
fn store_options(global: &GlobalArgs) -> Result<NatsOptions, CliError> {
    let Some(engine) = global.home.nats() else {
        let error = CliError::usage(CliTrouble::NoNatsServer);
        let hint = format!("add `--dir DIR`, or `--store nats://HOST:PORT`, or set {}", env::STORE);
        return Err(error.hint(hint));
    };
    Ok(NatsOptions { connect_wait: global.server_wait().connect, ..engine.store_options() })
}
