//! Limits how many requests a member may have open, so that one member cannot bury the requests of the others.

use brigade_wire::team::Team;

use super::{HandshakeError, MAX_OPEN_REQUESTS, Request, reply, request};
use crate::seat::Seat;
use crate::store::RequestQuery;

/// Checks that the asking member may send one more request to the lead. Reads only what the asking member may read: its own
/// requests, its own mailbox and its own decisions.
pub(super) async fn check_open(
    lead: &Seat,
    asker: &Seat,
    team: &Team<'_>,
) -> Result<(), HandshakeError> {
    let requests = request::find(lead, team, RequestQuery::Unsettled).await?;
    let open: Vec<&Request> =
        requests.iter().filter(|request| request.from == asker.name).collect();
    // Most members have sent few requests, so that their answers need not be read.
    if open.len() < MAX_OPEN_REQUESTS {
        return Ok(());
    }
    let open = reply::without_answer(lead, asker, open).await?;
    let mut waiting = 0;
    // The newest requests are the most likely to be open.
    for request in open.into_iter().rev() {
        if reply::taken_back(asker, team, request).await?.is_none() {
            waiting += 1;
        }
        if waiting >= MAX_OPEN_REQUESTS {
            let (who, to) = (asker.name.clone(), lead.name.clone());
            return Err(HandshakeError::TooManyOpen { who, open: waiting, to });
        }
    }
    Ok(())
}
