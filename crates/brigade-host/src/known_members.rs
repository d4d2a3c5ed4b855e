//! Checks names of members against the rosters and the histories of teams.

use std::collections::BTreeSet;

use brigade_core::event::{Event, Record};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;

use crate::context::Context;
use crate::error::{HostError, Trouble, no_member_hint};

/// Fails if one of the names is neither on the roster nor in the history of one of the teams. The error names the members that are.
pub async fn check(
    context: &Context,
    teams: &[TeamName],
    names: &[MemberName],
) -> Result<(), HostError> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let unknown = |known: &BTreeSet<String>| {
        names.iter().find(|name| !known.contains(name.as_str())).cloned()
    };
    for team in teams {
        if let Some(roster) = context.store.roster(team).await? {
            known.extend(roster.team().member_names());
        }
    }
    if unknown(&known).is_none() || teams.is_empty() {
        return Ok(());
    }
    for team in teams {
        for record in context.store.team_history(team).await? {
            known.extend(members(&record));
        }
    }
    let Some(name) = unknown(&known) else { return Ok(()) };
    let known: Vec<String> = known.into_iter().collect();
    let hint = no_member_hint(name.as_str(), &known);
    let name = name.to_string();
    let error = match teams {
        [team] => Trouble::NoMember { name, team: team.to_string() },
        teams => Trouble::NoMemberOfTeams { name, teams: teams.len() },
    };
    Err(HostError::failed(error).hint(hint))
}

/// Returns the members that a record of the roster or the board names.
fn members(record: &Record) -> Vec<String> {
    match &record.event {
        Event::TeamCreated { team } => {
            Team::read(team.get().as_bytes()).map(|team| team.member_names()).unwrap_or_default()
        }
        _ => record.members(),
    }
}
