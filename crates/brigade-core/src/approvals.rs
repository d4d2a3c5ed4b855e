//! Plan and permission requests that wait for the lead's answer.
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

mod proposal;
mod rules;

use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use jiff::Timestamp;
use serde_json::Value;

use crate::action::{self, AgentAction};
use crate::event::{Event, Record};
use crate::handshake::{
    self, Answer, Answered, AnsweredRequest, First, HandshakeError, NewNumbers, Request,
    RequestDigest, RequestKind,
};
use crate::seat::Seat;

pub use self::proposal::{NoRule, propose_rules};
pub use self::rules::{
    AppliedRule, MemberRules, NumberedRule, RuleAnswer, RuleSource, RuleVerdict, apply_rules,
    explain_rules,
};

/// A plan or permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// The number by which a person names the request, counted from 1. It never changes.
    pub number: usize,
    /// The request id.
    pub request_id: String,
    /// The member that made the request.
    pub from: MemberName,
    /// When the request was made.
    pub at: Timestamp,
    /// Identifies what is asked. An answer is for this content only.
    pub digest: RequestDigest,
    /// The subject of the request.
    pub subject: ApprovalSubject,
}

/// The subject of a request to the lead.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// The name that the agent uses for the tool.
        tool: String,
        /// The input that the tool would get.
        input: Value,
        /// One line that says what the agent would use the tool for.
        description: String,
        /// The folder in which the tool would run, if known.
        cwd: Option<String>,
        /// The whole request: tool, input, folder, and the fields of the request outside the input. This is what
        /// front ends show.
        action: Box<AgentAction>,
    },
}

impl ApprovalSubject {
    /// Returns whether this is a plan or a permission request.
    pub fn kind(&self) -> RequestKind {
        match self {
            Self::Plan { .. } => RequestKind::Plan,
            Self::Permission { .. } => RequestKind::Permission,
        }
    }
}

impl Approval {
    /// Reads a request from a journal record; `None` if the record contains no request. Does not check that the
    /// request is genuine.
    pub fn from_record(record: &Record, number: usize) -> Option<Self> {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
            return None;
        };
        let read = |message: Option<Message<'_>>| Request::parse(&message?, record.at, number);
        let (request, _) = with_message(message.get().as_bytes(), read).ok()??;
        Self::from_request(request)
    }

    fn from_request(request: Request) -> Option<Self> {
        let wanted = match request.body {
            Protocol::PlanApprovalRequest(asked) => ApprovalSubject::Plan {
                plan: asked.plan_content,
                path: asked.plan_file_path.filter(|path| !path.is_empty()),
            },
            Protocol::PermissionRequest(asked) => {
                let action = Box::new(AgentAction::from_message(&asked));
                let input = action::input(&asked);
                let tool = action.tool.clone();
                let cwd = action.directory();
                ApprovalSubject::Permission {
                    tool,
                    input,
                    description: asked.description,
                    cwd,
                    action,
                }
            }
            _ => return None,
        };
        let Request { id: request_id, from, number, at, digest, .. } = request;
        Some(Self { number, request_id, from, at, digest, subject: wanted })
    }
}

/// Returns the requests waiting for the lead's answer, oldest first. Only the lead may call this.
pub async fn waiting(seat: &Seat) -> Result<Vec<Approval>, HandshakeError> {
    let waiting = handshake::waiting(seat, NewNumbers::Assign).await?;
    Ok(waiting.into_iter().filter_map(Approval::from_request).collect())
}

/// Like [`waiting`], but writes nothing: leaves out requests that have no number yet.
pub async fn waiting_with_numbers(seat: &Seat) -> Result<Vec<Approval>, HandshakeError> {
    let waiting = handshake::waiting(seat, NewNumbers::LeaveOut).await?;
    Ok(waiting.into_iter().filter_map(Approval::from_request).collect())
}

/// Returns the permission requests since `start`, open or answered, oldest first. Only the lead may call this.
pub async fn permission_history(
    seat: &Seat,
    start: Timestamp,
) -> Result<Vec<Approval>, HandshakeError> {
    let requests = handshake::since(seat, start).await?;
    let approvals = requests.into_iter().filter_map(Approval::from_request);
    Ok(approvals.filter(|found| found.subject.kind() == RequestKind::Permission).collect())
}

/// Finds an open or answered request by its number or its id. A number is never treated as an id: a member chooses
/// the ids of its requests, and could use another request's number as an id.
pub async fn find(seat: &Seat, number_or_id: &str) -> Result<Approval, HandshakeError> {
    let found = handshake::asked(seat, number_or_id).await?;
    if let Some(found) = found.and_then(Approval::from_request) {
        return Ok(found);
    }
    let open = handshake::waiting(seat, NewNumbers::Assign).await?;
    let open = open.iter().map(|request| request.number).collect();
    Err(HandshakeError::Unknown { word: number_or_id.to_owned(), who: seat.name.clone(), open })
}

/// Returns the answer to a request, or its withdrawal; `None` while the request waits. Only the lead may call this.
pub async fn first_answer(
    seat: &Seat,
    approval: &Approval,
) -> Result<Option<First>, HandshakeError> {
    handshake::first_answer(seat, approval.subject.kind(), &approval.request_id).await
}

/// Answers a request on behalf of the seat, if the request still says what `approval` says. Only the lead may call
/// this.
pub async fn answer(
    seat: &Seat,
    approval: &Approval,
    answer: Answer<'_>,
) -> Result<Answered, HandshakeError> {
    let Approval { request_id, digest, .. } = approval;
    let request = AnsweredRequest { id: request_id, shown: Some(*digest) };
    match approval.subject {
        ApprovalSubject::Plan { .. } => handshake::answer_plan(seat, request, answer).await,
        ApprovalSubject::Permission { .. } => {
            handshake::answer_permission(seat, request, answer).await
        }
    }
}
