//! What was said before and still counts. Whoever agreed to stop is taken off the team by its lead:
//! Claude Code's own teammates leave that to whoever started them. And a plan that was approved stays
//! so.

use brigade_wire::body::Body;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;

use super::request::{self, Kind};
use super::{HandshakeError, authority};
use crate::event::{Event, Record};
use crate::mail::with_message;
use crate::roster;
use crate::seat::Seat;
use crate::store::StoreError;

/// Takes every member off the team that was asked to stop, said yes, and is still there. Its open
/// tasks go back to the board. Tells who.
pub async fn farewell(seat: &Seat) -> Result<Vec<MemberName>, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::lead(seat, &team, "take a teammate off the team")?;
    let mut gone = Vec::new();
    for record in seat.store.mailbox_history(&seat.team, &seat.name).await? {
        let Some((name, id)) = agreed(&team, &record) else { continue };
        if gone.contains(&name) {
            continue;
        }
        let its = Seat { name: name.clone(), ..seat.clone() };
        let asked = request::all(&its, &team).await?;
        if !asked.iter().any(|its| its.kind == Kind::Shutdown && its.id == id) {
            continue;
        }
        let left = roster::leave(seat, &name).await;
        left.map_err(|error| HandshakeError::Leaving(Box::new(error)))?;
        tracing::info!(team = %seat.team, member = %name, "agreed to stop, and is off the team");
        gone.push(name);
    }
    Ok(gone)
}

/// Whether the lead has approved a plan of the seat's. A program that is started again has forgotten
/// it, and need not ask again.
pub async fn plan_was_approved(seat: &Seat) -> Result<bool, StoreError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
    let approved = |record: &Record| {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            return false;
        };
        let approves = with_message(message.get().as_bytes(), |message| {
            let message = message?;
            let leads = team.lead().is_some_and(|lead| lead.is(&message.from()));
            match message.body() {
                Body::Protocol(Protocol::PlanApprovalResponse(answer)) if leads => {
                    Some(answer.approved && seat.vouches_for(&team, &message))
                }
                _ => None,
            }
        });
        request::is_of(&team, record) && matches!(approves, Ok(Some(true)))
    };
    Ok(records.iter().any(approved))
}

/// Who says in this record of the lead's mailbox that it stops, and to which request; nobody, unless
/// it is on the team and has been since before it said so. A yes of an earlier member of the same
/// name is not for its successor.
fn agreed(team: &Team<'_>, record: &Record) -> Option<(MemberName, String)> {
    let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
        return None;
    };
    if !request::is_of(team, record) {
        return None;
    }
    let said = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        match message.body() {
            Body::Protocol(Protocol::ShutdownApproved(said)) if said.from == message.from() => {
                Some((said.from.parse().ok()?, said.request_id))
            }
            _ => None,
        }
    });
    let (name, id): (MemberName, String) = said.ok()??;
    let joined_at = team.member(name.as_str())?.joined_at().unwrap_or_default();
    let said_at = u64::try_from(record.at.as_millisecond()).unwrap_or_default();
    (said_at >= joined_at).then_some((name, id))
}
