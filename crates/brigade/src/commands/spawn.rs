//! `brigade spawn`

use std::path::PathBuf;

use brigade_core::driver::{self, Access, Choice};
use brigade_core::roster::{self, MemberPlan};
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use serde_json::json;

use super::teammate::{Wanted, play};
use crate::cli::{Spawn, Where};
use crate::context::{Context, cwd};
use crate::error::{CliError, Trouble};
use crate::exit;
use crate::host::spec::{Answers, MemberSpec, Place};
use crate::host::{hire, state};
use crate::near;
use crate::output::{self, STRONG};
use crate::patience::patiently;

/// Backend type in the roster for members that brigade runs.
const BACKEND: &str = "process";

pub(crate) async fn run(context: &Context, spawn: &Spawn) -> Result<u8, CliError> {
    let Some(choice) = driver::agent(&spawn.agent) else {
        let known: Vec<&str> = driver::AGENTS.iter().map(|agent| agent.name).collect();
        let error = CliError::usage(Trouble::NoAgent { name: spawn.agent.clone() });
        let meant = near::nearest(&spawn.agent, &known);
        let meant = meant.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
        let all = known.join(", ");
        return Err(error.hint(format!("{meant}supported agents: {all}, acp:COMMAND")));
    };
    let team = context.team().await?;
    let seat = context.seat_of(team, spawn.name.clone());
    if !roster::lead_listens(&seat).await? {
        output::note(&format!(
            "the lead of team {} reads its mail only while a teammate that it started itself is \
             running; until then messages from {} wait in its inbox",
            seat.team, spawn.name
        ));
    }
    let host = context.host()?;
    if let Some(host) = state::played_afar(&host, &seat, &spawn.name).await? {
        let (name, team) = (spawn.name.to_string(), seat.team.to_string());
        return Err(CliError::failed(Trouble::Elsewhere { name, team, host }));
    }
    match spawn.place {
        Where::Here => here(context, seat, choice, spawn).await,
        Where::Headless => there(context, seat, spawn, Place::Headless).await,
        Where::Tmux => there(context, seat, spawn, Place::Tmux).await,
    }
}

/// Runs the member in this terminal.
async fn here(
    context: &Context,
    seat: Seat,
    choice: Choice,
    spawn: &Spawn,
) -> Result<u8, CliError> {
    let Spawn { name, agent, prompt, plan, .. } = spawn;
    hire::refuse_name(&seat, name).await?;
    if seat.role().await?.is_none() {
        let member = MemberPlan {
            agent_type: agent,
            model: spawn.model.as_deref().unwrap_or("unknown"),
            prompt: prompt.as_deref().unwrap_or_default(),
            cwd: &cwd(),
            backend_type: BACKEND,
        };
        patiently(roster::join(&seat, name, member)).await?;
    }
    let wanted = Wanted {
        program: None,
        model: spawn.model.clone(),
        access: if *plan { Access::ReadOnly } else { Access::Ask },
        lead_key: None,
        prompt: prompt.clone(),
        cwd: cwd(),
        inherits: None,
        answers: Answers::Person,
        home: context.home().clone(),
        comes_back: false,
    };
    play(seat, choice, wanted).await
}

/// Lets this host's supervisor start the member.
async fn there(context: &Context, seat: Seat, spawn: &Spawn, place: Place) -> Result<u8, CliError> {
    let host = context.host()?;
    let cwd = PathBuf::from(cwd());
    let spec = MemberSpec {
        model: spawn.model.clone(),
        prompt: spawn.prompt.clone(),
        plan: spawn.plan,
        place,
        ..hire::plain(spawn.name.clone(), spawn.agent.clone(), cwd)
    };
    let lead = seat.of(MemberName::lead());
    let hired = hire::hire(&host, &lead, &spec).await?;
    let name = &spec.name;
    if context.json {
        output::print_json(&json!({ "name": name, "new": hired.new }))?;
    } else if hired.new {
        output::print(&format!("{STRONG}{name}{STRONG:#} joined team {}\n", lead.team))?;
    } else {
        output::print(&format!("{STRONG}{name}{STRONG:#} is already running\n"))?;
    }
    if hired.trouble.is_none() {
        return Ok(exit::DONE);
    }
    let error = CliError::failed(Trouble::DidNotStart { names: vec![name.to_string()] });
    Err(error.hint("`brigade status` shows the reason; `brigade resume` tries again"))
}
