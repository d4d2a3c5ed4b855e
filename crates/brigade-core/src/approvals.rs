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

use std::path::{Path, PathBuf};

use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use jiff::Timestamp;
use serde_json::Value;

use crate::action::{self, AgentAction};
use crate::event::{Event, Record};
use crate::handshake::{
    self, Answer, Answered, AnsweredRequest, HandshakeError, Request, RequestDigest, RequestKind,
};
use crate::mail::MailError;
use crate::policy::{self, Rule, RuleDecision, ToolUse};
use crate::seat::{Seat, SeatUser};

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

/// The rules of a member, and the folder in which they apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberRules {
    /// The rules, in the order in which they are checked.
    pub rules: Vec<Rule>,
    /// The folder that the member works in.
    pub folder: PathBuf,
}

/// A request that a rule answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleAnswer {
    /// The request that the rule answered.
    pub approval: Approval,
    /// The position of the rule among the member's rules, counted from 1.
    pub rule: usize,
    /// The rule's decision.
    pub decision: RuleDecision,
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
    let waiting = handshake::waiting(seat).await?;
    Ok(waiting.into_iter().filter_map(Approval::from_request).collect())
}

/// Finds an open or answered request by its number or its id. A number is never treated as an id: a member chooses
/// the ids of its requests, and could use another request's number as an id.
pub async fn find(seat: &Seat, number_or_id: &str) -> Result<Approval, HandshakeError> {
    let found = handshake::asked(seat, number_or_id).await?;
    if let Some(found) = found.and_then(Approval::from_request) {
        return Ok(found);
    }
    let open = handshake::waiting(seat).await?.iter().map(|request| request.number).collect();
    Err(HandshakeError::Unknown { word: number_or_id.to_owned(), who: seat.name.clone(), open })
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

/// Answers every waiting permission request that a rule for the asking member allows or denies. The other requests
/// keep waiting. Even if several processes and people answer at the same time, each request gets only one answer.
/// Also sends answers that an earlier process decided on but did not send before it died.
///
/// `real_path` resolves the symbolic links of a path, because this crate does not read the disk. For a path that does
/// not exist, it resolves the folders that exist. It returns an empty path if it cannot resolve a path.
pub async fn apply_rules(
    seat: &Seat,
    rules_of: impl Fn(&MemberName) -> MemberRules,
    real_path: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<RuleAnswer>, HandshakeError> {
    handshake::finish(seat).await?;
    let mut ruled = Vec::new();
    for approval in waiting(seat).await? {
        let ApprovalSubject::Permission { tool, input, action, .. } = &approval.subject else {
            continue;
        };
        let MemberRules { rules, folder } = rules_of(&approval.from);
        // Claude Code does not report the folder, but keeps its shell in the folders that it works in.
        let cwd = action.cwd.as_ref().map_or(folder.as_path(), Path::new);
        // An empty path is in no folder.
        let cwd = policy::run_folder(input, cwd).unwrap_or_default();
        let files = policy::named_files(input, &action.request, &cwd);
        let files: Vec<PathBuf> = files.iter().map(|file| real_path(file)).collect();
        let (cwd, folder) = (real_path(&cwd), real_path(&folder));
        let call = ToolUse { tool, input, cwd: &cwd, folder: &folder, files: &files };
        let Some((index, ruling)) = policy::decide(&rules, &call) else { continue };
        let rule = index + 1;
        let hand = SeatUser::Rule { number: rule, of: approval.from.clone() };
        let why = format!("denied by rule {rule} for {}", approval.from);
        let reply = match ruling {
            RuleDecision::Ask => continue,
            // A rule is about the tool and its input. It does not grant what the agent asks for in addition.
            RuleDecision::Allow
                if action.widens_permissions() || action.has_unknown_request_fields() =>
            {
                continue;
            }
            RuleDecision::Allow => Answer::Yes,
            RuleDecision::Deny => Answer::No(&why),
        };
        match answer(&Seat { user: hand, ..seat.clone() }, &approval, reply).await {
            Ok(_) => ruled.push(RuleAnswer { approval, rule, decision: ruling }),
            // Another process or person answered first, or the asking member has left.
            Err(
                HandshakeError::Answered { .. } | HandshakeError::Send(MailError::NoMember { .. }),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ruled)
}
