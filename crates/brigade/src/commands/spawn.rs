//! `brigade spawn`

use brigade_core::driver::{self, Access};
use brigade_core::roster::{self, MemberPlan};

use super::teammate::{Wanted, play};
use crate::cli::Spawn;
use crate::context::{Context, cwd};
use crate::error::{CliError, Trouble};
use crate::output;
use crate::patience::patiently;

/// What members of ours run on.
const BACKEND: &str = "process";

pub(crate) async fn run(context: &Context, spawn: &Spawn) -> Result<u8, CliError> {
    let Spawn { name, agent, prompt, plan } = spawn;
    let Some(choice) = driver::agent(agent) else {
        let known: Vec<&str> = driver::AGENTS.iter().map(|agent| agent.name).collect();
        let error = CliError::usage(Trouble::NoAgent { name: agent.clone() });
        return Err(error.hint(format!("brigade drives {}, and acp:COMMAND", known.join(", "))));
    };
    let seat = context.seat_or(name).await?;
    let seat = brigade_core::seat::Seat { name: name.clone(), ..seat };
    if seat.role().await?.is_none() {
        let member = MemberPlan {
            agent_type: agent,
            model: "unknown",
            prompt: prompt.as_deref().unwrap_or_default(),
            cwd: &cwd(),
            backend_type: BACKEND,
        };
        patiently(roster::join(&seat, name, member)).await?;
    }
    if !roster::lead_listens(&seat).await? {
        output::note(&format!(
            "the lead of team {} reads its mail only while a teammate that it started itself is \
             there; until then what {name} writes to it waits in its inbox",
            seat.team
        ));
    }
    let access = if *plan { Access::ReadOnly } else { Access::Ask };
    play(seat, choice, Wanted { model: None, access, lead_key: None, prompt: prompt.clone() }).await
}
