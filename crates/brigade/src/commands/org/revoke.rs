//! `brigade org revoke`

use brigade_nats::org::{Folder, Pushed, push};
use jiff::Timestamp;
use serde_json::json;

use super::{not_told, servers};
use crate::cli::OrgRevoke;
use crate::error::CliError;
use crate::{exit, output};

pub(super) async fn run(json: bool, asked: &OrgRevoke) -> Result<u8, CliError> {
    let now = Timestamp::now();
    let folder = Folder::open(&asked.folder.dir)?;
    let mut organisation = folder.organisation(asked.folder.org.as_ref())?;
    let revoked = folder.revoke(&mut organisation, &asked.team, &asked.name, now)?;
    let options = servers(&folder);
    // It is written down, whatever the servers say now.
    let told = if asked.offline { None } else { Some(push(&folder, &options, now).await) };
    if json {
        let pushed = told.as_ref().and_then(|told| told.as_ref().ok());
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
    match told {
        None => {
            output::note("the servers do not know yet: `brigade org apply`, or start them again");
            Ok(exit::DONE)
        }
        Some(Ok(pushed)) => {
            tell(json, &pushed)?;
            Ok(if pushed.iter().all(|its| its.taken) { exit::DONE } else { exit::FAILED })
        }
        Some(Err(error)) => Err(not_told(error, &options)
            .hint("until then who is connected stays so, and the old credentials are let in")),
    }
}

/// Who of the servers knows.
pub(super) fn tell(json: bool, pushed: &[Pushed]) -> Result<(), CliError> {
    for its in pushed.iter().filter(|its| !its.taken) {
        output::note(&format!("server {} refused: {}", its.server, its.said));
    }
    if !json {
        let mut names: Vec<&str> =
            pushed.iter().filter(|its| its.taken).map(|its| its.server.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        output::print(&format!("told the servers: {}\n", names.join(", ")))?;
    }
    Ok(())
}
