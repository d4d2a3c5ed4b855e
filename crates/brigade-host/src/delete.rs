//! Deletes a team.

use brigade_core::roster::{self, RosterError, SkipChecks};
use brigade_core::seat::Seat;
use brigade_core::store::{NoteKind, TeamStore};
use brigade_link::MemberHost;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::error::HostError;

/// Deletes a team. Fails while the team is running, unless `force` is set.
///
/// A link copies a team of a Claude Code session to a NATS store, and the copy still names the session's process
/// after the session has ended. Only the host on which the session ran can know that it has ended: the team is gone
/// from its files.
pub async fn delete(context: &Context, seat: &Seat, force: SkipChecks) -> Result<(), HostError> {
    let mut force = force;
    if force == SkipChecks::No && session_has_ended(context, seat).await? {
        let active = active_elsewhere(context, seat).await?;
        if !active.is_empty() {
            return Err(RosterError::StillActive { team: seat.team.clone(), active }.into());
        }
        force = SkipChecks::Yes;
    }
    Ok(roster::delete(seat, force).await?)
}

/// Returns whether this is the copy of a team whose Claude Code session ran on this host and has ended.
async fn session_has_ended(context: &Context, seat: &Seat) -> Result<bool, HostError> {
    if context.location().nats().is_none() {
        return Ok(false);
    }
    let Some(roster) = seat.find_roster().await? else { return Ok(false) };
    let team = roster.team();
    let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
    let (Some(_), Some(lead)) = (team.lead_process(), lead) else { return Ok(false) };
    let is_here = host_of(seat, &lead).await?.is_some_and(|host| host == context.host_name());
    Ok(is_here
        && context.files.has_teams_folder()?
        && context.files.team(&seat.team).await?.is_none())
}

/// Returns the active members that a link on another host carries.
async fn active_elsewhere(context: &Context, seat: &Seat) -> Result<Vec<String>, HostError> {
    let Some(roster) = seat.find_roster().await? else { return Ok(Vec::new()) };
    let team = roster.team();
    let mut active = Vec::new();
    for member in team.members().filter(|member| member.is_active() != Some(false)) {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if host_of(seat, &name).await?.is_some_and(|host| host != context.host_name()) {
            active.push(name.to_string());
        }
    }
    Ok(active)
}

/// Returns the host of a member, as its link recorded it.
async fn host_of(seat: &Seat, name: &MemberName) -> Result<Option<String>, HostError> {
    let note = seat.store.get_note(&seat.team, name, NoteKind::Home).await?;
    let home: Option<MemberHost> = note.and_then(|note| serde_json::from_slice(&note).ok());
    Ok(home.map(|home| home.host))
}
