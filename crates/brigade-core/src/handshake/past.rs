//! Applies earlier answers. A Claude Code teammate that agrees to shut down does not remove itself
//! from the team, so the lead removes it. An approved plan stays approved after a restart.

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;

use super::request::{self, RequestKind};
use super::{HandshakeError, authority};
use crate::event::{Event, Record, TopicKind};
use crate::roster;
use crate::seat::Seat;
use crate::store::{MailQuery, StoreError};

/// Removes every member that agreed to a shutdown request and is still on the roster, and returns the names of
/// those members. Their open tasks return to the board.
pub async fn remove_agreed_members(seat: &Seat) -> Result<Vec<MemberName>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "remove a teammate from the team")?;
    let mut removed = Vec::new();
    let answers = MailQuery::Topic(TopicKind::ShutdownAnswer);
    for record in seat.store.find_mail(&seat.team, &seat.name, answers).await? {
        let Some((name, id)) = shutdown_agreement(&team, &record) else { continue };
        if removed.contains(&name) {
            continue;
        }
        let member_seat = Seat { name: name.clone(), ..seat.clone() };
        let asked = request::find_id(&member_seat, &team, &id).await?;
        if !asked.is_some_and(|request| request.kind == RequestKind::Shutdown) {
            continue;
        }
        let left = roster::leave(seat, &name).await;
        left.map_err(|error| HandshakeError::Leaving(Box::new(error)))?;
        tracing::info!(team = %seat.team, member = %name, "removed the member after it agreed to shut down");
        removed.push(name);
    }
    Ok(removed)
}

/// Returns whether the lead has approved a plan from the seat. If so, the agent need not ask again after a
/// restart. The approval does not count for a later member with the same name.
pub async fn is_plan_approved(seat: &Seat) -> Result<bool, StoreError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    let answers = MailQuery::Topic(TopicKind::PlanAnswer);
    let records = seat.store.find_mail(&seat.team, &seat.name, answers).await?;
    let approved = |record: &Record| {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            return false;
        };
        let approves = with_message(message.get().as_bytes(), |message| {
            let message = message?;
            let leads = team.lead().is_some_and(|lead| lead.is(&message.from()));
            match message.body() {
                Body::Protocol(Protocol::PlanApprovalResponse(answer)) if leads => {
                    Some(answer.approved && seat.is_authentic(&team, &message))
                }
                _ => None,
            }
        });
        matches!(approves, Ok(Some(true)))
    };
    let created = team.created_at().unwrap_or_default();
    let joined_at = team.member(seat.name.as_str()).and_then(|member| member.joined_at());
    let is_present = |record: &&Record| {
        record.belongs_to_team(created) && record.belongs_to_member(joined_at.unwrap_or_default())
    };
    Ok(records.iter().filter(is_present).any(approved))
}

/// If a member agrees to shut down in this record, returns the member and the request id. Returns `None` if the
/// member has left the team, or joined after the agreement: an earlier member's agreement does not count for a
/// later member with the same name.
fn shutdown_agreement(team: &Team<'_>, record: &Record) -> Option<(MemberName, String)> {
    let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
        return None;
    };
    if !record.belongs_to_team(team.created_at().unwrap_or_default()) {
        return None;
    }
    let agreement = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        match message.body() {
            Body::Protocol(Protocol::ShutdownApproved(answer)) if answer.from == message.from() => {
                Some((answer.from.parse().ok()?, answer.request_id))
            }
            _ => None,
        }
    });
    let (name, id): (MemberName, String) = agreement.ok()??;
    let joined_at = team.member(name.as_str())?.joined_at().unwrap_or_default();
    record.belongs_to_member(joined_at).then_some((name, id))
}
