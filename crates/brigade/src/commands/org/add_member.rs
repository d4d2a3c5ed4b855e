//! `brigade org add-member`

use brigade_host::profile::{StoreName, StoreProfile};
use brigade_nats::identity::CredentialRole;
use brigade_nats::org::{Folder, Granted, IssuedSeat};
use brigade_wire::name::{MemberName, TeamName};
use jiff::{SignedDuration, Timestamp};

use super::{connect_admin, next_step};
use crate::cli::{GlobalArgs, OrgAddMemberArgs};
use crate::error::CliError;
use crate::exit;
use crate::location::{absolute, profiles};
use crate::output::{self, STRONG};

pub(super) async fn run(global: &GlobalArgs, asked: OrgAddMemberArgs) -> Result<u8, CliError> {
    let (json, now) = (global.json, Timestamp::now());
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
    // Credentials name the shard of their team. If shards were added, only the servers know it.
    let shard = match organisation.shards_added {
        true => {
            let store = connect_admin(global, &folder, &organisation).await?;
            Some(store.shard_for_credentials(&asked.team).await?)
        }
        false => None,
    };
    let granted = Granted {
        team: asked.team,
        members,
        role: if asked.lead { CredentialRole::Lead } else { CredentialRole::Member },
        answers: asked.lead && !asked.no_answers,
        until,
        out: asked.out.map(absolute).transpose()?,
        shard,
    };
    let seat = folder.grant(&mut organisation, granted, now)?;
    let org = &organisation.name;
    let first = organisation.seats.first().map(|seat| &seat.team);
    let store = StoreName::for_team(org, first, &seat.team)?;
    if asked.uses {
        use_store(&folder, &store, &seat)?;
    }
    if json {
        output::print_json(&seat)?;
        return Ok(exit::DONE);
    }
    let names: Vec<&str> = seat.members.iter().map(MemberName::as_str).collect();
    output::print(&format!(
        "{STRONG}{}{STRONG:#} of team {}: {}\n\n{}",
        names.join(", "),
        seat.team,
        seat.file.display(),
        next(&folder, org, &store, &seat, asked.uses)
    ))?;
    if !others.is_empty() {
        output::note(&format!(
            "older credentials for the same name are still valid: {}",
            others.join(", ")
        ));
    }
    Ok(exit::DONE)
}

/// Adds the servers to the configuration of this host, and makes them the default store.
fn use_store(folder: &Folder, name: &StoreName, seat: &IssuedSeat) -> Result<(), CliError> {
    let profile = StoreProfile {
        url: folder.cluster().urls().join(","),
        ca: folder.cluster().tls.as_ref().and_then(|tls| tls.ca.clone()),
        creds: Some(seat.file.clone()),
    };
    let mut profiles = profiles()?;
    profiles.add(name.clone(), profile)?;
    profiles.set_default(Some(name))
}

/// Returns what to do next with the credentials.
fn next(
    folder: &Folder,
    org: &TeamName,
    store: &StoreName,
    seat: &IssuedSeat,
    is_used: bool,
) -> String {
    let add_store = next_step::add_store(folder, store, &seat.file);
    let ca = folder.cluster().tls.as_ref().and_then(|tls| tls.ca.as_ref());
    let files = match ca {
        Some(ca) => format!("the credentials and {}", ca.display()),
        None => "the credentials".to_owned(),
    };
    let team = &seat.team;
    let mut text = match is_used {
        true => format!("this host uses them from now on, as store {store}\n"),
        false => {
            format!("next, on the host of the members, with a copy of {files}:\n  {add_store}\n")
        }
    };
    if seat.role == CredentialRole::Lead {
        let members = next_step::add_members(folder, org, team);
        text.push_str(&format!(
            "\nthen, for the members of another host:\n  {members}\n\
             and to create the team:\n  brigade team create {team}\n"
        ));
    } else {
        text.push_str("\nand on the host of the lead, after `brigade team create`:\n");
        for name in &seat.members {
            text.push_str(&format!("  {}\n", next_step::join(team, name)));
        }
        if let Some(first) = seat.members.first() {
            let send = next_step::first_message(first, seat.members.len());
            text.push_str(&format!(
                "\nfor a first message, on the host of the members:\n  {send}\n"
            ));
        }
    }
    text
}
