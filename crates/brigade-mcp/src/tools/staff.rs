//! Starting and stopping teammates, for an agent that leads.

use std::time::Duration;

use brigade_agents::driver;
use brigade_core::authority::Role;
use brigade_core::seat::Seat;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::call_context::Desk;
pub(super) use crate::reply::Done;
use crate::reply::{Refusal, Reply};
use brigade_host::HostError;
use brigade_host::progress::{Ended, silent};
use brigade_host::shutdown::Manner;
use brigade_host::{down, spawn};

/// How long a call waits for a teammate to be there: clients do not wait for an answer for ever.
const STARTS: Duration = Duration::from_secs(40);
/// How long a teammate may take to agree to stop.
const AGREES: Duration = Duration::from_secs(40);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammate {
    name: String,
    /// codex, gemini, claude, …
    agent: String,
    /// What it is to do; it knows nothing of your conversation
    prompt: String,
    model: Option<String>,
    /// It changes nothing until you approve its plan
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
    // Only what a person installed: a command of the model's own would be run outside of any sandbox.
    let there: Vec<&str> = driver::AGENTS
        .iter()
        .filter(|agent| desk.server.context.programs().program(agent).is_some())
        .map(|agent| agent.name)
        .collect();
    if !there.contains(&asked.agent.as_str()) {
        let there = there.join(", ");
        return Err(Refusal::new(format!(
            "no agent {:?} is installed here; there are {there}",
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
        return Ok(Reply::done(format!("{name} is being started, and has your prompt")));
    };
    let hired = hired?;
    match hired.trouble {
        Some(why) => Err(Refusal::new(format!("{name} did not start: {why}"))),
        None if hired.new => Ok(Reply::done(format!(
            "{name} is on the team and has your prompt; its messages will come to you"
        ))),
        None => Ok(Reply::done(format!("{name} was on the team already; send it a message"))),
    }
}

pub(super) async fn stop_teammate(desk: &Desk<'_>, asked: StopTeammate) -> Result<Reply, Refusal> {
    let seat = leading(desk).await?;
    let context = &desk.server.context;
    let name = desk.member(&asked.name).await?;
    if context.host()?.registry.member(&seat.team, &name)?.is_none() {
        return Err(Refusal::new(format!(
            "{name} does not run on this host; ask it with request_shutdown"
        )));
    }
    let reason = asked.reason.as_deref();
    let manner = Manner { ask: Some(AGREES), reason, may_refuse: true };
    match down::stop(context, seat, &name, manner, &silent).await? {
        Ended::Refused(why) => Err(Refusal::new(format!("{name} refuses and goes on: {why}"))),
        Ended::Forced => Ok(Reply::done(format!("{name} did not answer, and was ended"))),
        Ended::Agreed | Ended::WasGone => {
            Ok(Reply::done(format!("{} has left the team", asked.name)))
        }
    }
}

/// The seat, which must be the lead's.
async fn leading<'d>(desk: &'d Desk<'_>) -> Result<&'d Seat, Refusal> {
    let seat = desk.seat()?;
    match seat.role().await? {
        Some(Role::Lead) => Ok(seat),
        _ => Err(Refusal::new("only the lead starts and stops teammates")),
    }
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        let hints: Vec<String> = error.hints.iter().map(|hint| format!("; {hint}")).collect();
        Self::new(format!("{error}{}", hints.concat()))
    }
}
