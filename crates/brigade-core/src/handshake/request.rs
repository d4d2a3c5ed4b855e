//! Reads requests from a mailbox. A request counts only if it is genuine: the message's sender made the request,
//! and the mailbox's owner is the member that must answer it.

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
    /// A request to shut down.
    Shutdown,
    /// A request to approve a plan.
    Plan,
    /// A request for permission to use a tool.
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
    /// The request id, as it is written in the message.
    pub id: String,
    /// The member that made the request.
    pub from: MemberName,
    /// The content of the request message.
    pub body: Protocol,
    /// The request's number, counted from 1 over all requests ever sent to the seat. It never changes.
    pub number: usize,
    /// When the request was made.
    pub at: Timestamp,
}

impl Request {
    /// Returns the question under which the store keeps the answer to this request.
    pub(super) fn question(&self, seat: &Seat, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&seat.name, &answer_question(&seat.name, created, self.kind, &self.id))
    }

    /// Returns the store question "does the asking member withdraw this request?". The asking member decides it,
    /// because a store may allow a member to decide only its own questions.
    pub(super) fn withdrawal(&self, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&self.from, &withdrawal_question(&self.from, created, self.kind, &self.id))
    }

    /// Reads a request from a message; `None` if the message is not a request or not genuine.
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
        // A member cannot make a request in another member's name, and only the lead may ask for a shutdown.
        let leads = || team.lead().is_some_and(|lead| lead.is(from.as_str()));
        if *asker != from.as_str() || (kind == RequestKind::Shutdown && !leads()) {
            return None;
        }
        // A request id names the member that must shut down or submits the plan. Other tools' ids name no member.
        let names_match = match id.parse() {
            Ok(RequestId::Shutdown { member, .. }) => member == seat.name,
            Ok(RequestId::PlanApproval { agent, .. }) => {
                agent.name == from && agent.team == seat.team
            }
            Ok(RequestId::Permission { .. }) | Err(_) => true,
        };
        let id = id.clone();
        // A message from another program may be found long after it was written, but never before.
        let written = message.timestamp().parse().unwrap_or(found);
        names_match.then_some(Self { kind, id, from, body, number, at: written.min(found) })
    }
}

/// Returns the name of the question "how is this request answered?". The member that must answer decides it.
pub fn answer_question(asked: &MemberName, created: u64, kind: RequestKind, id: &str) -> String {
    format!("{asked}@{created}-{kind}-{id}")
}

/// Returns the name of the question "does the asking member withdraw this request?".
pub(crate) fn withdrawal_question(
    asker: &MemberName,
    created: u64,
    kind: RequestKind,
    id: &str,
) -> String {
    format!("{asker}@{created}-takes-back-{kind}-{id}")
}

/// Returns the name of the question "which answer does the asking member accept?".
pub(crate) fn accepted_answer_question(asker: &MemberName, kind: RequestKind, id: &str) -> String {
    format!("{asker}-hears-{kind}-{id}")
}

/// Returns every request ever sent to the seat in this team, oldest first. If two requests share an id, only the
/// first counts: a member that copies another member's request id gets no answer.
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
