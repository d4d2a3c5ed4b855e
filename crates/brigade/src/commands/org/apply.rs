//! `brigade org apply`

use brigade_nats::NatsStore;
use brigade_nats::org::{Folder, push};
use jiff::Timestamp;
use serde_json::json;

use super::{next_step, push_failed, revoke, servers};
use crate::cli::{GlobalArgs, OrgFolderArgs};
use crate::error::CliError;
use crate::slow_notice::with_notice;
use crate::{exit, output};

pub(super) async fn run(global: &GlobalArgs, asked: &OrgFolderArgs) -> Result<u8, CliError> {
    let json = global.json;
    let folder = Folder::open(&asked.dir)?;
    let organisation = folder.organisation(asked.org.as_ref())?;
    let mut options = servers(&folder);
    // The operator has just started the servers.
    options.connect_wait = global.server_wait().connect;
    let addresses = options.servers.join(", ");
    let notice = format!("waiting for {addresses} to answer");
    let pushed = with_notice(&notice, push(&folder, &options, Timestamp::now())).await;
    let pushed = pushed.map_err(|error| push_failed(error, &options))?;
    options.creds = Some(folder.admin(&organisation.name));
    options.settings = organisation.settings();
    // Connecting as the administrator creates missing streams.
    let _connected = NatsStore::connect(options).await?;
    if json {
        output::print_json(&json!({ "organisation": organisation.name, "pushed": pushed }))?;
    }
    revoke::report(json, &pushed)?;
    if !json {
        output::print(&format!(
            "the streams of {} are ready\n\nnext, for a team named demo:\n  {}\n",
            organisation.name,
            next_step::add_lead(&folder, &organisation.name)
        ))?;
    }
    Ok(if pushed.iter().all(|push| push.taken) { exit::DONE } else { exit::FAILED })
}
