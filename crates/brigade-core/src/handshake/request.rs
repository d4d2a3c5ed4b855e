//! Reads requests from a mailbox. A request counts only if it is genuine: the message's sender made the request,
//! and the mailbox's owner is the member that must answer it.

use std::collections::HashSet;
use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::request_id::RequestId;
use brigade_wire::team::Team;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::event::{Event, MessageKey};
use crate::seat::Seat;
use crate::store::{FoundRequest, Question, RequestQuery, StoreError};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The request id, exactly as in the message.
    pub id: String,
    /// The member that made the request.
    pub from: MemberName,
    /// The content of the request message.
    pub body: Protocol,
    /// The position among the requests ever sent to the seat in this team, counted from 1. It never changes.
    pub number: usize,
    /// When the request was made.
    pub at: Timestamp,
    /// Identifies what is asked.
    pub digest: RequestDigest,
    /// The message in the asked member's mailbox; `None` if the request was read from elsewhere.
    pub(super) key: Option<MessageKey>,
}

/// Identifies a request by all that it says: a SHA-256 of its sender and its text. Two requests with the same id but
/// other content have different digests.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    fn new(message: &Message<'_>) -> Self {
        let mut hash = Sha256::new();
        for field in [message.from(), message.text()] {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The request that an answer is for.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRequest<'r> {
    /// The request id.
    pub id: &'r str,
    /// The digest of the request that the caller saw. If the request with this id has another digest, it is not
    /// answered. `None` if the caller knows only the id.
    pub shown: Option<RequestDigest>,
}

impl<'r, S: AsRef<str> + ?Sized> From<&'r S> for AnsweredRequest<'r> {
    fn from(id: &'r S) -> Self {
        Self { id: id.as_ref(), shown: None }
    }
}

impl Request {
    /// Returns the question under which the store keeps the answer to this request.
    pub(super) fn question(&self, seat: &Seat, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&seat.name, &answer_question(&seat.name, created, self.kind, &self.id))
    }

    /// Returns the store question "does the asking member withdraw this request?". The question belongs to the
    /// asking member, because a store may forbid a member to answer another member's questions.
    pub(super) fn withdrawal(&self, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&self.from, &withdrawal_question(&self.from, created, self.kind, &self.id))
    }

    /// Reads a request from a message, with the name of the member that the request says it is from. Does not check
    /// that the request is genuine.
    pub(crate) fn parse(
        message: &Message<'_>,
        found: Timestamp,
        number: usize,
    ) -> Option<(Self, String)> {
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
        let (id, asker, from) = (id.clone(), asker.clone(), message.from().parse().ok()?);
        // brigade may find a message long after it was written. Use the earlier of the two times.
        let written = message.timestamp().parse().unwrap_or(found);
        let (at, digest) = (written.min(found), RequestDigest::new(message));
        Some((Self { kind, id, from, body, number, at, digest, key: None }, asker))
    }

    /// Reads a request from a message; `None` if the message is not a genuine request.
    pub(super) fn parse_genuine(
        seat: &Seat,
        team: &Team<'_>,
        message: &Message<'_>,
        found: Timestamp,
        number: usize,
    ) -> Option<Self> {
        let (request, asker) = Self::parse(message, found, number)?;
        let Self { kind, id, from, .. } = &request;
        // A member cannot make a request in another member's name, and only the lead may ask for a shutdown.
        let leads = || team.lead().is_some_and(|lead| lead.is(from.as_str()));
        if asker != from.as_str() || (*kind == RequestKind::Shutdown && !leads()) {
            return None;
        }
        // The id of a shutdown request names the member that must shut down. The id of a plan request names the
        // member that submits the plan. Other ids name no member.
        let names_match = match id.parse() {
            Ok(RequestId::Shutdown { member, .. }) => member == seat.name,
            Ok(RequestId::PlanApproval { agent, .. }) => {
                agent.name == *from && agent.team == seat.team
            }
            Ok(RequestId::Permission { .. }) | Err(_) => true,
        };
        (names_match && seat.is_authentic(team, message)).then_some(request)
    }
}

/// Returns the name of the question "how is this request answered?". The asked member answers it.
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

/// Returns the genuine requests to the seat in this team that the query selects, oldest first. If two of them share an id,
/// only the first is returned: a member that copies another member's request id gets no answer.
pub(super) async fn find(
    seat: &Seat,
    team: &Team<'_>,
    query: RequestQuery<'_>,
) -> Result<Vec<Request>, StoreError> {
    let created = team.created_at().unwrap_or_default();
    let found = seat.store.find_requests(&seat.team, &seat.name, created, query).await?;
    let mut requests: Vec<Request> = Vec::new();
    let mut ids: HashSet<String> = HashSet::new();
    for FoundRequest { number, record } in found {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            continue;
        };
        let read = with_message(message.get().as_bytes(), |message| {
            message
                .and_then(|message| Request::parse_genuine(seat, team, &message, record.at, number))
        });
        if let Ok(Some(request)) = read
            && ids.insert(request.id.clone())
        {
            requests.push(Request { key: record.event.message(), ..request });
        }
    }
    Ok(requests)
}

/// Returns the request to the seat with this id; `None` if there is no genuine one.
pub(super) async fn find_id(
    seat: &Seat,
    team: &Team<'_>,
    id: &str,
) -> Result<Option<Request>, StoreError> {
    Ok(find(seat, team, RequestQuery::Id(id)).await?.into_iter().next())
}
