//! Requests waiting for the lead's answer, in one place: plans and permission requests.
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
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! handshake::submit_plan(&bob, "1. Read the parser. 2. Fix it.", None).await?;
//! let waiting = approvals::waiting(&lead).await?;
//! approvals::answer(&lead, &waiting[0], Answer::No("write the test first")).await?;
//! assert_eq!(approvals::waiting(&lead).await?, []);
//! # Ok(())
//! # }
//! ```

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use jiff::Timestamp;
use serde_json::Value;

use crate::event::{Event, Record};
use crate::handshake::{self, Answer, Answered, HandshakeError, Request, RequestKind};
use crate::mail::MailError;
use crate::policy::{self, Rule, RuleDecision};
use crate::seat::{Seat, SeatUser};

/// A plan or permission request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Approval {
    /// Position among all requests ever sent to this team's lead, counted from 1. It never changes.
    pub number: usize,
    /// The request id.
    pub request_id: String,
    /// The member who asks.
    pub from: MemberName,
    /// When the request was made.
    pub at: Timestamp,
    /// The subject of the request.
    pub subject: ApprovalSubject,
}

/// The subject of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalSubject {
    /// Approval of a plan.
    Plan {
        /// The text of the plan.
        plan: String,
        /// The file that contains the plan, if any.
        path: Option<String>,
    },
    /// Permission to use a tool.
    Permission {
        /// The tool, by the agent's own name for it.
        tool: String,
        /// The input the tool would get.
        input: Value,
        /// One line that says what the tool would be used for.
        description: String,
        /// The folder in which the tool would run, if known.
        cwd: Option<String>,
    },
}

/// A request that a rule answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleAnswer {
    /// The request.
    pub approval: Approval,
    /// Which of the member's rules, counted from 1.
    pub rule: usize,
    /// The rule's decision.
    pub decision: RuleDecision,
}

impl ApprovalSubject {
    /// The kind of request.
    pub fn kind(&self) -> RequestKind {
        match self {
            Self::Plan { .. } => RequestKind::Plan,
            Self::Permission { .. } => RequestKind::Permission,
        }
    }
}

impl Approval {
    /// Reads a request from a journal record; `None` if the record is not one. Does not check that the request is
    /// genuine.
    pub fn from_record(record: &Record, number: usize) -> Option<Self> {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            return None;
        };
        let read = |message: Option<Message<'_>>| {
            let message = message?;
            let Body::Protocol(body) = message.body() else { return None };
            let (kind, id) = match &body {
                Protocol::PlanApprovalRequest(asked) => {
                    (RequestKind::Plan, asked.request_id.clone())
                }
                Protocol::PermissionRequest(asked) => {
                    (RequestKind::Permission, asked.request_id.clone())
                }
                _ => return None,
            };
            let from = message.from().parse().ok()?;
            // Messages by other programs may be found long after they were written.
            let written = message.timestamp().parse().unwrap_or(record.at);
            Self::from_request(Request { kind, id, from, body, number, at: written.min(record.at) })
        };
        with_message(message.get().as_bytes(), read).ok()?
    }

    fn from_request(request: Request) -> Option<Self> {
        let wanted = match request.body {
            Protocol::PlanApprovalRequest(asked) => ApprovalSubject::Plan {
                plan: asked.plan_content,
                path: asked.plan_file_path.filter(|path| !path.is_empty()),
            },
            Protocol::PermissionRequest(asked) => {
                let (tool, input, cwd) = match asked.brigade {
                    Some(original) => (original.tool, original.input, Some(original.cwd)),
                    None => (asked.tool_name, asked.input, None),
                };
                let input: Value = serde_json::from_str(input.as_str()).unwrap_or_default();
                // An agent may run a single command in another folder.
                let command_cwd = input.get("cwd").and_then(Value::as_str).map(str::to_owned);
                let cwd = command_cwd.or(cwd).filter(|cwd| !cwd.is_empty());
                ApprovalSubject::Permission { tool, input, description: asked.description, cwd }
            }
            _ => return None,
        };
        let Request { id: request_id, from, number, at, .. } = request;
        Some(Self { number, request_id, from, at, subject: wanted })
    }
}

/// Returns the requests waiting for the lead's answer, oldest first. Only the lead may call this.
pub async fn waiting(seat: &Seat) -> Result<Vec<Approval>, HandshakeError> {
    let waiting = handshake::waiting(seat).await?;
    Ok(waiting.into_iter().filter_map(Approval::from_request).collect())
}

/// Finds a request by number or id, answered or not. Numbers win over ids: the asker chooses the id and could
/// otherwise pick the number of another request.
pub async fn find(seat: &Seat, number_or_id: &str) -> Result<Approval, HandshakeError> {
    let number = number_or_id.parse::<usize>().ok();
    let asked = handshake::asked(seat).await?;
    let numbered = asked.iter().position(|request| Some(request.number) == number);
    let named = || asked.iter().position(|request| number.is_none() && request.id == number_or_id);
    let found = numbered.or_else(named).and_then(|index| asked.get(index).cloned());
    if let Some(found) = found.and_then(Approval::from_request) {
        return Ok(found);
    }
    let open = handshake::waiting(seat).await?.iter().map(|request| request.number).collect();
    Err(HandshakeError::Unknown { word: number_or_id.to_owned(), who: seat.name.clone(), open })
}

/// Answers a request on behalf of the seat. Only the lead may.
pub async fn answer(
    seat: &Seat,
    approval: &Approval,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let id = &approval.request_id;
    match approval.subject {
        ApprovalSubject::Plan { .. } => handshake::answer_plan(seat, id, answer).await,
        ApprovalSubject::Permission { .. } => handshake::answer_permission(seat, id, answer).await,
    }
}

/// Answers every waiting permission request that a rule for its sender allows or denies. The other requests keep
/// waiting. Safe to run from several processes, and beside people who answer: each request gets one answer.
/// Also sends answers that an earlier process decided on and did not send before it died.
pub async fn apply_rules(
    seat: &Seat,
    rules_of: impl Fn(&MemberName) -> Vec<Rule>,
) -> Result<Vec<RuleAnswer>, HandshakeError> {
    handshake::finish(seat).await?;
    let mut ruled = Vec::new();
    for approval in waiting(seat).await? {
        let ApprovalSubject::Permission { tool, input, .. } = &approval.subject else { continue };
        let rules = rules_of(&approval.from);
        let Some((index, ruling)) = policy::decide(&rules, tool, input) else { continue };
        let rule = index + 1;
        let hand = SeatUser::Rule { number: rule, of: approval.from.clone() };
        let why = format!("denied by rule {rule} for {}", approval.from);
        let reply = match ruling {
            RuleDecision::Ask => continue,
            RuleDecision::Allow => Answer::Yes,
            RuleDecision::Deny => Answer::No(&why),
        };
        match answer(&Seat { user: hand, ..seat.clone() }, &approval, reply).await {
            Ok(_) => ruled.push(RuleAnswer { approval, rule, decision: ruling }),
            // Answered elsewhere first, or the asker has left.
            Err(
                HandshakeError::Answered { .. } | HandshakeError::Send(MailError::NoMember { .. }),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ruled)
}
