//! Requests of members, and their answers.

use brigade_core::approvals;
use brigade_core::handshake::{Answer, NO_REASON};
use brigade_core::policy::RuleDecision;
use brigade_core::seat::Seat;
use brigade_host::answer::{Confirmation, answer_one};
use brigade_host::approval_document::ApprovalDocument;
use brigade_host::personal_policy::PersonalRule;
use brigade_host::rules::{self, RuleScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Right;
use crate::call::Call;
use crate::problem::{Problem, ProblemKind};
use crate::reply::{Reply, ReplyResult};

/// A request of a member.
#[derive(JsonSchema)]
pub(crate) struct RequestDocument(
    #[expect(dead_code, reason = "only its schema is used")]
    serde_json::Map<String, serde_json::Value>,
);

/// An answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AnswerRequest {
    /// The id of the request that the person has seen. The server answers no other request under the same number.
    request_id: Option<String>,
    /// Why the request is denied. An approval has no reason.
    reason: Option<String>,
    /// How long the answer applies to similar requests. Only for full tokens.
    remember: Option<Remember>,
}

/// How long an answer applies to similar requests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Remember {
    /// Until the end of the member's turn.
    Turn,
    /// Always, in the member's folder.
    Folder,
    /// Always, in every folder.
    Everywhere,
}

/// The answer to a request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GivenAnswerDocument {
    number: usize,
    request_id: String,
    kind: String,
    to: String,
    approved: bool,
    /// Whether the member has taken the answer.
    confirmed: bool,
    /// Why the member has not taken the answer yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_yet: Option<String>,
    /// The rules that were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    rules: Vec<PersonalRule>,
}

pub(crate) async fn list(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let seat = context.seat_of(team, brigade_wire::name::MemberName::lead());
    let waiting = approvals::waiting(&seat).await?;
    let now = context.clock.now();
    let documents: Vec<_> =
        waiting.iter().map(|approval| ApprovalDocument::new(approval, now)).collect();
    Reply::json(&documents)
}

pub(crate) async fn show(call: Call) -> ReplyResult {
    let (seat, request) = place(&call).await?;
    let approval = approvals::find(&seat, &request).await?;
    Reply::json(&ApprovalDocument::new(&approval, seat.clock.now()))
}

pub(crate) async fn approve(call: Call) -> ReplyResult {
    answer(call, RuleDecision::Allow).await
}

pub(crate) async fn deny(call: Call) -> ReplyResult {
    answer(call, RuleDecision::Deny).await
}

async fn answer(call: Call, decision: RuleDecision) -> ReplyResult {
    let asked: AnswerRequest = call.content()?;
    if asked.remember.is_some() && !call.grant.kind.has(Right::Write) {
        let detail = format!("the {} token {} may not add rules", call.grant.kind, call.grant.name);
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let (seat, request) = place(&call).await?;
    let context = call.context().with_team(Some(seat.team.clone()));
    let approval = approvals::find(&seat, &request).await?;
    if let Some(seen) = &asked.request_id
        && *seen != approval.request_id
    {
        return Err(Problem::invalid(format!("request {request} is not the one that was shown"))
            .hint("list the requests again"));
    }
    let answer = match decision {
        RuleDecision::Allow => Answer::Yes,
        _ => Answer::No(asked.reason.as_deref().unwrap_or(NO_REASON)),
    };
    let (given, rules) = match asked.remember {
        None => (answer_one(&context, &seat, &approval, answer).await?, Vec::new()),
        Some(remember) => {
            let scope = match remember {
                Remember::Turn => RuleScope::Turn,
                Remember::Folder => RuleScope::Folder,
                Remember::Everywhere => RuleScope::Everywhere,
            };
            let proposed = rules::propose(&context, &seat, &approval, decision, &[], scope).await?;
            if let Some(first) = &proposed.answered {
                let detail = format!("request {request} was already answered: {first}");
                return Err(Problem::new(ProblemKind::Conflict, detail));
            }
            let answered =
                rules::answer_with_rules(&context, &seat, &approval, answer, &proposed).await?;
            answered.added?;
            let lost = || Problem::new(ProblemKind::Conflict, "the request was already answered");
            (answered.given.ok_or_else(lost)?, proposed.rules)
        }
    };
    let not_yet = match given.confirmation {
        Confirmation::Confirmed => None,
        Confirmation::NotYet(why) => Some(why),
    };
    let document = GivenAnswerDocument {
        number: approval.number,
        kind: approval.subject.kind().to_string(),
        to: given.answered.to.to_string(),
        request_id: approval.request_id,
        approved: answer == Answer::Yes,
        confirmed: not_yet.is_none(),
        not_yet,
        rules,
    };
    let is_confirmed = document.confirmed;
    Ok(Reply::json(&document)?.accepted_unless(is_confirmed))
}

/// Returns the seat that answers, and the number or the id of the request in the path.
async fn place(call: &Call) -> Result<(Seat, String), Problem> {
    let (context, _) = call.team_context().await?;
    Ok((context.answering_seat().await?, call.segment("request")?))
}
