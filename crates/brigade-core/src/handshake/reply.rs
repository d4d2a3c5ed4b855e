//! Giving an answer, once.

use std::collections::HashSet;
use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::permission::{PermissionResponse, Verdict};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Answered, HandshakeError, Kind, Request, request};
use crate::clock::wire_time;
use crate::event::{Event, MessageKey};
use crate::mail::{self, with_message};
use crate::seat::Seat;
use crate::store::{Actor, Outgoing};

/// How long whoever decides on an answer has to send it and write it down. It takes milliseconds.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(5);

/// In place of a hand: the one who asked no longer does.
pub const TAKEN_BACK: &str = "taken back";

/// The answer that counts, as it was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The answer.
    pub answer: Protocol,
    /// By whose hand; empty if another program gave it.
    pub hand: String,
    /// When, as on the wire.
    pub at: String,
}

/// An answer as it is decided on: the message, and by whose hand.
#[derive(Serialize, Deserialize)]
struct Decision {
    /// Not known of answers by an older brigade.
    #[serde(default)]
    hand: String,
    #[serde(flatten)]
    message: Outgoing,
}

/// Answers a request that is open and was sent to the seat by somebody else who is still there.
pub(super) async fn reply(
    seat: &Seat,
    team: &Team<'_>,
    kind: Kind,
    id: &str,
    response: impl FnOnce(&Protocol) -> Protocol,
) -> Result<Answered, HandshakeError> {
    let requests = request::all(seat, team).await?;
    let Some(request) = requests.iter().find(|its| its.kind == kind && its.id == id) else {
        let open = open(seat, team).await?.into_iter().filter(|its| its.kind == kind);
        return Err(HandshakeError::NoRequest {
            kind,
            id: id.to_owned(),
            who: seat.name.clone(),
            open: open.map(|its| its.id).collect(),
        });
    };
    if request.from == seat.name {
        return Err(HandshakeError::Own { id: id.to_owned(), who: seat.name.clone() });
    }
    let to = mail::recipient(seat, team, request.from.as_str())?;
    let question = request.question(seat, team);
    if seat.store.decided(&seat.team, &question).await?.is_none() {
        let elsewhere = elsewhere(seat, &to).await.into_iter().find(|its| its.is_to(request));
        let first = match elsewhere {
            Some(first) => Some(first),
            None => taken_back(seat, team, request).await?,
        };
        if let Some(first) = first.map(Box::new) {
            return Err(HandshakeError::Answered { id: id.to_owned(), first: Some(first) });
        }
    }
    let ours = mail::protocol(seat, team, &to, &response(&request.body).to_text())?;
    // From here on this is the answer, whoever sends it.
    let ours = Decision { hand: seat.hand.to_string(), message: ours };
    let text = serde_json::to_vec(&ours).unwrap_or_default();
    let decided = seat.store.decide(&seat.team, &question, &text).await?;
    if decided == text {
        let receipt = seat.store.send(&seat.team, &to, &ours.message).await?;
        record(seat, &seat.actor(), request, First::of(&ours)).await;
        tracing::info!(team = %seat.team, member = %to, request_id = id, hand = ours.hand, "answered");
        return Ok(Answered { to, receipt });
    }
    let first = serde_json::from_slice::<Decision>(&decided).ok();
    if let Some(first) = &first
        && !told(seat).await?.contains(id)
    {
        finish(seat, team, request, first).await?;
    }
    let first = first.and_then(|first| First::of(&first)).map(Box::new);
    Err(HandshakeError::Answered { id: id.to_owned(), first })
}

/// Finishes what somebody began who decided on an answer, and died before it was sent or written down.
/// An answer that has no record is one of these: what is written down was sent before.
async fn finish(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
    first: &Decision,
) -> Result<(), HandshakeError> {
    let key = MessageKey::of_id(&first.message.msg_id);
    let records = seat.store.mailbox_history(&seat.team, &request.from).await?;
    if !records.iter().any(|record| record.event.message() == Some(key)) {
        let team_created = team.created_at().unwrap_or_default();
        let message = Outgoing { team_created, ..first.message.clone() };
        // A signature counts for minutes, and this one may be old.
        let message = match &seat.signer {
            Some(signer) if message.lead_sig.is_some() => {
                let timestamp = wire_time(seat.clock.now());
                mail::signed(signer.as_ref(), &request.from, Outgoing { timestamp, ..message })
            }
            _ => message,
        };
        seat.store.send(&seat.team, &request.from, &message).await?;
    }
    let at: Option<Timestamp> = first.message.timestamp.parse().ok();
    if at.is_some_and(|at| seat.clock.now().duration_since(at) < UNDER_WAY) {
        return Ok(());
    }
    record(seat, &seat.actor(), request, First::of(first)).await;
    Ok(())
}

/// The ids of the requests whose answers were written down.
async fn told(seat: &Seat) -> Result<HashSet<String>, HandshakeError> {
    let history = seat.store.proceedings(&seat.team).await?;
    let ids = history.into_iter().filter_map(|record| match record.event {
        Event::Answered { request_id, .. } => Some(request_id),
        _ => None,
    });
    Ok(ids.collect())
}

/// Writes down who answered what. It was answered all the same if that fails: who agreed to stop may find
/// no team any more to write it down for.
async fn record(seat: &Seat, by: &Actor, request: &Request, given: Option<First>) {
    let Some(first) = given else { return };
    let (yes, reason) = first.outcome();
    let event = Event::Answered {
        request_id: request.id.clone(),
        kind: request.kind.to_string(),
        to: request.from.to_string(),
        yes,
        reason: reason.map(str::to_owned),
        hand: first.hand,
    };
    if let Err(error) = seat.store.record(&seat.team, event, by).await {
        let request_id = &request.id;
        tracing::warn!(team = %seat.team, %request_id, %error, "the answer is not written down");
    }
}

impl First {
    fn of(given: &Decision) -> Option<Self> {
        let Body::Protocol(answer) = Body::parse(&given.message.text) else { return None };
        let (hand, at) = (given.hand.clone(), given.message.timestamp.clone());
        Some(Self { answer, hand, at })
    }

    /// In place of an answer to a request that was taken back.
    fn taken_back(request: &Request, at: String) -> Self {
        let verdict = Verdict::Error("no longer asked".to_owned());
        let request_id = request.id.clone();
        let answer =
            PermissionResponse { request_id, tool_use_id: None, approved_request: None, verdict };
        Self { answer: answer.into(), hand: TAKEN_BACK.to_owned(), at }
    }

    /// Whether it answers this request.
    fn is_to(&self, request: &Request) -> bool {
        match (request.kind, &self.answer) {
            (Kind::Plan, Protocol::PlanApprovalResponse(answer)) => answer.request_id == request.id,
            (Kind::Permission, Protocol::PermissionResponse(answer)) => {
                answer.request_id == request.id
            }
            _ => false,
        }
    }

    /// Yes or no, and why not.
    pub fn outcome(&self) -> (bool, Option<&str>) {
        match &self.answer {
            Protocol::PlanApprovalResponse(answer) => (answer.approved, answer.feedback.as_deref()),
            Protocol::PermissionResponse(answer) => match &answer.verdict {
                Verdict::Success(_) => (true, None),
                Verdict::Error(why) => (false, Some(why)),
            },
            Protocol::ShutdownRejected(answer) => (false, answer.reason.as_deref()),
            _ => (true, None),
        }
    }
}

/// As in "a person said no at 12:00: not now".
impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.hand.as_str() {
            TAKEN_BACK => return write!(f, "it was taken back at {}", self.at),
            "" => "somebody",
            "person" => "a person",
            "agent" => "an agent",
            hand => hand,
        };
        let (yes, reason) = self.outcome();
        write!(f, "{who} said {} at {}", if yes { "yes" } else { "no" }, self.at)?;
        reason.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

/// The answers in somebody's mailbox that another program gave in the seat's name, as Claude Code does
/// when it leads. Where they cannot be looked up there are none: the one who asked hears the first.
async fn elsewhere(seat: &Seat, asker: &MemberName) -> Vec<First> {
    let records = match seat.store.mailbox_history(&seat.team, asker).await {
        Ok(records) => records,
        Err(error) => {
            tracing::warn!(team = %seat.team, member = %asker, %error, "its answers are not known");
            return Vec::new();
        }
    };
    let answer = |message: Message<'_>| match message.body() {
        Body::Protocol(answer) if message.from() == seat.name.as_str() => {
            Some(First { answer, hand: String::new(), at: message.timestamp().into_owned() })
        }
        _ => None,
    };
    let answers = records.iter().filter_map(|record| match &record.event {
        Event::Seen { message, .. } => {
            with_message(message.get().as_bytes(), |message| message.and_then(answer)).ok()?
        }
        _ => None,
    });
    answers.collect()
}

/// The requests that have no answer yet.
pub(super) async fn open(seat: &Seat, team: &Team<'_>) -> Result<Vec<Request>, HandshakeError> {
    let mut open = Vec::new();
    for request in request::all(seat, team).await? {
        let decided = seat.store.decided(&seat.team, &request.question(seat, team)).await?;
        if decided.is_none() && taken_back(seat, team, &request).await?.is_none() {
            open.push(request);
        }
    }
    let mut askers: Vec<MemberName> = open.iter().map(|request| request.from.clone()).collect();
    askers.sort();
    askers.dedup();
    for asker in askers {
        let answers = elsewhere(seat, &asker).await;
        open.retain(|request| !answers.iter().any(|answer| answer.is_to(request)));
    }
    Ok(open)
}

/// Finishes every answer that was decided on and not finished.
pub(super) async fn finish_all(seat: &Seat, team: &Team<'_>) -> Result<(), HandshakeError> {
    let requests = request::all(seat, team).await?;
    if requests.is_empty() {
        return Ok(());
    }
    let told = told(seat).await?;
    for request in requests {
        if told.contains(&request.id) || team.member(request.from.as_str()).is_none() {
            continue;
        }
        let decided = seat.store.decided(&seat.team, &request.question(seat, team)).await?;
        let first = decided.and_then(|text| serde_json::from_slice::<Decision>(&text).ok());
        if let Some(first) = first {
            finish(seat, team, &request, &first).await?;
        }
    }
    Ok(())
}

/// Takes back requests of the asker's that wait for the seat's answer. Whoever answers later is told so;
/// nobody is sent anything.
pub(super) async fn take_back(
    seat: &Seat,
    asker: &Seat,
    team: &Team<'_>,
    gone: impl Fn(&str) -> bool,
) -> Result<(), HandshakeError> {
    let theirs = |its: &Request| its.kind == Kind::Permission && its.from == asker.name;
    for request in open(seat, team).await?.iter().filter(|its| theirs(its) && gone(&its.id)) {
        let ours = wire_time(asker.clock.now());
        let question = request.withdrawal(team);
        let first = asker.store.decide(&asker.team, &question, ours.as_bytes()).await?;
        if first == ours.as_bytes() {
            record(asker, &asker.actor(), request, Some(First::taken_back(request, ours))).await;
        }
    }
    Ok(())
}

/// That whoever asked no longer does, if so.
async fn taken_back(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
) -> Result<Option<First>, HandshakeError> {
    let at = seat.store.decided(&seat.team, &request.withdrawal(team)).await?;
    Ok(at.map(|at| First::taken_back(request, String::from_utf8_lossy(&at).into_owned())))
}
