//! Tools for sending and answering requests: shutdown, plan and permission.

use brigade_core::handshake::{self, Answer, Answered, RequestKind};
use brigade_host::answer::{Confirmation, confirm};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::call_context::CallContext;
pub(super) use crate::reply::DoneReply;
use crate::reply::{CallResult, ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestShutdownParams {
    /// Member name
    #[serde(alias = "recipient")]
    to: String,
    reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerShutdownParams {
    /// From the request
    request_id: String,
    approve: bool,
    /// Why, if you refuse
    reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitPlanParams {
    /// The whole plan, in Markdown
    plan: String,
    /// The plan's file, if any
    #[serde(rename = "planFilePath")]
    plan_file_path: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerPlanParams {
    /// From the request
    request_id: String,
    approve: bool,
    /// What to improve
    feedback: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerPermissionParams {
    /// From the request
    request_id: String,
    approve: bool,
    /// Why, if you deny
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RequestSent {
    success: bool,
    message: String,
    request_id: String,
    target: String,
}

pub(super) async fn request_shutdown(
    call: &CallContext<'_>,
    args: RequestShutdownParams,
) -> CallResult {
    let sent = handshake::request_shutdown(call.seat()?, &args.to, args.reason.as_deref()).await?;
    Ok(requested("Shutdown request", sent))
}

pub(super) async fn submit_plan(call: &CallContext<'_>, args: SubmitPlanParams) -> CallResult {
    let path = args.plan_file_path.as_deref();
    Ok(requested("Plan", handshake::submit_plan(call.seat()?, &args.plan, path).await?))
}

pub(super) async fn answer_shutdown(
    call: &CallContext<'_>,
    args: AnswerShutdownParams,
) -> CallResult {
    let answer = answer(args.approve, args.reason.as_deref());
    handshake::answer_shutdown(call.seat()?, &args.request_id, answer).await?;
    Ok(ToolReply::done(match answer {
        Answer::Yes => "Shutdown approved; you have left the team. End your turn now".to_owned(),
        Answer::No(_) => "Shutdown refused; continue your work".to_owned(),
    }))
}

pub(super) async fn answer_plan(call: &CallContext<'_>, args: AnswerPlanParams) -> CallResult {
    let answer = answer(args.approve, args.feedback.as_deref());
    let (seat, id) = (call.seat()?, &args.request_id);
    let sent = handshake::answer_plan(seat, id, answer).await?;
    answered(call, RequestKind::Plan, id, answer, &sent).await
}

pub(super) async fn answer_permission(
    call: &CallContext<'_>,
    args: AnswerPermissionParams,
) -> CallResult {
    let answer = answer(args.approve, args.reason.as_deref());
    let (seat, id) = (call.seat()?, &args.request_id);
    let sent = handshake::answer_permission(seat, id, answer).await?;
    answered(call, RequestKind::Permission, id, answer, &sent).await
}

fn answer(approve: bool, why: Option<&str>) -> Answer<'_> {
    if approve { Answer::Yes } else { Answer::No(why.unwrap_or(handshake::NO_REASON)) }
}

fn requested(what: &str, sent: handshake::SentRequest) -> ToolReply {
    let target = sent.to.to_string();
    let message = format!("{what} sent to {target}. Request ID: {}", sent.request_id);
    let request_id = sent.request_id;
    ToolReply::new(message.clone(), &RequestSent { success: true, message, request_id, target })
}

/// Waits until the asking member has taken the answer, and says whether it has.
async fn answered(
    call: &CallContext<'_>,
    kind: RequestKind,
    id: &str,
    answer: Answer<'_>,
    sent: &Answered,
) -> CallResult {
    let context = &call.server.context;
    let word = if answer == Answer::Yes { "approved" } else { "refused" };
    Ok(ToolReply::done(match confirm(context, call.seat()?, kind, id, sent).await? {
        Confirmation::Confirmed => format!("The {kind} request is {word}; {} knows", sent.to),
        Confirmation::NotYet(why) => {
            format!("The {kind} request is {word}; the answer is sent, not yet confirmed: {why}")
        }
    }))
}
