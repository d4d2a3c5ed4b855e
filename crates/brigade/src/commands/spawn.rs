//! `brigade spawn`

use brigade_agents::driver::{Access, Choice};
use brigade_core::roster::{self, MemberPlan};
use brigade_core::seat::Seat;
use brigade_core::wire::backend;
use brigade_host::spawn;
use brigade_host::spec::{ApprovalAuthority, MemberSpec, Place};
use brigade_wire::name::MemberName;
use serde_json::json;

use super::teammate::{Wanted, play};
use crate::cli::{Spawn, SpawnPlace};
use crate::context::{Context, cwd};
use crate::error::{CliError, Trouble};
use crate::output::{self, STRONG};
use crate::slow_notice::patiently;
use crate::{exit, progress};

pub(crate) async fn run(context: &Context, asked: &Spawn) -> Result<u8, CliError> {
    let choice = spawn::known_agent(&asked.agent)?;
    let seat = context.seat_of(context.team().await?, asked.name.clone());
    match asked.place {
        SpawnPlace::Here => here(context, seat, choice, asked).await,
        SpawnPlace::Headless => there(context, &seat, asked, Place::Headless).await,
        SpawnPlace::Tmux => there(context, &seat, asked, Place::Tmux).await,
    }
}

/// Runs the member in this terminal.
async fn here(
    context: &Context,
    seat: Seat,
    choice: Choice,
    asked: &Spawn,
) -> Result<u8, CliError> {
    let Spawn { name, agent, prompt, plan, .. } = asked;
    spawn::check(&context.host()?, &seat, name, &progress::print).await?;
    if seat.role().await?.is_none() {
        let member = MemberPlan {
            agent_type: agent,
            model: asked.model.as_deref().unwrap_or("unknown"),
            prompt: prompt.as_deref().unwrap_or_default(),
            cwd: &cwd(),
            backend_type: backend::PROCESS,
        };
        patiently(roster::join(&seat, name, member)).await?;
    }
    let wanted = Wanted {
        program: None,
        model: asked.model.clone(),
        access: if *plan { Access::ReadOnly } else { Access::Ask },
        lead_key: None,
        prompt: prompt.clone(),
        cwd: cwd(),
        inherits: None,
        answers: ApprovalAuthority::Person,
        home: context.home().clone(),
        comes_back: false,
    };
    play(seat, choice, wanted).await
}

/// Has the supervising process of this host start it.
async fn there(
    context: &Context,
    seat: &Seat,
    asked: &Spawn,
    place: Place,
) -> Result<u8, CliError> {
    let spec = MemberSpec {
        model: asked.model.clone(),
        prompt: asked.prompt.clone(),
        plan: asked.plan,
        place,
        ..spawn::plain(asked.name.clone(), asked.agent.clone(), context.cwd.clone())
    };
    let lead = seat.of(MemberName::lead());
    let spawned = spawn::spawn(&context.host()?, &lead, &spec, &progress::print).await?;
    let name = &spec.name;
    if context.json {
        output::print_json(&json!({ "name": name, "new": spawned.new }))?;
    } else if spawned.new {
        output::print(&format!("{STRONG}{name}{STRONG:#} joined team {}\n", lead.team))?;
    } else {
        output::print(&format!("{STRONG}{name}{STRONG:#} is already running\n"))?;
    }
    if spawned.trouble.is_none() {
        return Ok(exit::DONE);
    }
    let error = CliError::failed(Trouble::DidNotStart { names: vec![name.to_string()] });
    Err(error.hint("`brigade status` shows the reason; `brigade resume` tries again"))
}
