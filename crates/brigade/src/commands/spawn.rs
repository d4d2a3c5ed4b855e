//! `brigade spawn`

use brigade_core::roster::{self, MemberPlan};
use brigade_core::seat::Seat;
use brigade_core::wire::backend;
use brigade_host::spec::{ApprovalAuthority, MemberSpec};
use brigade_host::{Host, spawn, supervisor_environment};
use brigade_wire::name::MemberName;
use serde_json::json;

use super::agent_run::{TeammateSettings, play_and_leave};
use crate::cli::{SpawnArgs, SpawnPlace};
use crate::context::{CliContext, trust};
use crate::error::{CliError, Trouble};
use crate::output::{self, STRONG};
use crate::slow_notice::with_lock_notice;
use crate::{env, exit, login, progress};

pub(crate) async fn run(context: &CliContext, args: &SpawnArgs) -> Result<u8, CliError> {
    if let Some(agent) = &args.agent {
        spawn::known_agent(agent)?;
    }
    let options = args.options();
    let is_here = args.place == Some(SpawnPlace::Here);
    if is_here {
        options.check_in_terminal()?;
    }
    let seat = context.seat_of(context.team().await?, args.name.clone());
    let spec = options.resolve(context, &seat.team, &args.name, &trust()?)?;
    match is_here {
        true => run_in_terminal(context, seat, spec).await,
        false => run_in_background(context, &seat, spec).await,
    }
}

/// Prints a note if new members inherit other values of their vendors' variables than this process has. Does not print
/// the values.
pub(super) fn note_environment<'s>(
    host: &Host,
    new: impl IntoIterator<Item = &'s MemberSpec>,
) -> Result<(), CliError> {
    let new: Vec<&MemberSpec> = new.into_iter().collect();
    let agents = new.iter().map(|spec| spec.agent.as_str());
    let names = supervisor_environment::differences(host, agents, std::env::vars_os())?;
    if names.is_empty() {
        return Ok(());
    }
    let members: Vec<&str> = new.iter().map(|spec| spec.name.as_str()).collect();
    output::note(&format!(
        "new members inherit the environment of the supervisor, not of this shell, and these variables differ: {}; \
         to use the values of this shell for {}, run `brigade down` and then start the team from this shell",
        names.join(", "),
        members.join(", ")
    ));
    Ok(())
}

/// Runs the member in this terminal.
async fn run_in_terminal(
    context: &CliContext,
    seat: Seat,
    spec: MemberSpec,
) -> Result<u8, CliError> {
    spawn::check(context, &context.host()?, &seat, &spec, &progress::print).await?;
    let choice = spawn::known_agent(&spec.agent)?;
    let access = spec.driver_access();
    let MemberSpec { name, agent, program, model, prompt, cwd, env: inherited, .. } = spec;
    let cwd = cwd.to_string_lossy().into_owned();
    if seat.role().await?.is_none() {
        let member = MemberPlan {
            agent_type: &agent,
            model: model.as_deref().unwrap_or("unknown"),
            prompt: prompt.as_deref().unwrap_or_default(),
            cwd: &cwd,
            backend_type: backend::PROCESS,
        };
        with_lock_notice(roster::join(&seat, &name, member)).await?;
    }
    let settings = TeammateSettings {
        program,
        model,
        access,
        lead_key: None,
        prompt,
        cwd,
        inherits: env::inherited(&choice.agent, inherited.as_deref()),
        answers: ApprovalAuthority::Person,
        home: context.location().clone(),
        task_list: None,
        folder: None,
        paused: false,
    };
    play_and_leave(seat, choice, settings, |_| None).await
}

/// Lets the supervisor of this host run the member.
async fn run_in_background(
    context: &CliContext,
    seat: &Seat,
    spec: MemberSpec,
) -> Result<u8, CliError> {
    let lead = seat.for_member(MemberName::lead());
    note_environment(&context.host()?, [&spec])?;
    let (spawned, logins) = tokio::join!(
        spawn::spawn(context, &lead, &spec, &progress::print),
        login::check_members([&spec])
    );
    let spawned = spawned?;
    login::warn_logged_out(&logins);
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
