//! Asking and answering: shutdown, plan, permission.
//!
//! A request is a message in somebody's mailbox, an answer one in the asker's. An answer is given
//! once: it is decided in the store before it is sent, and whoever comes later, from whatever
//! program, is told that it was.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let asked = handshake::request_shutdown(&lead, "bob", Some("all is done")).await?;
//! assert_eq!(handshake::open(&bob).await?.len(), 1);
//! handshake::answer_shutdown(&bob, &asked.request_id, Answer::Yes).await?;
//! assert_eq!(bob.role().await?, None, "whoever agrees to stop has left");
//! # Ok(())
//! # }
//! ```

mod past;
mod permission;
mod reply;
pub(crate) mod request;

use std::borrow::Cow;

use brigade_wire::member::Member;
use brigade_wire::name::{AgentId, MemberName};
use brigade_wire::permission::{Grant, PermissionResponse, Verdict};
use brigade_wire::protocol::{
    PlanApprovalRequest, PlanApprovalResponse, Protocol, ShutdownApproved, ShutdownRejected,
    ShutdownRequest,
};
use brigade_wire::request_id::{RequestId, Token};
use brigade_wire::team::Team;
use thiserror::Error;
use uuid::Uuid;

pub use self::past::{farewell, plan_was_approved};
pub use self::permission::Leave;
use self::reply::reply;
pub use self::reply::{First, TAKEN_BACK};
pub use self::request::is_of;
pub use self::request::{Kind, Request};
use crate::authority::{self, Denied};
use crate::clock::wire_time;
use crate::event::MessageKey;
use crate::mail::{self, MailError};
use crate::roster::{self, RosterError};
use crate::seat::Seat;
use crate::store::{Question, Receipt, StoreError};

/// The permission mode a teammate goes on with when its plan is approved. It is obeyed, so it is
/// the one that asks for everything else.
const APPROVED_MODE: &str = "default";

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Yes.
    Yes,
    /// No, and why.
    No(&'a str),
}

/// A request that was sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    /// Its id.
    pub request_id: String,
    /// Who was asked.
    pub to: MemberName,
    /// What the store said.
    pub receipt: Receipt,
}

/// An answer that was sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answered {
    /// Who had asked.
    pub to: MemberName,
    /// What the store said.
    pub receipt: Receipt,
}

/// Why nothing was asked or answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// It is not for the seat to do.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The team has no lead to ask.
    #[error("team {team} has no lead")]
    NoLead {
        /// Which team.
        team: String,
    },
    /// Nothing of that id was asked of the seat.
    #[error("no {kind} request {id:?} was sent to {who}")]
    NoRequest {
        /// What was looked for.
        kind: Kind,
        /// Its id.
        id: String,
        /// The seat.
        who: MemberName,
        /// The requests of that kind which are open.
        open: Vec<String>,
    },
    /// It was answered before.
    #[error("the request {id:?} was answered already")]
    Answered {
        /// Its id.
        id: String,
        /// The answer.
        first: Option<Box<First>>,
    },
    /// Nothing of that id or number was asked of the seat.
    #[error("no request {word:?} was sent to {who}")]
    Unknown {
        /// What was looked for.
        word: String,
        /// The seat.
        who: MemberName,
        /// The numbers of the requests that wait.
        open: Vec<usize>,
    },
    /// Nobody says yes to themselves.
    #[error("the request {id:?} is {who}'s own")]
    Own {
        /// Its id.
        id: String,
        /// The seat.
        who: MemberName,
    },
    /// Nothing to decide on.
    #[error("the plan is empty")]
    NoPlan,
    /// The shutdown was approved, and the member could not be taken off the team.
    #[error("approved, but the team could not be left")]
    Leaving(#[source] Box<RosterError>),
    /// The message could not be sent.
    #[error(transparent)]
    Send(#[from] MailError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Asks a teammate to stop. Only the lead may.
pub async fn request_shutdown(
    seat: &Seat,
    to: &str,
    reason: Option<&str>,
) -> Result<Asked, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::lead(seat, &team, "ask a teammate to shut down")?;
    let to = mail::recipient(seat, &team, to)?;
    let id = |at| RequestId::Shutdown { at, member: to.clone() };
    let request_id = fresh_id(seat, &team, &to, id).await?;
    let request = ShutdownRequest {
        request_id: request_id.clone(),
        from: seat.name.to_string(),
        reason: reason.map(str::to_owned),
        timestamp: wire_time(seat.clock.now()),
    };
    ask(seat, &team, to, request_id, request.into()).await
}

/// Submits a plan to the lead. Only a teammate does.
pub async fn submit_plan(
    seat: &Seat,
    plan: &str,
    path: Option<&str>,
) -> Result<Asked, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::teammate(seat, &team, "submit a plan")?;
    if plan.trim().is_empty() {
        return Err(HandshakeError::NoPlan);
    }
    let lead = lead(seat, &team)?;
    let agent = AgentId { name: seat.name.clone(), team: seat.team.clone() };
    let id = |at| RequestId::PlanApproval { at, agent: agent.clone() };
    let request_id = fresh_id(seat, &team, &lead, id).await?;
    let request = PlanApprovalRequest {
        from: seat.name.to_string(),
        timestamp: wire_time(seat.clock.now()),
        // Claude Code reads no request without it.
        plan_file_path: Some(path.unwrap_or_default().to_owned()),
        plan_content: plan.to_owned(),
        request_id: request_id.clone(),
    };
    ask(seat, &team, lead, request_id, request.into()).await
}

/// Asks the lead for leave to use a tool.
pub async fn request_permission(seat: &Seat, leave: &Leave<'_>) -> Result<Asked, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::teammate(seat, &team, "ask for permission")?;
    let lead = lead(seat, &team)?;
    let token = Token::from_random(Uuid::new_v4().as_u64_pair().0);
    let request_id = RequestId::Permission { at: now(seat), token }.to_string();
    let request = leave.request(&request_id, &seat.name);
    ask(seat, &team, lead, request_id, request.into()).await
}

/// Takes back those of the seat's requests for leave that wait, and of which `gone` says that nobody waits
/// for them any more: an answer would reach nobody.
pub async fn take_back(seat: &Seat, gone: impl Fn(&str) -> bool) -> Result<(), HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let of_lead = Seat { name: lead(seat, &team)?, ..seat.clone() };
    reply::take_back(&of_lead, seat, &team, gone).await
}

/// Whether an answer that came to the seat counts: the seat asked for it, of its lead, and it is the
/// first. `message` tells answers apart.
pub async fn counts(
    seat: &Seat,
    kind: Kind,
    id: &str,
    message: MessageKey,
) -> Result<bool, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let lead = lead(seat, &team)?;
    let of_lead = Seat { name: lead, ..seat.clone() };
    let asked = request::all(&of_lead, &team).await?;
    if !asked.iter().any(|its| its.kind == kind && its.id == id && its.from == seat.name) {
        return Ok(false);
    }
    let question = Question::new(&seat.name, &request::heard(&seat.name, kind, id));
    let first = seat.store.decide(&seat.team, &question, message.to_string().as_bytes()).await?;
    Ok(first == message.to_string().as_bytes())
}

/// Answers the lead's request to stop. Who says yes leaves the team, and its open tasks go back to
/// the board; a lead does neither for members it did not start.
pub async fn answer_shutdown(
    seat: &Seat,
    id: &str,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::teammate(seat, &team, "answer a shutdown request")?;
    // With these a lead of Claude Code's closes the pane it opened.
    let own = team.member(seat.name.as_str());
    let pane_id = own.as_ref().and_then(|own| own.tmux_pane_id().filter(|pane| !pane.is_empty()));
    let backend_type = own.as_ref().and_then(Member::backend_type).filter(|_| pane_id.is_some());
    let answered = reply(seat, &team, Kind::Shutdown, id, |_| {
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
        // It may have said yes before, and died before it could leave.
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

/// Answers a teammate's plan. Only the lead may.
pub async fn answer_plan(
    seat: &Seat,
    id: &str,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::answering(seat, &team, "answer a plan")?;
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
    reply(seat, &team, Kind::Plan, id, response).await
}

/// Answers a teammate's request to use a tool. Only the lead may. What is granted is this one call,
/// as it was asked for.
pub async fn answer_permission(
    seat: &Seat,
    id: &str,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::answering(seat, &team, "answer a permission request")?;
    let response = |request: &Protocol| {
        let verdict = match (answer, request) {
            (Answer::Yes, Protocol::PermissionRequest(request)) => Verdict::Success(Grant {
                updated_input: Some(request.input.clone()),
                permission_updates: Some(Vec::new()),
            }),
            (Answer::Yes, _) => Verdict::Error("not a permission request".to_owned()),
            (Answer::No(why), _) => Verdict::Error(why.to_owned()),
        };
        let (request_id, tool_use_id) = (id.to_owned(), None);
        PermissionResponse { request_id, tool_use_id, approved_request: None, verdict }.into()
    };
    reply(seat, &team, Kind::Permission, id, response).await
}

/// The requests sent to the seat that wait for its answer, oldest first.
pub async fn open(seat: &Seat) -> Result<Vec<Request>, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    reply::open(seat, &team).await
}

/// Every request for a plan or for leave that was ever sent to the seat, oldest first. Only for the
/// lead.
pub(crate) async fn asked(seat: &Seat) -> Result<Vec<Request>, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::lead(seat, &team, "see and answer what waits")?;
    let mut asked = request::all(seat, &team).await?;
    asked.retain(|request| request.kind != Kind::Shutdown);
    Ok(asked)
}

/// Those that wait for an answer, of members who are still there.
pub(crate) async fn waiting(seat: &Seat) -> Result<Vec<Request>, HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::lead(seat, &team, "see and answer what waits")?;
    let mut open = reply::open(seat, &team).await?;
    open.retain(|its| its.kind != Kind::Shutdown && team.member(its.from.as_str()).is_some());
    Ok(open)
}

/// Sends and writes down the answers that somebody decided on who died before.
pub(crate) async fn finish(seat: &Seat) -> Result<(), HandshakeError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    reply::finish_all(seat, &team).await
}

/// An id that nothing else has that was asked of `of`: two requests of one millisecond are two.
async fn fresh_id(
    seat: &Seat,
    team: &Team<'_>,
    of: &MemberName,
    id: impl Fn(u64) -> RequestId,
) -> Result<String, HandshakeError> {
    let asked = request::all(&Seat { name: of.clone(), ..seat.clone() }, team).await?;
    let mut at = now(seat);
    loop {
        let id = id(at).to_string();
        if !asked.iter().any(|its| its.id == id) {
            return Ok(id);
        }
        at += 1;
    }
}

async fn ask(
    seat: &Seat,
    team: &Team<'_>,
    to: MemberName,
    request_id: String,
    request: Protocol,
) -> Result<Asked, HandshakeError> {
    let message = mail::protocol(seat, team, &to, &request.to_text())?;
    let receipt = seat.store.send(&seat.team, &to, &message).await.map_err(MailError::from)?;
    tracing::info!(team = %seat.team, member = %to, %request_id, "asked: {}", request.kind());
    Ok(Asked { request_id, to, receipt })
}

fn lead(seat: &Seat, team: &Team<'_>) -> Result<MemberName, HandshakeError> {
    let none = || HandshakeError::NoLead { team: seat.team.to_string() };
    let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
    lead.ok_or_else(none)
}

fn now(seat: &Seat) -> u64 {
    u64::try_from(seat.clock.now().as_millisecond()).unwrap_or_default()
}
