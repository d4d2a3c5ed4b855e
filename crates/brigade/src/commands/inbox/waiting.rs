//! The requests in an inbox that wait for an answer, each with the command that approves it.

use brigade_core::action::AgentAction;
use brigade_core::approvals::{self, Approval, ApprovalSubject};
use brigade_core::seat::Seat;
use brigade_core::store::Mail;
use brigade_core::text;
use brigade_host::state::request_words;
use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::TeamName;
use brigade_wire::protocol::Protocol;

use crate::context::CliContext;
use crate::slow_notice::with_lock_notice;

/// The width at which the summary of a request is cut. The whole request is shown below it.
const MAX_SUMMARY_WIDTH: usize = 100;

/// The requests to the reader of an inbox that wait for an answer.
pub(super) struct WaitingRequests {
    requests: Vec<Approval>,
    /// The team, if the reader named it. Without its name, a command may act on another team.
    team: Option<TeamName>,
}

impl WaitingRequests {
    /// Finds the waiting requests, if one of the messages is a request. A reader who may not list requests gets none.
    pub(super) async fn find(context: &CliContext, seat: &Seat, mail: &[&Mail]) -> Self {
        let is_request = |message: Message<'_>| match message.body() {
            Body::Protocol(body) => is_request(&body),
            _ => false,
        };
        let requests = match mail.iter().any(|mail| mail.read_with(is_request) == Some(true)) {
            true => with_lock_notice(approvals::waiting(seat)).await.unwrap_or_default(),
            false => Vec::new(),
        };
        Self { requests, team: context.named_team().cloned() }
    }

    /// Says what a message asks for and how to approve it; `None` if the message is not a request that waits.
    pub(super) fn headline(&self, from: &str, body: &Protocol, room: usize) -> Option<String> {
        let request = self.requests.iter().find(|request| is_same(request, from, body))?;
        let team = self.team.as_ref().map(|team| format!(" --team {team}")).unwrap_or_default();
        let command = format!("(brigade approve {}{team})", request.number);
        let wants = format!("{} {}", request.from, request_words(request));
        let room =
            room.saturating_sub(command.len() + 1).clamp(MAX_SUMMARY_WIDTH / 4, MAX_SUMMARY_WIDTH);
        Some(format!("{} {command}", text::cut(&wants, room)))
    }
}

fn is_request(body: &Protocol) -> bool {
    matches!(body, Protocol::PermissionRequest(_) | Protocol::PlanApprovalRequest(_))
}

/// Returns whether a message is this request: a member can send two requests with the same id, and only one of them counts.
fn is_same(request: &Approval, from: &str, body: &Protocol) -> bool {
    request.from.as_str() == from
        && match (&request.subject, body) {
            (ApprovalSubject::Plan { plan, .. }, Protocol::PlanApprovalRequest(asked)) => {
                request.request_id == asked.request_id && *plan == asked.plan_content
            }
            (ApprovalSubject::Permission { action, .. }, Protocol::PermissionRequest(asked)) => {
                request.request_id == asked.request_id
                    && **action == AgentAction::from_message(asked)
            }
            _ => false,
        }
}
