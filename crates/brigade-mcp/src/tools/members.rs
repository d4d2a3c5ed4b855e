//! Tools that start and stop teammates, for a lead.

use std::time::Duration;

use brigade_agents::driver;
use brigade_core::authority::Role;
use brigade_core::seat::Seat;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::call_context::Desk;
pub(super) use crate::reply::Done;
use crate::reply::{Refusal, Reply};
use brigade_host::progress::{Ended, silent};
use brigade_host::shutdown::Manner;
use brigade_host::{down, spawn};

/// How long a call waits until the teammate has started. MCP clients time out.
const STARTS: Duration = Duration::from_secs(40);
/// How long a teammate may take to answer the shutdown request.
const AGREES: Duration = Duration::from_secs(40);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammate {
    name: String,
    /// codex, gemini, claude, …
    agent: String,
    /// Its task; it does not know your conversation
    prompt: String,
    model: Option<String>,
    /// It must not change anything until you approve its plan
    #[serde(default)]
    plan: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTeammate {
    name: String,
    reason: Option<String>,
}

pub(super) async fn spawn_teammate(
    desk: &Desk<'_>,
    asked: SpawnTeammate,
) -> Result<Reply, Refusal> {
    let seat = leading(desk).await?;
    // Only agents that a person installed: a command chosen by the model would run outside any sandbox.
    let there: Vec<&str> = driver::AGENTS
        .iter()
        .filter(|agent| desk.server.context.programs().program(agent).is_some())
        .map(|agent| agent.name)
        .collect();
    if !there.contains(&asked.agent.as_str()) {
        let there = there.join(", ");
        return Err(Refusal::new(format!(
            "no agent {:?} is installed here; installed: {there}",
            asked.agent
        )));
    }
    let invalid = |error: brigade_wire::name::NameError| Refusal::new(error.to_string());
    let name = asked.name.parse().map_err(invalid)?;
    let host = desk.server.context.host()?;
    let root = host.registry.team(&seat.team)?.map(|team| team.root);
    let cwd = root.unwrap_or_else(|| desk.server.context.cwd.clone());
    let mut spec = spawn::plain(name, asked.agent, cwd);
    spec.prompt = Some(asked.prompt);
    spec.model = asked.model;
    spec.plan = asked.plan;
    let name = &spec.name;
    let hired = tokio::time::timeout(STARTS, spawn::spawn(&host, seat, &spec, &silent)).await;
    let Ok(hired) = hired else {
        return Ok(Reply::done(format!("{name} is starting and will get your prompt")));
    };
    let hired = hired?;
    match hired.trouble {
        Some(why) => Err(Refusal::new(format!("{name} did not start: {why}"))),
        None if hired.new => Ok(Reply::done(format!(
            "{name} joined the team and has your prompt; its messages will be delivered to you"
        ))),
        None => Ok(Reply::done(format!("{name} is already on the team; send it a message"))),
    }
}

pub(super) async fn stop_teammate(desk: &Desk<'_>, asked: StopTeammate) -> Result<Reply, Refusal> {
    let seat = leading(desk).await?;
    let context = &desk.server.context;
    let name = desk.member(&asked.name).await?;
    if context.host()?.registry.member(&seat.team, &name)?.is_none() {
        return Err(Refusal::new(format!(
            "{name} does not run on this host; use request_shutdown"
        )));
    }
    let reason = asked.reason.as_deref();
    let manner = Manner { ask: Some(AGREES), reason, may_refuse: true };
    match down::stop(context, seat, &name, manner, &silent).await? {
        Ended::Refused(why) => Err(Refusal::new(format!("{name} refuses and continues: {why}"))),
        Ended::Forced => Ok(Reply::done(format!("{name} did not answer and was killed"))),
        Ended::Agreed | Ended::WasGone => {
            Ok(Reply::done(format!("{} has left the team", asked.name)))
        }
    }
}

/// The calling seat, if it is the lead's.
async fn leading<'d>(desk: &'d Desk<'_>) -> Result<&'d Seat, Refusal> {
    let seat = desk.seat()?;
    match seat.role().await? {
        Some(Role::Lead) => Ok(seat),
        _ => Err(Refusal::new("only the lead can start and stop teammates")),
    }
}
