//! Requests between members and the answers to them: shutdown, plan, permission.
//!
//! A request is a message to the member that must answer it; the answer is a message to the member that asked.
//! Each request gets one answer, which the store records before brigade sends it. A second answer to the same
//! request, from any program, fails with an error that reports the first answer.
//!
//! ```
//! use brigade_core::handshake::{self, Answer};
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let asked = handshake::request_shutdown(&lead, "bob", Some("all is done")).await?;
//! assert_eq!(handshake::open(&bob).await?.len(), 1);
//! handshake::answer_shutdown(&bob, &asked.request_id, Answer::Yes).await?;
//! assert_eq!(bob.role().await?, None, "a member that agrees to shut down leaves the team");
//! # Ok(())
//! # }
//! ```

mod accept;
mod limit;
mod number;
mod past;
mod permission;
mod reply;
pub(crate) mod request;

use std::borrow::Cow;

use brigade_wire::member::Member;
use brigade_wire::name::{AgentId, MemberName};
use brigade_wire::permission::{Grant, PermissionResponse, PermissionVerdict};
use brigade_wire::protocol::{
    PlanApprovalRequest, PlanApprovalResponse, Protocol, ShutdownApproved, ShutdownRejected,
    ShutdownRequest,
};
use brigade_wire::request_id::{RequestId, Token};
use brigade_wire::team::Team;
use jiff::Timestamp;
use thiserror::Error;
use uuid::Uuid;

pub use self::accept::{Acceptance, accept, accepted_message};
pub use self::past::{is_plan_approved, remove_agreed_members};
pub use self::permission::{GrantedInput, PermissionAsk, granted_input};
pub use self::reply::First;
use self::reply::reply;
pub use self::request::{AnsweredRequest, Request, RequestDigest, RequestKind, answer_question};
use crate::authority::{self, Denied};
use crate::clock::wire_time;
use crate::event::MessageKey;
use crate::mail::{self, MailError};
use crate::roster::{self, RosterError};
use crate::seat::Seat;
use crate::store::{Receipt, RequestQuery, StoreError};

/// The permission mode in which a teammate continues after its plan is approved. A Claude Code teammate obeys this
/// value, so brigade sends the mode in which the teammate asks before each further action.
const APPROVED_MODE: &str = "default";

/// The reason of an answer for which the author gave none.
pub const NO_REASON: &str = "no reason given";

/// An answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The answer is yes.
    Yes,
    /// The answer is no, for this reason.
    No(&'a str),
}

/// A request that was sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct SentRequest {
    /// The request id.
    pub request_id: String,
    /// The member that must answer.
    pub to: MemberName,
    /// The store's receipt for the message.
    pub receipt: Receipt,
}

/// An answer that was sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answered {
    /// The member that made the request.
    pub to: MemberName,
    /// Identifies the message with the answer in the mailbox of that member.
    pub message: MessageKey,
    /// The store's receipt for the message.
    pub receipt: Receipt,
}

/// The handling of requests that have no number yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewNumbers {
    /// Give them a number, which is a write to a store with an expiring history.
    Assign,
    /// Leave them out.
    LeaveOut,
}

/// The number of open plan and permission requests that one member may have.
const MAX_OPEN_REQUESTS: usize = 100;

/// Why a request or an answer failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The seat's role does not allow the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The team has no lead to send the request to.
    #[error("team {team} has no lead")]
    NoLead {
        /// The name of the team.
        team: String,
    },
    /// The request with this id is not the one that was shown to the caller.
    #[error("the {kind} request {id:?} is not the one that was shown; nothing was answered")]
    NotAsShown {
        /// The kind of request.
        kind: RequestKind,
        /// The request id.
        id: String,
    },
    /// The seat received no request with this id.
    #[error("no {kind} request {id:?} for {who}")]
    NoRequest {
        /// The kind of request.
        kind: RequestKind,
        /// The request id.
        id: String,
        /// The seat's member name.
        who: MemberName,
        /// The ids of the requests of this kind that wait for an answer.
        open: Vec<String>,
    },
    /// The request already has an answer.
    #[error("request {id:?} was already answered")]
    Answered {
        /// The request id.
        id: String,
        /// The first answer. Later answers have no effect.
        first: Option<Box<First>>,
    },
    /// The seat received no request with this id or number.
    #[error("no approval request {word}")]
    Unknown {
        /// The id or number that the caller searched for.
        word: String,
        /// The seat's member name.
        who: MemberName,
        /// The numbers of the waiting requests.
        open: Vec<usize>,
    },
    /// The seat made the request itself. A member must not answer its own request.
    #[error("{who} cannot answer its own request {id:?}")]
    Own {
        /// The request id.
        id: String,
        /// The seat's member name.
        who: MemberName,
    },
    /// The member has too many open requests.
    #[error(
        "{who} has {open} open requests; it can send no more until {to} has answered some of them"
    )]
    TooManyOpen {
        /// The member that made the requests.
        who: MemberName,
        /// The number of its open requests.
        open: usize,
        /// The member that must answer.
        to: MemberName,
    },
    /// The plan is blank.
    #[error("the plan is empty")]
    NoPlan,
    /// The shutdown was approved, but removing the member from the team failed.
    #[error("the shutdown was approved, but the member could not be removed from the team")]
    Leaving(#[source] Box<RosterError>),
    /// Sending the message failed.
    #[error(transparent)]
    Send(#[from] MailError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Asks a teammate to shut down. Only the lead may call this.
pub async fn request_shutdown(
    seat: &Seat,
    to: &str,
    reason: Option<&str>,
) -> Result<SentRequest, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "ask a teammate to shut down")?;
    let to = mail::recipient(seat, &team, to)?;
    let id = |at| RequestId::Shutdown { at, member: to.clone() };
    let asked = Seat { name: to.clone(), ..seat.clone() };
    let request_id = fresh_id(&asked, &team, id).await?;
    let request = ShutdownRequest {
        request_id: request_id.clone(),
        from: seat.name.to_string(),
        reason: reason.map(str::to_owned),
        timestamp: wire_time(seat.clock.now()),
    };
    send_request(seat, &team, to, request_id, request.into()).await
}

/// Submits a plan to the lead. Only a teammate may call this.
pub async fn submit_plan(
    seat: &Seat,
    plan: &str,
    path: Option<&str>,
) -> Result<SentRequest, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_teammate(seat, &team, "submit a plan")?;
    if plan.trim().is_empty() {
        return Err(HandshakeError::NoPlan);
    }
    let lead = lead(seat, &team)?;
    let agent = AgentId { name: seat.name.clone(), team: seat.team.clone() };
    let id = |at| RequestId::PlanApproval { at, agent: agent.clone() };
    let lead_seat = Seat { name: lead.clone(), ..seat.clone() };
    limit::check_open(&lead_seat, seat, &team).await?;
    let request_id = fresh_id(&lead_seat, &team, id).await?;
    let request = PlanApprovalRequest {
        from: seat.name.to_string(),
        timestamp: wire_time(seat.clock.now()),
        // Claude Code rejects a plan request without this field.
        plan_file_path: Some(path.unwrap_or_default().to_owned()),
        plan_content: plan.to_owned(),
        request_id: request_id.clone(),
    };
    send_request(seat, &team, lead, request_id, request.into()).await
}

/// Asks the lead for permission to use a tool.
pub async fn request_permission(
    seat: &Seat,
    permission: &PermissionAsk<'_>,
) -> Result<SentRequest, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_teammate(seat, &team, "ask for permission")?;
    let lead = lead(seat, &team)?;
    let lead_seat = Seat { name: lead.clone(), ..seat.clone() };
    limit::check_open(&lead_seat, seat, &team).await?;
    let token = Token::from_random(Uuid::new_v4().as_u64_pair().0);
    let request_id = RequestId::Permission { at: seat.now_ms(), token }.to_string();
    let request = permission.request(&request_id, &seat.name);
    send_request(seat, &team, lead, request_id, request.into()).await
}

/// Withdraws the seat's open permission requests for which `gone` returns true. `gone` receives a request id, and
/// returns true if no process waits for the answer any more.
pub async fn withdraw(seat: &Seat, gone: impl Fn(&str) -> bool) -> Result<(), HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    let lead_seat = Seat { name: lead(seat, &team)?, ..seat.clone() };
    reply::take_back(&lead_seat, seat, &team, gone).await
}

/// Answers the lead's shutdown request. A member that agrees leaves the team, and its open tasks return to the
/// board. The member must remove itself, because a Claude Code lead removes only members that it started.
pub async fn answer_shutdown(
    seat: &Seat,
    id: &str,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_teammate(seat, &team, "answer a shutdown request")?;
    // A Claude Code lead uses the pane id and the backend type to close the pane that it opened.
    let own = team.member(seat.name.as_str());
    let pane_id = own.as_ref().and_then(|own| own.tmux_pane_id().filter(|pane| !pane.is_empty()));
    let backend_type = own.as_ref().and_then(Member::backend_type).filter(|_| pane_id.is_some());
    let answered = reply(seat, &team, RequestKind::Shutdown, id.into(), |_| {
        let (request_id, from) = (id.to_owned(), seat.name.to_string());
        let timestamp = wire_time(seat.clock.now());
        match answer {
            Answer::Yes => ShutdownApproved {
                request_id,
                from,
                timestamp,
                pane_id: pane_id.map(Cow::into_owned),
                backend_type: backend_type.map(Cow::into_owned),
            }
            .into(),
            Answer::No(why) => {
                let reason = Some(why.to_owned());
                ShutdownRejected { request_id, from, reason, timestamp }.into()
            }
        }
    });
    let answered = answered.await;
    let approved = match &answered {
        Ok(_) => answer == Answer::Yes,
        // If the member agreed earlier but crashed before it left, it leaves now.
        Err(HandshakeError::Answered { first, .. }) => {
            first.as_ref().is_some_and(|first| first.outcome().0)
        }
        Err(_) => false,
    };
    if approved {
        let left = roster::leave(seat, &seat.name).await;
        left.map_err(|error| HandshakeError::Leaving(Box::new(error)))?;
    }
    answered
}

/// Approves or rejects a teammate's plan. Only the lead may call this.
pub async fn answer_plan<'r>(
    seat: &Seat,
    request: impl Into<AnsweredRequest<'r>>,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let answered = request.into();
    let id = answered.id;
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_answering_lead(seat, &team, "answer a plan")?;
    let response = |_: &Protocol| {
        let mut response = PlanApprovalResponse {
            request_id: id.to_owned(),
            approved: answer == Answer::Yes,
            feedback: None,
            timestamp: wire_time(seat.clock.now()),
            permission_mode: None,
            plan_digest: None,
        };
        match answer {
            Answer::Yes => response.permission_mode = Some(APPROVED_MODE.to_owned()),
            Answer::No(why) => response.feedback = Some(why.to_owned()),
        }
        response.into()
    };
    reply(seat, &team, RequestKind::Plan, answered, response).await
}

/// Answers a teammate's permission request. Only the lead may call this. If the answer is yes, the teammate
/// may make only this one tool call, with the input in the request.
pub async fn answer_permission<'r>(
    seat: &Seat,
    request: impl Into<AnsweredRequest<'r>>,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let answered = request.into();
    let id = answered.id;
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_answering_lead(seat, &team, "answer a permission request")?;
    let response = |request: &Protocol| {
        let verdict = match (answer, request) {
            (Answer::Yes, Protocol::PermissionRequest(request)) => {
                PermissionVerdict::Success(Grant {
                    updated_input: Some(request.input.clone()),
                    permission_updates: Some(Vec::new()),
                })
            }
            (Answer::Yes, _) => PermissionVerdict::Error("not a permission request".to_owned()),
            (Answer::No(why), _) => PermissionVerdict::Error(why.to_owned()),
        };
        let (request_id, tool_use_id) = (id.to_owned(), None);
        PermissionResponse { request_id, tool_use_id, approved_request: None, verdict }.into()
    };
    reply(seat, &team, RequestKind::Permission, answered, response).await
}

/// Returns the requests waiting for the seat's answer, oldest first.
pub async fn open(seat: &Seat) -> Result<Vec<Request>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    reply::open(seat, &team).await
}

/// Finds a plan or permission request to the seat, open or answered, by its number or its id. A number is never treated as an
/// id: a member chooses the ids of its requests, and could use another request's number as an id. Only the lead may call this.
pub(crate) async fn asked(
    seat: &Seat,
    number_or_id: &str,
) -> Result<Option<Request>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "list and answer approval requests")?;
    let found = match number_or_id.parse::<usize>() {
        Ok(wanted) => number::find(seat, &team, wanted).await?,
        Err(_) => request::find_id(seat, &team, number_or_id).await?,
    };
    Ok(found.filter(|request| request.kind != RequestKind::Shutdown))
}

/// Returns the answer to a request to the seat, or its withdrawal; `None` while the request waits. Only the lead may call this.
pub(crate) async fn first_answer(
    seat: &Seat,
    kind: RequestKind,
    id: &str,
) -> Result<Option<First>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "list and answer approval requests")?;
    match request::find_id(seat, &team, id).await?.filter(|request| request.kind == kind) {
        Some(request) => reply::first_answer(seat, &team, &request).await,
        None => Ok(None),
    }
}

/// Returns the open plan and permission requests of current members. Only the lead may call this.
/// Requests that have no number yet get one, or are left out if nothing may be written.
pub(crate) async fn waiting(
    seat: &Seat,
    numbers: NewNumbers,
) -> Result<Vec<Request>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "list and answer approval requests")?;
    let mut open = reply::open(seat, &team).await?;
    match numbers {
        NewNumbers::Assign => number::assign(seat, &team, &mut open).await?,
        NewNumbers::LeaveOut => number::retain_numbered(seat, &team, &mut open).await?,
    }
    open.retain(|request| {
        request.kind != RequestKind::Shutdown && team.member(request.from.as_str()).is_some()
    });
    Ok(open)
}

/// Returns the plan and permission requests since `start`, open or answered. Only the lead may call this. The requests have
/// positions instead of numbers.
pub(crate) async fn since(seat: &Seat, start: Timestamp) -> Result<Vec<Request>, HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_lead(seat, &team, "list and answer approval requests")?;
    let mut found = request::find(seat, &team, RequestQuery::All).await?;
    found.retain(|request| request.at >= start);
    Ok(found)
}

/// Sends and records answers that another process decided on but did not send before it died.
pub(crate) async fn finish(seat: &Seat) -> Result<(), HandshakeError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    reply::finish_all(seat, &team).await
}

/// Creates an id that no other request to the asked member has, even if two requests are made in the same millisecond.
async fn fresh_id(
    asked: &Seat,
    team: &Team<'_>,
    id: impl Fn(u64) -> RequestId,
) -> Result<String, StoreError> {
    let mut at = asked.now_ms();
    loop {
        let id = id(at).to_string();
        if request::find_id(asked, team, &id).await?.is_none() {
            return Ok(id);
        }
        at += 1;
    }
}

async fn send_request(
    seat: &Seat,
    team: &Team<'_>,
    to: MemberName,
    request_id: String,
    request: Protocol,
) -> Result<SentRequest, HandshakeError> {
    let message = mail::protocol(seat, team, &to, &request.to_text())?;
    let receipt = seat.store.send(&seat.team, &to, &message).await.map_err(MailError::from)?;
    tracing::info!(team = %seat.team, member = %to, %request_id, "sent request: {}", request.kind());
    Ok(SentRequest { request_id, to, receipt })
}

fn lead(seat: &Seat, team: &Team<'_>) -> Result<MemberName, HandshakeError> {
    let none = || HandshakeError::NoLead { team: seat.team.to_string() };
    let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
    lead.ok_or_else(none)
}
