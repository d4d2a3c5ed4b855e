//! `brigade org revoke`

use std::path::Path;

use brigade_nats::org::{Folder, UpdateResult, push};
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde_json::json;

use super::{push_failed, servers};
use crate::cli::OrgRevokeArgs;
use crate::error::CliError;
use crate::{exit, output};

/// Revokes the credentials of a member that was stopped or removed.
pub(crate) async fn revoke_stopped(
    dir: &Path,
    team: &TeamName,
    name: &MemberName,
) -> Result<u8, CliError> {
    let now = Timestamp::now();
    let stopped = |error: CliError| error.hint(format!("{name} was stopped"));
    let folder = Folder::open(dir).map_err(|error| stopped(error.into()))?;
    let mut organisation = folder.organisation(None).map_err(|error| stopped(error.into()))?;
    let revoked = folder.revoke(&mut organisation, team, name, now);
    for seat in revoked.map_err(|error| stopped(error.into()))? {
        output::note(&format!("revoked the credentials {}", seat.file.display()));
        let others = seat.members.iter().filter(|member| *member != name);
        let others: Vec<&str> = others.map(MemberName::as_str).collect();
        if !others.is_empty() {
            output::note(&format!(
                "they were also the credentials of {}; make new ones with `brigade org add-member {team} {}`",
                others.join(", "),
                others.join(" ")
            ));
        }
    }
    let options = servers(&folder);
    let pushed = push(&folder, &options, now).await;
    let pushed = pushed.map_err(|error| {
        let error = stopped(push_failed(error, &options));
        error.hint("the revoked credentials work until the servers are updated")
    })?;
    for push in pushed.iter().filter(|push| !push.taken) {
        output::note(&format!("server {} refused: {}", push.server, push.said));
    }
    Ok(if pushed.iter().all(|push| push.taken) { exit::DONE } else { exit::FAILED })
}

pub(super) async fn run(json: bool, asked: &OrgRevokeArgs) -> Result<u8, CliError> {
    let now = Timestamp::now();
    let folder = Folder::open(&asked.folder.dir)?;
    let mut organisation = folder.organisation(asked.folder.org.as_ref())?;
    let revoked = folder.revoke(&mut organisation, &asked.team, &asked.name, now)?;
    let options = servers(&folder);
    // The revocation is recorded even if the servers cannot be reached.
    let pushed = if asked.offline { None } else { Some(push(&folder, &options, now).await) };
    if json {
        let pushed = pushed.as_ref().and_then(|pushed| pushed.as_ref().ok());
        output::print_json(&json!({ "revoked": revoked, "pushed": pushed }))?;
    } else {
        let mut text = String::new();
        for seat in &revoked {
            let names: Vec<String> = seat.members.iter().map(ToString::to_string).collect();
            let line = format!(
                "revoked {} of team {} ({})\n",
                names.join(", "),
                seat.team,
                seat.file.display()
            );
            text.push_str(&line);
        }
        output::print(&text)?;
    }
    match pushed {
        None => {
            output::note("not active on the servers yet: run `brigade org apply` or restart them");
            Ok(exit::DONE)
        }
        Some(Ok(pushed)) => {
            report(json, &pushed)?;
            Ok(if pushed.iter().all(|push| push.taken) { exit::DONE } else { exit::FAILED })
        }
        Some(Err(error)) => Err(push_failed(error, &options)
            .hint("the revoked credentials work until the servers are updated")),
    }
}

/// Reports which servers accepted the update.
pub(super) fn report(json: bool, pushed: &[UpdateResult]) -> Result<(), CliError> {
    for push in pushed.iter().filter(|push| !push.taken) {
        output::note(&format!("server {} refused: {}", push.server, push.said));
    }
    if !json {
        let mut names: Vec<&str> =
            pushed.iter().filter(|push| push.taken).map(|push| push.server.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        output::print(&format!("updated the servers: {}\n", names.join(", ")))?;
    }
    Ok(())
}
