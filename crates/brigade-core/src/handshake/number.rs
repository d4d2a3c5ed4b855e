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
    let mut highest = 0;
    for request in requests {
        let number = match stored(seat, team, request).await? {
            Some(number) => number,
            None => {
                let ours = format!("{}-{}", request.kind, request.id);
                let mut number = request.number.max(highest + 1);
                // Numbers of requests that the store has deleted stay taken.
                while seat
                    .store
                    .decide(&seat.team, &taken(seat, team, number), ours.as_bytes())
                    .await?
                    != ours.as_bytes()
                {
                    number += 1;
                }
                let text = number.to_string();
                let number_of = number_of(seat, team, request);
                seat.store.decide(&seat.team, &number_of, text.as_bytes()).await?;
                number
            }
        };
        highest = highest.max(number);
        request.number = number;
    }
    Ok(())
}

/// Keeps the requests that have a number, and sets it. Writes nothing: without a number, a request is left out.
pub(super) async fn retain_numbered(
    seat: &Seat,
    team: &Team<'_>,
    requests: &mut Vec<Request>,
) -> Result<(), StoreError> {
    if !seat.store.history_expires() {
        return Ok(());
    }
    let mut numbered = Vec::new();
    for request in std::mem::take(requests) {
        if let Some(number) = stored(seat, team, &request).await? {
            numbered.push(Request { number, ..request });
        }
    }
    *requests = numbered;
    Ok(())
}

/// Returns the number that is stored for a request.
async fn stored(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
) -> Result<Option<usize>, StoreError> {
    let stored = seat.store.decided(&seat.team, &number_of(seat, team, request)).await?;
    Ok(stored.and_then(|number| str::from_utf8(&number).ok()?.parse().ok()))
}

/// Returns the question whose answer is the number of a request.
fn number_of(seat: &Seat, team: &Team<'_>, request: &Request) -> Question {
    let Request { kind, id, .. } = request;
    question(seat, team, &format!("number-of-{kind}-{id}"))
}

/// Returns the question whose answer is the request that has a number.
fn taken(seat: &Seat, team: &Team<'_>, number: usize) -> Question {
    question(seat, team, &format!("number-{number}"))
}

fn question(seat: &Seat, team: &Team<'_>, text: &str) -> Question {
    let prefix = format!("{}@{}", seat.name, team.created_at().unwrap_or_default());
    Question::new(&seat.name, &format!("{prefix}-{text}"))
}
