//! Teams.

use brigade_host::down;
use brigade_host::state::{self, TeamState};
use brigade_wire::name::{MemberName, TeamName};

use crate::call::Call;
use crate::problem::{Problem, ProblemKind};
use crate::reply::{Reply, ReplyResult};

/// The state of a team.
pub(crate) type TeamDocument = TeamState;

/// The `config.json` of a team, as Claude Code writes it.
#[derive(schemars::JsonSchema)]
pub(crate) struct ConfigDocument(
    #[expect(dead_code, reason = "only its schema is used")]
    serde_json::Map<String, serde_json::Value>,
);

pub(crate) async fn list(call: Call) -> ReplyResult {
    let context = call.context();
    let host = context.host()?;
    let mut states = Vec::new();
    // A team of an ended Claude Code session is not in the store, but its members wait on this host.
    let mut teams = context.teams().await?;
    teams.extend(down::teams_of_host(&context, &host).await?);
    teams.sort();
    teams.dedup();
    for team in teams {
        states.push(state_of(&call, team).await?);
    }
    Reply::json(&states)
}

pub(crate) async fn show(call: Call) -> ReplyResult {
    let (_, team) = call.team_context().await?;
    Reply::json(&state_of(&call, team).await?)
}

async fn state_of(call: &Call, team: TeamName) -> Result<TeamState, Problem> {
    let context = call.context().with_team(Some(team.clone()));
    let lead = context.seat_of(team, MemberName::lead());
    Ok(state::team(&context.host()?, &lead).await?)
}

pub(crate) async fn config(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let config = context.store.team(&team).await?;
    let gone = || Problem::new(ProblemKind::NotFound, format!("there is no team {team}"));
    Ok(Reply::bytes(config.ok_or_else(gone)?.bytes))
}
