//! Reads requests from a mailbox. A request counts only if it is genuine: made by its sender and addressed to the
//! owner of the mailbox.

use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::request_id::RequestId;
use brigade_wire::team::Team;
use jiff::Timestamp;

use crate::event::Event;
use crate::seat::Seat;
use crate::store::{Question, StoreError};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Shut down.
    Shutdown,
    /// Approve a plan.
    Plan,
    /// Allow the use of a tool.
    Permission,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shutdown => "shutdown",
            Self::Plan => "plan",
            Self::Permission => "permission",
        })
    }
}

/// A request in the seat's mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The kind of request.
    pub kind: RequestKind,
    /// The request id, as written.
    pub id: String,
    /// The member who asks.
    pub from: MemberName,
    /// The request message.
    pub body: Protocol,
    /// Position among all requests ever sent to the seat, counted from 1. It never changes.
    pub number: usize,
    /// When the request was made.
    pub at: Timestamp,
}

impl Request {
    /// The store question that the answer decides.
    pub(super) fn question(&self, seat: &Seat, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&seat.name, &answer_question(&seat.name, created, self.kind, &self.id))
    }

    /// The store question by which the asker withdraws the request. It belongs to the asker, as the answer belongs
    /// to the member asked: a store may allow a member to decide only its own questions.
    pub(super) fn withdrawal(&self, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&self.from, &withdrawal_question(&self.from, created, self.kind, &self.id))
    }

    /// Reads a request from a message; `None` if it is not a request or not genuine.
    fn parse(
        seat: &Seat,
        team: &Team<'_>,
        message: &Message<'_>,
        found: Timestamp,
        number: usize,
    ) -> Option<Self> {
        let from: MemberName = message.from().parse().ok()?;
        if !seat.is_authentic(team, message) {
            return None;
        }
        let Body::Protocol(body) = message.body() else { return None };
        let (kind, id, asker) = match &body {
            Protocol::ShutdownRequest(asked) => {
                (RequestKind::Shutdown, &asked.request_id, &asked.from)
            }
            Protocol::PlanApprovalRequest(asked) => {
                (RequestKind::Plan, &asked.request_id, &asked.from)
            }
            Protocol::PermissionRequest(asked) => {
                (RequestKind::Permission, &asked.request_id, &asked.agent_id)
            }
            _ => return None,
        };
        // A member cannot ask in another member's name, and only the lead may ask for a shutdown.
        let leads = || team.lead().is_some_and(|lead| lead.is(from.as_str()));
        if *asker != from.as_str() || (kind == RequestKind::Shutdown && !leads()) {
            return None;
        }
        // If the id names a member, it must be the right one. Ids by other tools name no member.
        let names_match = match id.parse() {
            Ok(RequestId::Shutdown { member, .. }) => member == seat.name,
            Ok(RequestId::PlanApproval { agent, .. }) => {
                agent.name == from && agent.team == seat.team
            }
            Ok(RequestId::Permission { .. }) | Err(_) => true,
        };
        let id = id.clone();
        // Messages by other programs may be found long after they were written, but never before.
        let written = message.timestamp().parse().unwrap_or(found);
        names_match.then_some(Self { kind, id, from, body, number, at: written.min(found) })
    }
}

/// Name of the question how a request is answered. It belongs to the member asked.
pub fn answer_question(asked: &MemberName, created: u64, kind: RequestKind, id: &str) -> String {
    format!("{asked}@{created}-{kind}-{id}")
}

/// Name of the question whether the asker withdraws the request.
pub(crate) fn withdrawal_question(
    asker: &MemberName,
    created: u64,
    kind: RequestKind,
    id: &str,
) -> String {
    format!("{asker}@{created}-takes-back-{kind}-{id}")
}

/// Name of the question which answer the asker accepts.
pub(crate) fn accepted_answer_question(asker: &MemberName, kind: RequestKind, id: &str) -> String {
    format!("{asker}-hears-{kind}-{id}")
}

/// Returns every request ever sent to the seat in this team, oldest first. If two requests share an id, only the first
/// counts: a member that copies another member's id gets no answer.
pub(super) async fn all(seat: &Seat, team: &Team<'_>) -> Result<Vec<Request>, StoreError> {
    let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
    let mut requests: Vec<Request> = Vec::new();
    let created = team.created_at().unwrap_or_default();
    for record in records.iter().filter(|record| record.belongs_to_team(created)) {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            continue;
        };
        let read = with_message(message.get().as_bytes(), |message| {
            let number = requests.len() + 1;
            message.and_then(|message| Request::parse(seat, team, &message, record.at, number))
        });
        if let Ok(Some(request)) = read
            && !requests.iter().any(|other| other.id == request.id)
        {
            requests.push(request);
        }
    }
    Ok(requests)
}
