//! Tools with which a lead starts and stops teammates.

use std::time::Duration;

use brigade_agents::driver;
use brigade_core::authority::Role;
use brigade_core::seat::Seat;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::call_context::CallContext;
pub(super) use crate::reply::DoneReply;
use crate::reply::{CallResult, ToolError, ToolReply};
use brigade_host::progress::{Ended, silent};
use brigade_host::shutdown::StopOptions;
use brigade_host::spec::MemberSpec;
use brigade_host::worktree::IgnoredFiles;
use brigade_host::{down, spawn};

/// How long a call waits for the teammate to start. Longer calls would time out in MCP clients.
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// How long a teammate may take to answer the shutdown request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammateParams {
    name: String,
    /// codex, gemini, claude, …
    agent: String,
    /// The task; the teammate does not know your conversation
    prompt: String,
    model: Option<String>,
    /// It must not change anything until you approve its plan
    #[serde(default)]
    plan: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTeammateParams {
    name: String,
    reason: Option<String>,
}

pub(super) async fn spawn_teammate(
    call: &CallContext<'_>,
    args: SpawnTeammateParams,
) -> CallResult {
    let seat = lead_seat(call).await?;
    // Allow only agents that a person installed. A command that the model chose would run outside any sandbox.
    let installed: Vec<&str> = driver::AGENTS
        .iter()
        .filter(|agent| call.server.context.programs().program(agent).is_some())
        .map(|agent| agent.name)
        .collect();
    if !installed.contains(&args.agent.as_str()) {
        let installed = installed.join(", ");
        return Err(ToolError::new(format!(
            "no agent {:?} is installed here; installed: {installed}",
            args.agent
        )));
    }
    let invalid = |error: brigade_wire::name::NameError| ToolError::new(error.to_string());
    let name = args.name.parse().map_err(invalid)?;
    let host = call.server.context.host()?;
    let root = host.registry.team(&seat.team)?.map(|team| team.root);
    let cwd = root.unwrap_or_else(|| call.server.context.cwd.clone());
    let mut spec = MemberSpec::new(name, args.agent, cwd);
    spec.prompt = Some(args.prompt);
    spec.model = args.model;
    spec.plan = args.plan;
    let name = &spec.name;
    let spawned = tokio::time::timeout(
        START_TIMEOUT,
        spawn::spawn(&call.server.context, seat, &spec, &silent),
    )
    .await;
    let Ok(spawned) = spawned else {
        return Ok(ToolReply::done(format!("{name} is starting and will get your prompt")));
    };
    let spawned = spawned?;
    match spawned.trouble {
        Some(why) => Err(ToolError::new(format!("{name} did not start: {why}"))),
        None if spawned.new => Ok(ToolReply::done(format!(
            "{name} joined the team and has your prompt; its messages will be delivered to you"
        ))),
        None => Ok(ToolReply::done(format!("{name} is already on the team; send it a message"))),
    }
}

pub(super) async fn stop_teammate(call: &CallContext<'_>, args: StopTeammateParams) -> CallResult {
    let seat = lead_seat(call).await?;
    let context = &call.server.context;
    let name = call.member(&args.name).await?;
    if context.host()?.registry.member_or_stopping(&seat.team, &name)?.is_none() {
        return Err(ToolError::new(format!(
            "{name} does not run on this host; use request_shutdown"
        )));
    }
    let reason = args.reason.as_deref();
    let manner = StopOptions {
        ask: Some(ANSWER_TIMEOUT),
        reason,
        may_refuse: true,
        ignored_files: IgnoredFiles::Keep,
    };
    match down::stop(context, seat, &name, manner, &silent).await? {
        Ended::Refused(why) => Err(ToolError::new(format!("{name} refuses and continues: {why}"))),
        Ended::Forced => Ok(ToolReply::done(format!("{name} did not answer and was killed"))),
        Ended::Agreed | Ended::WasGone => {
            Ok(ToolReply::done(format!("{} has left the team", args.name)))
        }
    }
}

/// Returns the caller's seat. Fails if the caller is not the lead.
async fn lead_seat<'c>(call: &'c CallContext<'_>) -> Result<&'c Seat, ToolError> {
    let seat = call.seat()?;
    match seat.role().await? {
        Some(Role::Lead) => Ok(seat),
        _ => Err(ToolError::new("only the lead can start and stop teammates")),
    }
}
