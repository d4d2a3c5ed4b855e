//! Giving an answer, once.

use brigade_wire::body::Body;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;

use super::{Answered, HandshakeError, Kind, Request, request};
use crate::event::MessageKey;
use crate::mail;
use crate::seat::Seat;
use crate::store::Outgoing;

/// Answers a request that is open and was sent to the seat by somebody else who is still there.
pub(super) async fn reply(
    seat: &Seat,
    team: &Team<'_>,
    kind: Kind,
    id: &str,
    response: impl FnOnce(&Protocol) -> Protocol,
) -> Result<Answered, HandshakeError> {
    let requests = request::all(seat, team).await?;
    let Some(request) = requests.iter().find(|its| its.kind == kind && its.id == id) else {
        let open = open(seat, team).await?.into_iter().filter(|its| its.kind == kind);
        return Err(HandshakeError::NoRequest {
            kind,
            id: id.to_owned(),
            who: seat.name.clone(),
            open: open.map(|its| its.id).collect(),
        });
    };
    if request.from == seat.name {
        return Err(HandshakeError::Own { id: id.to_owned(), who: seat.name.clone() });
    }
    let to = mail::recipient(seat, team, request.from.as_str())?;
    let ours = mail::protocol(seat, team, &response(&request.body).to_text())?;
    // From here on this is the answer, whoever sends it.
    let text = serde_json::to_vec(&ours).unwrap_or_default();
    let question = request.question(seat, team);
    let decided = seat.store.decide(&seat.team, &question, &text).await?;
    if decided == text {
        let receipt = seat.store.send(&seat.team, &to, &ours).await?;
        tracing::info!(team = %seat.team, member = %to, request_id = id, "answered");
        return Ok(Answered { to, receipt });
    }
    let first = serde_json::from_slice::<Outgoing>(&decided).ok();
    if let Some(first) = &first {
        send_if_lost(seat, team, &to, first).await?;
    }
    let first = first.and_then(|first| match Body::parse(&first.text) {
        Body::Protocol(protocol) => Some(Box::new(protocol)),
        _ => None,
    });
    Err(HandshakeError::Answered { id: id.to_owned(), first })
}

/// Sends an answer that was decided on by somebody who died before sending it.
async fn send_if_lost(
    seat: &Seat,
    team: &Team<'_>,
    to: &MemberName,
    first: &Outgoing,
) -> Result<(), HandshakeError> {
    let key = MessageKey::of_id(&first.msg_id);
    let records = seat.store.mailbox_history(&seat.team, to).await?;
    if !records.iter().any(|record| record.event.message() == Some(key)) {
        let team_created = team.created_at().unwrap_or_default();
        let message = Outgoing { team_created, ..first.clone() };
        seat.store.send(&seat.team, to, &message).await?;
    }
    Ok(())
}

/// The requests that have no answer yet.
pub(super) async fn open(seat: &Seat, team: &Team<'_>) -> Result<Vec<Request>, HandshakeError> {
    let mut open = Vec::new();
    for request in request::all(seat, team).await? {
        if seat.store.decided(&seat.team, &request.question(seat, team)).await?.is_none() {
            open.push(request);
        }
    }
    Ok(open)
}
