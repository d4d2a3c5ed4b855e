//! `brigade spawn`

use brigade_agents::driver::{Access, AgentChoice};
use brigade_core::roster::{self, MemberPlan};
use brigade_core::seat::Seat;
use brigade_core::wire::backend;
use brigade_host::spec::{ApprovalAuthority, MemberPlace, MemberSpec};
use brigade_host::{Host, spawn, supervisor_environment};
use brigade_wire::name::MemberName;
use serde_json::json;

use super::agent_run::{TeammateSettings, play_and_leave};
use crate::cli::{SpawnArgs, SpawnPlace};
use crate::context::{CliContext, cwd};
use crate::error::{CliError, Trouble};
use crate::output::{self, STRONG};
use crate::slow_notice::with_lock_notice;
use crate::{env, exit, login, progress};

pub(crate) async fn run(context: &CliContext, args: &SpawnArgs) -> Result<u8, CliError> {
    let choice = spawn::known_agent(&args.agent)?;
    let seat = context.seat_of(context.team().await?, args.name.clone());
    match args.place {
        SpawnPlace::Here => run_in_terminal(context, seat, choice, args).await,
        SpawnPlace::Headless => {
            run_in_background(context, &seat, args, MemberPlace::Headless).await
        }
        SpawnPlace::Tmux => run_in_background(context, &seat, args, MemberPlace::Tmux).await,
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
    choice: AgentChoice,
    args: &SpawnArgs,
) -> Result<u8, CliError> {
    let SpawnArgs { name, agent, prompt, plan, .. } = args;
    spawn::check(context, &context.host()?, &seat, name, agent, &progress::print).await?;
    if seat.role().await?.is_none() {
        let member = MemberPlan {
            agent_type: agent,
            model: args.model.as_deref().unwrap_or("unknown"),
            prompt: prompt.as_deref().unwrap_or_default(),
            cwd: &cwd(),
            backend_type: backend::PROCESS,
        };
        with_lock_notice(roster::join(&seat, name, member)).await?;
    }
    let settings = TeammateSettings {
        program: None,
        model: args.model.clone(),
        access: if *plan { Access::ReadOnly } else { Access::Ask },
        lead_key: None,
        prompt: prompt.clone(),
        cwd: cwd(),
        inherits: env::inherited(&choice.agent, None),
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
    args: &SpawnArgs,
    place: MemberPlace,
) -> Result<u8, CliError> {
    let spec = MemberSpec {
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        plan: args.plan,
        place,
        ..MemberSpec::new(args.name.clone(), args.agent.clone(), context.cwd.clone())
    };
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
