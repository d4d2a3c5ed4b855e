//! The numbers of requests. A person names a request by its number, so a number must never pass to another request.
//!
//! In a store that knows all positions, the number is the position among all requests. In a store that deletes old
//! messages, positions change. There the seat stores the number of each request as a decision, which never changes.

use brigade_wire::team::Team;

use super::{Request, request};
use crate::seat::Seat;
use crate::store::{Question, RequestQuery, StoreError};

/// Finds the request with this number.
pub(super) async fn find(
    seat: &Seat,
    team: &Team<'_>,
    number: usize,
) -> Result<Option<Request>, StoreError> {
    if !seat.store.history_expires() {
        let found = request::find(seat, team, RequestQuery::Number(number)).await?;
        return Ok(found.into_iter().next());
    }
    let mut requests = request::find(seat, team, RequestQuery::All).await?;
    assign(seat, team, &mut requests).await?;
    Ok(requests.into_iter().find(|request| request.number == number))
}

/// Gives each request its number. The requests are in order, and their numbers are their positions.
pub(super) async fn assign(
    seat: &Seat,
    team: &Team<'_>,
    requests: &mut [Request],
) -> Result<(), StoreError> {
    if !seat.store.history_expires() {
        return Ok(());
    }
    let prefix = format!("{}@{}", seat.name, team.created_at().unwrap_or_default());
    let question = |text: String| Question::new(&seat.name, &format!("{prefix}-{text}"));
    let mut highest = 0;
    for request in requests {
        let Request { kind, id, .. } = &*request;
        let number_of = question(format!("number-of-{kind}-{id}"));
        let stored = seat.store.decided(&seat.team, &number_of).await?;
        let stored = stored.and_then(|number| str::from_utf8(&number).ok()?.parse().ok());
        let number = match stored {
            Some(number) => number,
            None => {
                let ours = format!("{kind}-{id}");
                let mut number = request.number.max(highest + 1);
                // Numbers of requests that the store has deleted stay taken.
                while seat
                    .store
                    .decide(&seat.team, &question(format!("number-{number}")), ours.as_bytes())
                    .await?
                    != ours.as_bytes()
                {
                    number += 1;
                }
                let text = number.to_string();
                seat.store.decide(&seat.team, &number_of, text.as_bytes()).await?;
                number
            }
        };
        highest = highest.max(number);
        request.number = number;
    }
    Ok(())
}
