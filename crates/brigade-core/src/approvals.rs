//! What waits for the lead's answer, in one place: plans, and requests for leave to use a tool.
//!
//! ```
//! use brigade_core::approvals;
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
//! handshake::submit_plan(&bob, "1. Read the parser. 2. Mend it.", None).await?;
//! let waiting = approvals::waiting(&lead).await?;
//! approvals::answer(&lead, &waiting[0], Answer::No("write the test first")).await?;
//! assert_eq!(approvals::waiting(&lead).await?, []);
//! # Ok(())
//! # }
//! ```

use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use jiff::Timestamp;
use serde_json::Value;

use crate::event::{Event, Record};
use crate::handshake::{self, Answer, Answered, HandshakeError, Kind, Request};
use crate::mail::{MailError, with_message};
use crate::policy::{self, Rule, Ruling};
use crate::seat::{Hand, Seat};

/// A plan or a request for leave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Approval {
    /// Its number among those ever sent to the lead of this team. It stays the same.
    pub number: usize,
    /// Its id.
    pub request_id: String,
    /// Who asks.
    pub from: MemberName,
    /// When it was asked.
    pub at: Timestamp,
    /// For what.
    pub wanted: Wanted,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// To go on with this plan.
    Plan {
        /// The plan, whole.
        plan: String,
        /// The file it is in, if it is in one.
        path: Option<String>,
    },
    /// To use a tool.
    Permission {
        /// The tool, as its agent names it.
        tool: String,
        /// What it would be given.
        input: Value,
        /// What it is for, in a line.
        description: String,
        /// Where it would be used, if that is known.
        cwd: Option<String>,
    },
}

/// A request that a rule answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ruled {
    /// The request.
    pub approval: Approval,
    /// Which of the member's rules, counted from 1.
    pub rule: usize,
    /// What it said.
    pub ruling: Ruling,
}

impl Wanted {
    /// What kind of request it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Plan { .. } => Kind::Plan,
            Self::Permission { .. } => Kind::Permission,
        }
    }
}

impl Approval {
    /// The request that a record of the journal is, if it is one, as its sender has it: whether it is true
    /// is not asked.
    pub fn told(record: &Record, number: usize) -> Option<Self> {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            return None;
        };
        let read = |message: Option<Message<'_>>| {
            let message = message?;
            let Body::Protocol(body) = message.body() else { return None };
            let (kind, id) = match &body {
                Protocol::PlanApprovalRequest(asked) => (Kind::Plan, asked.request_id.clone()),
                Protocol::PermissionRequest(asked) => (Kind::Permission, asked.request_id.clone()),
                _ => return None,
            };
            let from = message.from().parse().ok()?;
            // What another program wrote may have been found long after.
            let written = message.timestamp().parse().unwrap_or(record.at);
            Self::of(Request { kind, id, from, body, number, at: written.min(record.at) })
        };
        with_message(message.get().as_bytes(), read).ok()?
    }

    fn of(request: Request) -> Option<Self> {
        let wanted = match request.body {
            Protocol::PlanApprovalRequest(asked) => Wanted::Plan {
                plan: asked.plan_content,
                path: asked.plan_file_path.filter(|path| !path.is_empty()),
            },
            Protocol::PermissionRequest(asked) => {
                let (tool, input, cwd) = match asked.brigade {
                    Some(its) => (its.tool, its.input, Some(its.cwd)),
                    None => (asked.tool_name, asked.input, None),
                };
                let input: Value = serde_json::from_str(input.as_str()).unwrap_or_default();
                // An agent may run one command elsewhere.
                let its_own = input.get("cwd").and_then(Value::as_str).map(str::to_owned);
                let cwd = its_own.or(cwd).filter(|cwd| !cwd.is_empty());
                Wanted::Permission { tool, input, description: asked.description, cwd }
            }
            _ => return None,
        };
        let Request { id: request_id, from, number, at, .. } = request;
        Some(Self { number, request_id, from, at, wanted })
    }
}

/// What waits for the lead's answer, oldest first. Only for the lead.
pub async fn waiting(seat: &Seat) -> Result<Vec<Approval>, HandshakeError> {
    let waiting = handshake::waiting(seat).await?;
    Ok(waiting.into_iter().filter_map(Approval::of).collect())
}

/// The request of that number or id, whether it was answered or not. A number goes before an id: whoever
/// asks chooses the id, and shall not choose one that is another's number.
pub async fn find(seat: &Seat, word: &str) -> Result<Approval, HandshakeError> {
    let number = word.parse::<usize>().ok();
    let asked = handshake::asked(seat).await?;
    let numbered = asked.iter().position(|request| Some(request.number) == number);
    let named = || asked.iter().position(|request| number.is_none() && request.id == word);
    let found = numbered.or_else(named).and_then(|place| asked.get(place).cloned());
    if let Some(found) = found.and_then(Approval::of) {
        return Ok(found);
    }
    let open = handshake::waiting(seat).await?.iter().map(|request| request.number).collect();
    Err(HandshakeError::Unknown { word: word.to_owned(), who: seat.name.clone(), open })
}

/// Answers a request, in the seat's name and by its hand. Only the lead may.
pub async fn answer(
    seat: &Seat,
    approval: &Approval,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let id = &approval.request_id;
    match approval.wanted {
        Wanted::Plan { .. } => handshake::answer_plan(seat, id, answer).await,
        Wanted::Permission { .. } => handshake::answer_permission(seat, id, answer).await,
    }
}

/// Answers every request for leave that waits and that a rule of the asker's allows or denies; the rest
/// goes on waiting. Several may do this at once, and beside people: each request is answered once. An
/// answer that somebody decided on who died before it was sent is sent.
pub async fn apply(
    seat: &Seat,
    rules_of: impl Fn(&MemberName) -> Vec<Rule>,
) -> Result<Vec<Ruled>, HandshakeError> {
    handshake::finish(seat).await?;
    let mut ruled = Vec::new();
    for approval in waiting(seat).await? {
        let Wanted::Permission { tool, input, .. } = &approval.wanted else { continue };
        let rules = rules_of(&approval.from);
        let Some((place, ruling)) = policy::decide(&rules, tool, input) else { continue };
        let rule = place + 1;
        let hand = Hand::Rule { number: rule, of: approval.from.clone() };
        let why = format!("rule {rule} for {} denies it", approval.from);
        let said = match ruling {
            Ruling::Ask => continue,
            Ruling::Allow => Answer::Yes,
            Ruling::Deny => Answer::No(&why),
        };
        match answer(&Seat { hand, ..seat.clone() }, &approval, said).await {
            Ok(_) => ruled.push(Ruled { approval, rule, ruling }),
            // Somebody was faster, or the asker has left meanwhile.
            Err(
                HandshakeError::Answered { .. } | HandshakeError::Send(MailError::NoMember { .. }),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ruled)
}
