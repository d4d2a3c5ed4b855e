//! Requests, as they are found in a mailbox. A request counts if it is what it says it is: made by
//! whoever sent it, and meant for whoever has it.

use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::request_id::RequestId;
use brigade_wire::team::Team;
use jiff::Timestamp;

use crate::event::{Event, Record};
use crate::mail::with_message;
use crate::seat::Seat;
use crate::store::{Question, StoreError};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To stop.
    Shutdown,
    /// To go on with a plan.
    Plan,
    /// To use a tool.
    Permission,
}

impl fmt::Display for Kind {
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
    /// What is asked for.
    pub kind: Kind,
    /// Its id, as written.
    pub id: String,
    /// Who asks.
    pub from: MemberName,
    /// The request.
    pub body: Protocol,
    /// Its number among those ever sent to the seat, counted from 1. It stays the same.
    pub number: usize,
    /// When it was asked.
    pub at: Timestamp,
}

impl Request {
    /// The question that its answer decides.
    pub(super) fn question(&self, seat: &Seat, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&seat.name, &answered(&seat.name, created, self.kind, &self.id))
    }

    /// The question by which whoever asked takes the request back. It is the asker's own to decide, as the
    /// answer is for whoever was asked: a store may let nobody decide for another.
    pub(super) fn withdrawal(&self, team: &Team<'_>) -> Question {
        let created = team.created_at().unwrap_or_default();
        Question::new(&self.from, &taken_back(&self.from, created, self.kind, &self.id))
    }

    /// The request that a message is, if it is one and nothing about it is false.
    fn of(
        seat: &Seat,
        team: &Team<'_>,
        message: &Message<'_>,
        found: Timestamp,
        number: usize,
    ) -> Option<Self> {
        let from: MemberName = message.from().parse().ok()?;
        if !seat.vouches_for(team, message) {
            return None;
        }
        let Body::Protocol(body) = message.body() else { return None };
        let (kind, id, asker) = match &body {
            Protocol::ShutdownRequest(asked) => (Kind::Shutdown, &asked.request_id, &asked.from),
            Protocol::PlanApprovalRequest(asked) => (Kind::Plan, &asked.request_id, &asked.from),
            Protocol::PermissionRequest(asked) => {
                (Kind::Permission, &asked.request_id, &asked.agent_id)
            }
            _ => return None,
        };
        // Nobody asks in another's name, and only the lead asks anybody to stop.
        let leads = || team.lead().is_some_and(|lead| lead.is(from.as_str()));
        if *asker != from.as_str() || (kind == Kind::Shutdown && !leads()) {
            return None;
        }
        // An id that names somebody names the right one. Other tools' ids name nobody.
        let named = match id.parse() {
            Ok(RequestId::Shutdown { member, .. }) => member == seat.name,
            Ok(RequestId::PlanApproval { agent, .. }) => {
                agent.name == from && agent.team == seat.team
            }
            Ok(RequestId::Permission { .. }) | Err(_) => true,
        };
        let id = id.clone();
        // What another program wrote may have been found long after; nothing is found before.
        let written = message.timestamp().parse().unwrap_or(found);
        named.then_some(Self { kind, id, from, body, number, at: written.min(found) })
    }
}

/// How a request is answered, in words, for whoever was asked.
pub(crate) fn answered(asked: &MemberName, created: u64, kind: Kind, id: &str) -> String {
    format!("{asked}@{created}-{kind}-{id}")
}

/// Whether whoever asked takes it back.
pub(crate) fn taken_back(asker: &MemberName, created: u64, kind: Kind, id: &str) -> String {
    format!("{asker}@{created}-takes-back-{kind}-{id}")
}

/// Which answer counts for whoever asked.
pub(crate) fn heard(asker: &MemberName, kind: Kind, id: &str) -> String {
    format!("{asker}-hears-{kind}-{id}")
}

/// Every request ever sent to the seat in this team, oldest first. Of two with one id the first
/// counts: who repeats another's id gets no answer to it.
pub(super) async fn all(seat: &Seat, team: &Team<'_>) -> Result<Vec<Request>, StoreError> {
    let records = seat.store.mailbox_history(&seat.team, &seat.name).await?;
    let mut requests: Vec<Request> = Vec::new();
    for record in records.iter().filter(|record| is_of(team, record)) {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            continue;
        };
        let read = with_message(message.get().as_bytes(), |message| {
            let number = requests.len() + 1;
            message.and_then(|message| Request::of(seat, team, &message, record.at, number))
        });
        if let Ok(Some(request)) = read
            && !requests.iter().any(|its| its.id == request.id)
        {
            requests.push(request);
        }
    }
    Ok(requests)
}

/// Whether a record is of this team, and not of an earlier one of the same name.
pub fn is_of(team: &Team<'_>, record: &Record) -> bool {
    let created = team.created_at().unwrap_or_default();
    match record.event {
        Event::Sent { team_created, .. } => team_created == created,
        _ => u64::try_from(record.at.as_millisecond()).unwrap_or_default() >= created,
    }
}
