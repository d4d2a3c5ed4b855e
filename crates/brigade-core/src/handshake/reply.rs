//! Answers a request exactly once.

use std::collections::{HashMap, HashSet};
use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::permission::{PermissionResponse, PermissionVerdict};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Answered, AnsweredRequest, HandshakeError, MAX_OPEN_REQUESTS, Request, RequestKind, request,
};
use crate::clock::wire_time;
use crate::event::{Event, MessageKey, Record, TopicKind, WITHDRAWN};
use crate::mail::{self, MailError};
use crate::seat::Seat;
use crate::store::{Actor, MailQuery, Mark, Outgoing, RequestQuery, StoreError};
use crate::text;

/// If a process decides on an answer but does not record it within this time, another process records it.
const IN_PROGRESS_WINDOW: SignedDuration = SignedDuration::from_secs(5);

/// The decider of an answer that Claude Code gave, for example in its permission dialog.
pub(super) const CLAUDE_CODE: &str = "Claude Code";

/// The first answer to a request. Later answers have no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The answer.
    pub answer: Protocol,
    /// The decider.
    pub hand: String,
    /// The time of the answer, in wire format.
    pub at: String,
}

/// The stored form of an answer: the message, and who decided.
#[derive(Serialize, Deserialize)]
pub(super) struct Decision {
    /// The decider. Older versions of brigade do not store this field.
    #[serde(default)]
    pub(super) hand: String,
    #[serde(flatten)]
    pub(super) message: Outgoing,
}

/// Answers a request that is open and that another current member sent to the seat.
pub(super) async fn reply(
    seat: &Seat,
    team: &Team<'_>,
    kind: RequestKind,
    AnsweredRequest { id, shown }: AnsweredRequest<'_>,
    response: impl FnOnce(&Protocol) -> Protocol,
) -> Result<Answered, HandshakeError> {
    let found = request::find_id(seat, team, id).await?;
    let Some(request) = found.as_ref().filter(|request| request.kind == kind) else {
        let open = open(seat, team).await?.into_iter().filter(|request| request.kind == kind);
        return Err(HandshakeError::NoRequest {
            kind,
            id: id.to_owned(),
            who: seat.name.clone(),
            open: open.map(|request| request.id).collect(),
        });
    };
    if shown.is_some_and(|shown| shown != request.digest) {
        return Err(HandshakeError::NotAsShown { kind, id: id.to_owned() });
    }
    if request.from == seat.name {
        return Err(HandshakeError::Own { id: id.to_owned(), who: seat.name.clone() });
    }
    let to = mail::recipient(seat, team, request.from.as_str())?;
    let question = request.question(seat, team);
    if seat.store.decided(&seat.team, &question).await?.is_none()
        && let Some(first) = undecided_answer(seat, team, request).await?.map(Box::new)
    {
        return Err(HandshakeError::Answered { id: id.to_owned(), first: Some(first) });
    }
    let ours = mail::protocol(seat, team, &to, &response(&request.body).to_text())?;
    // Once this decision is stored, it is the final answer. If this process dies, another process sends it.
    let ours = Decision { hand: seat.user.to_string(), message: ours };
    let text = serde_json::to_vec(&ours).unwrap_or_default();
    let decided = seat.store.decide(&seat.team, &question, &text).await?;
    if decided == text {
        let receipt = seat.store.send(&seat.team, &to, &ours.message).await?;
        record(seat, &seat.actor(), request, First::from_decision(&ours)).await;
        mark_read(seat, team, &[request]).await;
        tracing::info!(team = %seat.team, member = %to, request_id = id, hand = ours.hand, "answered request");
        return Ok(Answered { to, message: ours.message.key(), receipt });
    }
    let first = serde_json::from_slice::<Decision>(&decided).ok();
    if let Some(first) = &first
        && seat.store.recorded_answers(&seat.team, &seat.name, &[id]).await?.is_empty()
    {
        finish(seat, team, request, first).await?;
    }
    let first = first.and_then(|first| First::from_decision(&first)).map(Box::new);
    Err(HandshakeError::Answered { id: id.to_owned(), first })
}

/// Returns the answer to a request, or its withdrawal; `None` while the request waits.
pub(super) async fn first_answer(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
) -> Result<Option<First>, HandshakeError> {
    match seat.store.decided(&seat.team, &request.question(seat, team)).await? {
        Some(text) => {
            let decision = serde_json::from_slice::<Decision>(&text).ok();
            Ok(decision.and_then(|decision| First::from_decision(&decision)))
        }
        None => undecided_answer(seat, team, request).await,
    }
}

/// Returns the answer that Claude Code gave to a request, or the withdrawal of the request.
async fn undecided_answer(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
) -> Result<Option<First>, HandshakeError> {
    let foreign = foreign_answers(seat, &request.from, &[request]).await;
    match foreign.into_iter().find(|answer| answer.answers(request)) {
        Some(first) => Ok(Some(first)),
        None => taken_back(seat, team, request).await,
    }
}

/// Completes an answer that a process decided on but did not send or record before it died. The journal record is
/// written after sending, so an answer without a record may be unsent. An answer of Claude Code was stored when it arrived.
async fn finish(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
    first: &Decision,
) -> Result<(), HandshakeError> {
    if first.hand == CLAUDE_CODE {
        return Ok(());
    }
    if !mail::is_recorded(seat, &request.from, &first.message).await? {
        let team_created = team.created_at().unwrap_or_default();
        let message = Outgoing { team_created, ..first.message.clone() };
        // Claude Code accepts a signature only for a few minutes. The stored signature may be older: sign again.
        let message = match &seat.signer {
            Some(signer) if message.lead_sig.is_some() => {
                let timestamp = wire_time(seat.clock.now());
                mail::signed(signer.as_ref(), &request.from, Outgoing { timestamp, ..message })
                    .map_err(MailError::from)?
            }
            _ => message,
        };
        seat.store.send(&seat.team, &request.from, &message).await?;
    }
    let at: Option<Timestamp> = first.message.timestamp.parse().ok();
    if at.is_some_and(|at| seat.clock.now().duration_since(at) < IN_PROGRESS_WINDOW) {
        return Ok(());
    }
    record(seat, &seat.actor(), request, First::from_decision(first)).await;
    Ok(())
}

/// Records an answer in the journal. The answer is valid even if recording fails: the team may already be deleted,
/// for example after its last member agreed to shut down.
async fn record(seat: &Seat, by: &Actor, request: &Request, first: Option<First>) {
    let Some(first) = first else { return };
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
        tracing::warn!(team = %seat.team, %request_id, %error, "could not record the answer");
    }
}

impl First {
    pub(super) fn from_decision(decision: &Decision) -> Option<Self> {
        let Body::Protocol(answer) = Body::parse(&decision.message.text) else { return None };
        let (hand, at) = (decision.hand.clone(), decision.message.timestamp.clone());
        Some(Self { answer, hand, at })
    }

    /// Creates the answer that is reported for a withdrawn request.
    fn taken_back(request: &Request, at: String) -> Self {
        let verdict = PermissionVerdict::Error("the request was withdrawn".to_owned());
        let request_id = request.id.clone();
        let answer =
            PermissionResponse { request_id, tool_use_id: None, approved_request: None, verdict };
        Self { answer: answer.into(), hand: WITHDRAWN.to_owned(), at }
    }

    /// Returns the kind and the id of the plan or permission request that this answers.
    fn request(&self) -> Option<(RequestKind, &str)> {
        match &self.answer {
            Protocol::PlanApprovalResponse(answer) => Some((RequestKind::Plan, &answer.request_id)),
            Protocol::PermissionResponse(answer) => {
                Some((RequestKind::Permission, &answer.request_id))
            }
            _ => None,
        }
    }

    /// Returns whether this is the answer to `request`.
    fn answers(&self, request: &Request) -> bool {
        self.request() == Some((request.kind, &request.id))
    }

    /// Returns whether the answer is yes and, if it is no, the reason.
    pub fn outcome(&self) -> (bool, Option<&str>) {
        match &self.answer {
            Protocol::PlanApprovalResponse(answer) => (answer.approved, answer.feedback.as_deref()),
            Protocol::PermissionResponse(answer) => match &answer.verdict {
                PermissionVerdict::Success(_) => (true, None),
                PermissionVerdict::Error(why) => (false, Some(why)),
            },
            Protocol::ShutdownRejected(answer) => (false, answer.reason.as_deref()),
            _ => (true, None),
        }
    }

    /// Describes the answer for a person: `a person denied it 5 min ago: not now`.
    pub fn describe(&self, now: Timestamp) -> String {
        let age = match self.at.parse::<Timestamp>() {
            Ok(at) => text::age(now.duration_since(at)),
            Err(_) => format!("at {}", self.at),
        };
        if self.hand == WITHDRAWN {
            return format!("it was withdrawn {age}");
        }
        let (yes, reason) = self.outcome();
        let verb = if yes { "approved" } else { "denied" };
        let reason = reason.map(|reason| format!(": {}", text::one_line(reason)));
        format!("{} {verb} it {age}{}", self.decider(), reason.unwrap_or_default())
    }

    fn decider(&self) -> &str {
        match self.hand.as_str() {
            "" => "another program",
            "person" => "a person",
            "agent" => "an agent",
            hand => hand,
        }
    }
}

/// Prints for example "a person said no at 12:00: not now".
impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hand == WITHDRAWN {
            return write!(f, "it was withdrawn at {}", self.at);
        }
        let who = self.decider();
        let (yes, reason) = self.outcome();
        write!(f, "{who} said {} at {}", if yes { "yes" } else { "no" }, self.at)?;
        reason.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

/// Returns the answers to these requests of one member that another program sent in the seat's name, as Claude Code does when it
/// leads the team. If the asking member's mailbox cannot be read, returns no answers. That is safe, because the asking member
/// accepts only the first answer.
async fn foreign_answers(seat: &Seat, asker: &MemberName, requests: &[&Request]) -> Vec<First> {
    let mut answers = Vec::new();
    for (kind, topic) in ANSWER_TOPICS {
        let ids = requests.iter().filter(|request| request.kind == kind);
        let ids: Vec<&str> = ids.map(|request| request.id.as_str()).collect();
        if ids.is_empty() {
            continue;
        }
        match seat.store.find_mail(&seat.team, asker, MailQuery::About(topic, &ids)).await {
            Ok(records) => {
                let foreign = |record: &&Record| matches!(record.event, Event::Seen { .. });
                answers.extend(answers_from(seat, records.iter().filter(foreign)));
            }
            Err(error) => {
                tracing::warn!(team = %seat.team, member = %asker, %error, "could not read the mailbox to check for earlier answers");
            }
        }
    }
    answers
}

/// The kinds of requests that Claude Code answers for a lead, and the topics of the answers.
const ANSWER_TOPICS: [(RequestKind, TopicKind); 2] = [
    (RequestKind::Plan, TopicKind::PlanAnswer),
    (RequestKind::Permission, TopicKind::PermissionAnswer),
];

/// Returns the protocol messages from the seat in a mailbox.
fn answers_from<'r>(
    seat: &Seat,
    records: impl IntoIterator<Item = &'r Record>,
) -> impl Iterator<Item = First> {
    let answer = |message: Message<'_>| match message.body() {
        Body::Protocol(answer) if message.from() == seat.name.as_str() => {
            let (hand, at) = (CLAUDE_CODE.to_owned(), message.timestamp().into_owned());
            Some(First { answer, hand, at })
        }
        _ => None,
    };
    records.into_iter().filter_map(move |record| match &record.event {
        Event::Sent { message, .. } | Event::Seen { message, .. } => {
            with_message(message.get().as_bytes(), |message| message.and_then(answer)).ok()?
        }
        _ => None,
    })
}

/// Returns those of the asking member's requests that the seat has not answered, according to the asking member's mailbox.
pub(super) async fn without_answer<'r>(
    seat: &Seat,
    asker: &Seat,
    requests: Vec<&'r Request>,
) -> Result<Vec<&'r Request>, HandshakeError> {
    let ids: Vec<&str> = requests.iter().map(|request| request.id.as_str()).collect();
    let mut answered = HashSet::new();
    for (_, topic) in ANSWER_TOPICS {
        let query = MailQuery::About(topic, &ids);
        let records = asker.store.find_mail(&asker.team, &asker.name, query).await?;
        let request = |answer: First| answer.request().map(|(kind, id)| (kind, id.to_owned()));
        answered.extend(answers_from(seat, &records).filter_map(request));
    }
    let is_open = |request: &&Request| !answered.contains(&(request.kind, request.id.clone()));
    Ok(requests.into_iter().filter(is_open).collect())
}

/// Returns the requests to the seat that have no answer yet. A program that ignores the limit of open requests can
/// send any number of them, so only the first of each member count until they are answered.
pub(super) async fn open(seat: &Seat, team: &Team<'_>) -> Result<Vec<Request>, HandshakeError> {
    let mut open = Vec::new();
    let mut counts: HashMap<MemberName, usize> = HashMap::new();
    let mut answers: HashMap<MemberName, Vec<First>> = HashMap::new();
    let unsettled = request::find(seat, team, RequestQuery::Unsettled).await?;
    for request in &unsettled {
        if counts.get(&request.from).is_some_and(|count| *count >= MAX_OPEN_REQUESTS) {
            continue;
        }
        let decided = seat.store.decided(&seat.team, &request.question(seat, team)).await?;
        if decided.is_some() || taken_back(seat, team, request).await?.is_some() {
            continue;
        }
        let from = &request.from;
        if !answers.contains_key(from) {
            let theirs: Vec<&Request> = unsettled.iter().filter(|one| one.from == *from).collect();
            answers.insert(from.clone(), foreign_answers(seat, from, &theirs).await);
        }
        let answers = answers.get(from);
        if answers.is_some_and(|answers| answers.iter().any(|answer| answer.answers(request))) {
            continue;
        }
        *counts.entry(from.clone()).or_default() += 1;
        open.push(request.clone());
    }
    Ok(open)
}

/// Completes every answer that a process decided on but did not send or record before it died.
pub(super) async fn finish_all(seat: &Seat, team: &Team<'_>) -> Result<(), HandshakeError> {
    mark_settled(seat, team).await?;
    let requests = request::find(seat, team, RequestQuery::Unsettled).await?;
    let recorded = recorded_answers(seat, &requests).await?;
    for request in requests {
        if recorded.contains(&request.id) || team.member(request.from.as_str()).is_none() {
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

/// Marks the unread messages of answered and withdrawn requests as read. A member that withdraws a request does not mark
/// the message, because the message is in the lead's inbox.
async fn mark_settled(seat: &Seat, team: &Team<'_>) -> Result<(), HandshakeError> {
    if !marks_requests(seat, team).await? {
        return Ok(());
    }
    let inbox = seat.store.inbox(&seat.team, &seat.name).await?;
    let unread = inbox.iter().filter(|mail| mail.is_unread());
    let requests: Vec<Request> = unread
        .filter_map(|mail| {
            let read = |message: Option<Message<'_>>| {
                // The time and the number of the request do not matter here.
                Request::parse_genuine(seat, team, &message?, seat.clock.now(), 0)
            };
            let request = with_message(&mail.json, read).ok().flatten()?;
            Some(Request { key: Some(mail.key), ..request })
        })
        .collect();
    let recorded = recorded_answers(seat, &requests).await?;
    let mut settled = Vec::new();
    for request in &requests {
        if recorded.contains(&request.id) || taken_back(seat, team, request).await?.is_some() {
            settled.push(request);
        }
    }
    mark_read(seat, team, &settled).await;
    Ok(())
}

/// Returns the ids of those of the requests to the seat whose answers the seat recorded in the journal.
async fn recorded_answers(
    seat: &Seat,
    requests: &[Request],
) -> Result<HashSet<String>, StoreError> {
    if requests.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<&str> = requests.iter().map(|request| request.id.as_str()).collect();
    seat.store.recorded_answers(&seat.team, &seat.name, &ids).await
}

/// Marks the messages of requests that need no answer any more as read. As unread mail they would count towards the limit
/// of the asking member, which could not send a request any more once the limit is reached. An error is only logged, because
/// the supervisor marks the messages later.
async fn mark_read(seat: &Seat, team: &Team<'_>, requests: &[&Request]) {
    let asked = requests.iter().filter(|request| request.kind != RequestKind::Shutdown);
    let keys: Vec<MessageKey> = asked.filter_map(|request| request.key).collect();
    let marked = async {
        if !keys.is_empty() && marks_requests(seat, team).await? {
            mail::mark(seat, &keys, Mark::Read).await?;
        }
        Ok::<(), StoreError>(())
    };
    if let Err(error) = marked.await {
        tracing::warn!(team = %seat.team, %error, "cannot mark answered requests as read");
    }
}

/// Returns whether brigade marks requests to the lead as read: only in a team of files that brigade leads. A Claude Code
/// lead reads and marks its inbox itself. A store with an expiring history is shared by hosts: it has no limit of unread
/// mail, and Claude Code may lead from another host.
async fn marks_requests(seat: &Seat, team: &Team<'_>) -> Result<bool, StoreError> {
    let is_remote = team.lead().is_some_and(|lead| lead.is_remote());
    Ok(!is_remote && !seat.store.history_expires() && seat.store.is_ours(&seat.team).await?)
}

/// Withdraws the asking member's open permission requests to the seat for which `gone` returns true. Sends no
/// message. A later answer fails with an error that reports the withdrawal. Reads only what the asking member may
/// read: its own requests, its own mailbox and its own decisions.
pub(super) async fn take_back(
    seat: &Seat,
    asker: &Seat,
    team: &Team<'_>,
    gone: impl Fn(&str) -> bool,
) -> Result<(), HandshakeError> {
    let is_theirs =
        |request: &Request| request.kind == RequestKind::Permission && request.from == asker.name;
    let requests = request::find(seat, team, RequestQuery::Unsettled).await?;
    let theirs: Vec<&Request> =
        requests.iter().filter(|request| is_theirs(request) && gone(&request.id)).collect();
    if theirs.is_empty() {
        return Ok(());
    }
    for request in without_answer(seat, asker, theirs).await? {
        let ours = wire_time(asker.clock.now());
        let question = request.withdrawal(team);
        let first = asker.store.decide(&asker.team, &question, ours.as_bytes()).await?;
        if first == ours.as_bytes() {
            record(asker, &asker.actor(), request, Some(First::taken_back(request, ours))).await;
        }
    }
    Ok(())
}

/// Returns the withdrawal of a request; `None` if the request was not withdrawn. Only permission requests can be
/// withdrawn. A member may not be allowed to read the lead's decisions, so it does not look for others.
pub(super) async fn taken_back(
    seat: &Seat,
    team: &Team<'_>,
    request: &Request,
) -> Result<Option<First>, HandshakeError> {
    if request.kind != RequestKind::Permission {
        return Ok(None);
    }
    let at = seat.store.decided(&seat.team, &request.withdrawal(team)).await?;
    Ok(at.map(|at| First::taken_back(request, String::from_utf8_lossy(&at).into_owned())))
}
