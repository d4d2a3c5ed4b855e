//! Tools for sending and answering requests: shutdown, plan and permission.

use brigade_core::handshake::{self, Answer};
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
    let sent = handshake::answer_plan(call.seat()?, &args.request_id, answer).await?;
    Ok(answered("Plan", answer, sent.to.as_str()))
}

pub(super) async fn answer_permission(
    call: &CallContext<'_>,
    args: AnswerPermissionParams,
) -> CallResult {
    let answer = answer(args.approve, args.reason.as_deref());
    let sent = handshake::answer_permission(call.seat()?, &args.request_id, answer).await?;
    Ok(answered("Permission", answer, sent.to.as_str()))
}

fn answer(approve: bool, why: Option<&str>) -> Answer<'_> {
    if approve { Answer::Yes } else { Answer::No(why.unwrap_or("no reason given")) }
}

fn requested(what: &str, sent: handshake::SentRequest) -> ToolReply {
    let target = sent.to.to_string();
    let message = format!("{what} sent to {target}. Request ID: {}", sent.request_id);
    let request_id = sent.request_id;
    ToolReply::new(message.clone(), &RequestSent { success: true, message, request_id, target })
}

fn answered(what: &str, answer: Answer<'_>, to: &str) -> ToolReply {
    ToolReply::done(match answer {
        Answer::Yes => format!("{what} approved; {to} was notified"),
        Answer::No(_) => format!("{what} refused; {to} was notified"),
    })
}
