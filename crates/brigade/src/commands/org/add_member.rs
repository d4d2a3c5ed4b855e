//! `brigade org add-member`

use brigade_nats::identity::CredentialRole;
use brigade_nats::org::{Folder, Granted};
use jiff::{SignedDuration, Timestamp};

use crate::cli::OrgAddMemberArgs;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, STRONG};

pub(super) fn run(json: bool, asked: OrgAddMemberArgs) -> Result<u8, CliError> {
    let now = Timestamp::now();
    let folder = Folder::open(&asked.folder.dir)?;
    let mut organisation = folder.organisation(asked.folder.org.as_ref())?;
    let until = asked.valid.and_then(|valid| {
        let valid = SignedDuration::try_from(valid).ok()?;
        now.checked_add(valid).ok()
    });
    let mut members = asked.names;
    let mut seen = std::collections::HashSet::new();
    members.retain(|name| seen.insert(name.clone()));
    let others = organisation.seats.iter().filter(|seat| {
        seat.revoked.is_none()
            && seat.team == asked.team
            && members.iter().any(|me| seat.members.contains(me))
    });
    let others: Vec<String> = others.map(|seat| seat.file.display().to_string()).collect();
    let granted = Granted {
        team: asked.team,
        members,
        role: if asked.lead { CredentialRole::Lead } else { CredentialRole::Member },
        answers: asked.lead && !asked.no_answers,
        until,
        out: asked.out,
    };
    let seat = folder.grant(&mut organisation, granted, now)?;
    if json {
        output::print_json(&seat)?;
        return Ok(exit::DONE);
    }
    let (team, file) = (&seat.team, seat.file.display());
    let names: Vec<String> = seat.members.iter().map(ToString::to_string).collect();
    let store = folder.cluster().urls().join(",");
    let first = names.first().map(String::as_str).unwrap_or_default();
    output::print(&format!(
        "{STRONG}{}{STRONG:#} of team {team}: {file}\n\n\
         Copy the file to the member's host. To act as {first} there, run\n  \
         brigade --store {store} --creds FILE --team {team} --as {first} inbox\n",
        names.join(", ")
    ))?;
    if !others.is_empty() {
        output::note(&format!(
            "older credentials for the same name are still valid: {}",
            others.join(", ")
        ));
    }
    Ok(exit::DONE)
}
