//! Approves or rejects plans and permission requests.

use brigade_core::approvals::{self, Approval};
use brigade_core::handshake::{Answer, Answered, HandshakeError};
use brigade_core::seat::Seat;

use crate::error::HostError;

/// A request and the result of answering it.
pub type AnswerOutcome = (Approval, Result<Answered, HandshakeError>);

/// Answers the requests that `which` names by number or id. If one of the requests is not found, none is answered.
/// If answering one request fails, the others are still answered.
pub async fn answer(
    seat: &Seat,
    which: &[String],
    answer: Answer<'_>,
) -> Result<Vec<AnswerOutcome>, HostError> {
    let mut found = Vec::new();
    for request in which {
        found.push(approvals::find(seat, request).await?);
    }
    let mut outcomes = Vec::new();
    for approval in found {
        let answered = approvals::answer(seat, &approval, answer).await;
        outcomes.push((approval, answered));
    }
    Ok(outcomes)
}
