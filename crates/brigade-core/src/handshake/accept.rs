//! The asking member accepts the first answer to its request, and no other.
//!
//! In a team that Claude Code leads, Claude Code's dialog and the person who uses brigade can both answer a request.
//! brigade stores its answer before sending it. Claude Code stores nothing, so the asking member stores Claude Code's
//! answer when it arrives. The stored answer is the first one, and the only one with an effect.

use brigade_wire::inbox::with_message;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use super::reply::{CLAUDE_CODE, Decision, First};
use super::{HandshakeError, Request, RequestKind, lead, request};
use crate::event::MessageKey;
use crate::seat::Seat;
use crate::store::{Outgoing, Question, StoreError};

/// The effect of an answer that arrived.
#[derive(Debug)]
pub enum Acceptance {
    /// The answer is the first one. The asking member acts on it.
    Accepted {
        /// The request that the answer is for.
        request: Box<Request>,
        /// Whether a person or an agent chose the answer, and not a rule or Claude Code's dialog. True if that is unknown.
        is_chosen: bool,
    },
    /// Another answer came first. The asking member acts on that one, unless it already did.
    Late {
        /// The request that both answers are for.
        request: Box<Request>,
        /// The first answer.
        first: Box<First>,
        /// Whether the asking member must act on the first answer now, because its message has not arrived yet.
        is_new: bool,
    },
    /// The answer has no effect: the seat made no such request, or it acted on another answer before.
    Ignored,
}

/// Decides whether the seat may act on an answer of its lead. The seat must have sent the request to its lead.
pub async fn accept(
    seat: &Seat,
    kind: RequestKind,
    id: &str,
    key: MessageKey,
    answer: Outgoing,
) -> Result<Acceptance, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    let lead_seat = Seat { name: lead(seat, &team)?, ..seat.clone() };
    let is_own =
        |request: &Request| request.kind == kind && request.id == id && request.from == seat.name;
    let Some(request) = request::find_id(&lead_seat, &team, id).await?.filter(is_own) else {
        return Ok(Acceptance::Ignored);
    };
    let request = Box::new(request);
    let first = match first_decision(&lead_seat, &team, &request, key, answer).await? {
        FirstDecision::Other(first) => first,
        FirstDecision::This { hand } => {
            let is_chosen = ["person", "agent", ""].contains(&hand.as_str());
            return Ok(match hear(seat, kind, id, key).await? {
                true => Acceptance::Accepted { request, is_chosen },
                false => Acceptance::Ignored,
            });
        }
    };
    let is_authentic = is_authentic(seat, &team, &first.message);
    let is_new = is_authentic && hear(seat, kind, id, first.message.key()).await?;
    Ok(match First::from_decision(&first) {
        Some(first) => Acceptance::Late { request, first: Box::new(first), is_new },
        None => Acceptance::Ignored,
    })
}

/// Returns the key of the answer that the asking member accepted; `None` if it has not accepted one yet. `seat` is the
/// seat of a member that may read the decisions of the asking member, for example the lead.
pub async fn accepted_message(
    seat: &Seat,
    asker: &MemberName,
    kind: RequestKind,
    id: &str,
) -> Result<Option<MessageKey>, StoreError> {
    let question = Question::new(asker, &request::accepted_answer_question(asker, kind, id));
    let decided = seat.store.decided(&seat.team, &question).await?;
    Ok(decided.and_then(|key| String::from_utf8(key).ok()?.parse().ok()))
}

/// The first answer to a request.
enum FirstDecision {
    /// The answer that has arrived. `hand` is the decider; empty if it is unknown.
    This { hand: String },
    /// Another answer.
    Other(Box<Decision>),
}

/// Stores the answer as the first one, unless an answer was stored before. Returns the first answer.
async fn first_decision(
    lead: &Seat,
    team: &Team<'_>,
    request: &Request,
    key: MessageKey,
    answer: Outgoing,
) -> Result<FirstDecision, HandshakeError> {
    let unknown = FirstDecision::This { hand: String::new() };
    let ours = Decision { hand: CLAUDE_CODE.to_owned(), message: answer };
    let text = serde_json::to_vec(&ours).unwrap_or_default();
    let decided = match lead.store.decide(&lead.team, &request.question(lead, team), &text).await {
        Ok(decided) => decided,
        // A NATS server lets only the lead store its decisions. There, brigade leads the team and stores each answer.
        Err(StoreError::Forbidden { .. }) => return Ok(unknown),
        Err(error) => return Err(error.into()),
    };
    let Ok(first) = serde_json::from_slice::<Decision>(&decided) else { return Ok(unknown) };
    let is_this = first.message.key() == key && first.message.from == ours.message.from;
    Ok(match is_this || decided == text {
        true => FirstDecision::This { hand: first.hand },
        false => FirstDecision::Other(Box::new(first)),
    })
}

/// Records that the seat acts on this answer. Returns whether it may: it acts on one answer only.
async fn hear(
    seat: &Seat,
    kind: RequestKind,
    id: &str,
    key: MessageKey,
) -> Result<bool, HandshakeError> {
    let question =
        Question::new(&seat.name, &request::accepted_answer_question(&seat.name, kind, id));
    let first = seat.store.decide(&seat.team, &question, key.to_string().as_bytes()).await?;
    Ok(first == key.to_string().as_bytes())
}

/// Returns whether a stored answer comes from the lead, as far as the seat can check.
fn is_authentic(seat: &Seat, team: &Team<'_>, answer: &Outgoing) -> bool {
    let entry = serde_json::to_vec(&answer.to_inbox_entry()).unwrap_or_default();
    let is_authentic = with_message(&entry, |message| {
        message.is_some_and(|message| seat.is_authentic(team, &message))
    });
    is_authentic.unwrap_or(false)
}
