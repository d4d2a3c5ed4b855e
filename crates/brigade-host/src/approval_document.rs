//! Requests of members as JSON documents, for programs.

use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::handshake::First;
use brigade_core::policy;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The JSON form of a plan or permission request.
#[derive(Debug, Serialize)]
pub struct ApprovalDocument<'a> {
    number: usize,
    request_id: &'a str,
    kind: String,
    from: &'a str,
    at: Timestamp,
    age_seconds: i64,
    #[serde(flatten)]
    wanted: RequestedAction<'a>,
    /// The answer, if the request was named and has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<FirstAnswerDocument<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RequestedAction<'a> {
    Plan {
        plan: &'a str,
        path: Option<&'a str>,
    },
    Permission {
        tool: &'a str,
        description: &'a str,
        command: Option<String>,
        input: &'a Value,
        cwd: Option<&'a str>,
        request: &'a Value,
    },
}

impl<'a> ApprovalDocument<'a> {
    /// Returns the form of a request at this time.
    pub fn new(approval: &'a Approval, now: Timestamp) -> Self {
        Self {
            number: approval.number,
            request_id: &approval.request_id,
            kind: approval.subject.kind().to_string(),
            from: approval.from.as_str(),
            at: approval.at,
            age_seconds: now.duration_since(approval.at).as_secs().max(0),
            wanted: match &approval.subject {
                ApprovalSubject::Plan { plan, path } => {
                    RequestedAction::Plan { plan, path: path.as_deref() }
                }
                ApprovalSubject::Permission { tool, input, description, cwd, action } => {
                    RequestedAction::Permission {
                        tool,
                        description,
                        command: policy::command(input),
                        input,
                        cwd: cwd.as_deref(),
                        request: &action.request,
                    }
                }
            },
            answer: None,
        }
    }

    /// Adds the answer to the request, if it has one.
    #[must_use]
    pub fn with_answer(self, first: Option<&'a First>) -> Self {
        Self { answer: first.map(FirstAnswerDocument::new), ..self }
    }
}

/// The JSON form of the answer to a request.
#[derive(Debug, Serialize)]
pub struct FirstAnswerDocument<'a> {
    /// The decider, as in the log; `taken back` if the member withdrew the request.
    by: &'a str,
    approved: bool,
    at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> FirstAnswerDocument<'a> {
    /// Returns the form of an answer.
    pub fn new(first: &'a First) -> Self {
        let (approved, reason) = first.outcome();
        Self { by: &first.hand, approved, at: &first.at, reason }
    }
}
