//! Approves or rejects plans and permission requests, and waits until the asking member has the answer.

use std::time::Duration;

use brigade_core::approvals::{self, Approval};
use brigade_core::event::WITHDRAWN;
use brigade_core::handshake::{self, Answer, Answered, First, HandshakeError, RequestKind};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use tokio::time::Instant;

use crate::context::Context;
use crate::error::{HostError, Trouble};
use crate::host::is_led_remotely;
use crate::spec::MemberPlace;
use crate::state;

/// How long to wait for the asking member to take the answer.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// How often to check whether the member has taken the answer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether an answer has reached the asking member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The member has stored the answer as the valid one, and passes it to its agent.
    Confirmed,
    /// The answer is stored, and the member has not taken it yet, for this reason.
    NotYet(String),
}

/// An answer that was sent.
#[derive(Debug)]
pub struct GivenAnswer {
    /// The answer as it was sent.
    pub answered: Answered,
    /// Whether the answer has reached the asking member.
    pub confirmation: Confirmation,
}

/// A request and the result of answering it.
pub type AnswerOutcome = (Approval, Result<GivenAnswer, HostError>);

/// Finds the requests that `which` names by number or id. Fails if one of them is not found.
pub async fn find(seat: &Seat, which: &[String]) -> Result<Vec<Approval>, HostError> {
    let mut found = Vec::new();
    for request in which {
        found.push(approvals::find(seat, request).await?);
    }
    Ok(found)
}

/// Answers these requests. If answering one request fails, the others are still answered.
pub async fn answer(
    context: &Context,
    seat: &Seat,
    requests: Vec<Approval>,
    answer: Answer<'_>,
) -> Vec<AnswerOutcome> {
    let mut outcomes = Vec::new();
    for approval in requests {
        let given = answer_one(context, seat, &approval, answer).await;
        outcomes.push((approval, given));
    }
    outcomes
}

/// Answers a request, if it still says what `approval` says.
pub async fn answer_one(
    context: &Context,
    seat: &Seat,
    approval: &Approval,
    answer: Answer<'_>,
) -> Result<GivenAnswer, HostError> {
    let seat = &answering_seat(context, seat, approval).await?;
    let answered =
        approvals::answer(seat, approval, answer).await.map_err(|error| match error {
            HandshakeError::Answered { first, .. } => {
                answered_before(seat, approval, first.as_deref())
            }
            error => error.into(),
        })?;
    let (kind, id) = (approval.subject.kind(), &approval.request_id);
    let confirmation = confirm(context, seat, kind, id, &answered).await?;
    Ok(GivenAnswer { answered, confirmation })
}

/// Returns the error for a request that was answered before.
fn answered_before(seat: &Seat, approval: &Approval, first: Option<&First>) -> HostError {
    let (number, from) = (approval.number, approval.from.to_string());
    let error = HostError::failed(match first {
        Some(first) if first.hand == WITHDRAWN => Trouble::RequestWithdrawn { number, from },
        _ => Trouble::AnsweredBefore { number, from },
    });
    match first {
        Some(first) => error.hint(first.describe(seat.clock.now())),
        None => error,
    }
}

/// Returns the seat that answers: if Claude Code leads the team, with the keys of the person. Fails if the answer cannot
/// reach the asking member, because brigade does not run the member on this host.
async fn answering_seat(
    context: &Context,
    seat: &Seat,
    approval: &Approval,
) -> Result<Seat, HostError> {
    if context.location().nats().is_some()
        || seat.store.is_ours(&seat.team).await?
        || is_led_remotely(seat).await?
    {
        return Ok(seat.clone());
    }
    let host = context.host()?.of_member(&seat.team, &approval.from)?;
    if host.member_process(&seat.team, &approval.from)?.is_some() {
        return context.person_seat(seat);
    }
    if seat.for_member(approval.from.clone()).role().await?.is_none() {
        // The member has left, so no program can take an answer.
        let word = approval.number.to_string();
        let open = approvals::waiting(seat).await?.iter().map(|request| request.number).collect();
        return Err(HandshakeError::Unknown { word, who: seat.name.clone(), open }.into());
    }
    let (name, team) = (approval.from.to_string(), seat.team.to_string());
    let error = Trouble::ClaudeRuns { name, team, what: "answer its requests" };
    Err(HostError::failed(error).hint("answer in Claude Code's dialog"))
}

/// Waits until the asking member has taken an answer, for at most a few seconds. Fails if the member took another answer.
pub async fn confirm(
    context: &Context,
    seat: &Seat,
    kind: RequestKind,
    id: &str,
    answered: &Answered,
) -> Result<Confirmation, HostError> {
    let (team, name) = (&seat.team, &answered.to);
    let host = context.host()?.of_member(team, name)?;
    let is_native = host.registry.member(team, name)?.map(|spec| spec.place);
    let is_native = is_native == Some(MemberPlace::Native);
    let began = Instant::now();
    let why = loop {
        let is_taken = if is_native {
            // Claude Code marks a message as read, or removes it, when it takes the message.
            let unread = mail::inbox(seat, name, InboxFilter::Unread).await?;
            !unread.iter().any(|mail| mail.key == answered.message)
        } else {
            match handshake::accepted_message(seat, name, kind, id).await? {
                Some(accepted) if accepted != answered.message => {
                    let (name, id) = (name.to_string(), id.to_owned());
                    return Err(HostError::failed(Trouble::OtherAnswer { name, id }));
                }
                accepted => accepted.is_some(),
            }
        };
        if is_taken {
            return Ok(Confirmation::Confirmed);
        }
        let runs_here = host.member_process(team, name)?.is_some();
        if !runs_here && state::remote_host(&host, seat, name).await?.is_none() {
            break format!("{name} is not running");
        }
        if began.elapsed() > CONFIRM_WITHIN {
            break format!("{name} has not taken the answer within {} s", CONFIRM_WITHIN.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    Ok(Confirmation::NotYet(why))
}
