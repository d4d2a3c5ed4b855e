//! Starting and stopping teammates, for an agent that leads.

use std::path::PathBuf;
use std::time::Duration;

use brigade_core::authority::Role;
use brigade_core::driver;
use brigade_core::seat::Seat;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::super::desk::Desk;
pub(super) use super::super::reply::Done;
use super::super::reply::{Refusal, Reply};
use crate::error::CliError;
use crate::host::end::{self, Ended, Manner};
use crate::host::hire;
use crate::installed;

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
        .filter(|agent| installed::program(agent).is_some())
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
    let host = &desk.server.host;
    let root = host.folder.team(&seat.team)?.map(|team| team.root);
    let cwd = root.unwrap_or_else(|| PathBuf::from(crate::context::cwd()));
    let mut spec = hire::plain(name, asked.agent, cwd);
    spec.prompt = Some(asked.prompt);
    spec.model = asked.model;
    spec.plan = asked.plan;
    let name = &spec.name;
    let hired = tokio::time::timeout(STARTS, hire::hire(host, seat, &spec)).await;
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
    let host = &desk.server.host;
    let name = desk.member(&asked.name).await?;
    if host.folder.member(&seat.team, &name)?.is_none() {
        return Err(Refusal::new(format!(
            "{name} does not run on this host; ask it with request_shutdown"
        )));
    }
    let reason = asked.reason.as_deref();
    let manner = Manner { ask: Some(AGREES), reason, may_refuse: true };
    let names = [name];
    let ended = end::members(host, seat, &names, manner, |_, _| {}).await?;
    match ended.into_iter().next() {
        Some((name, Ended::Refused(why))) => {
            Err(Refusal::new(format!("{name} refuses and goes on: {why}")))
        }
        Some((name, Ended::Forced)) => {
            Ok(Reply::done(format!("{name} did not answer, and was ended")))
        }
        _ => Ok(Reply::done(format!("{} has left the team", asked.name))),
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

impl From<CliError> for Refusal {
    fn from(error: CliError) -> Self {
        let hints: Vec<String> = error.hints.iter().map(|hint| format!("; {hint}")).collect();
        Self::new(format!("{error}{}", hints.concat()))
    }
}
