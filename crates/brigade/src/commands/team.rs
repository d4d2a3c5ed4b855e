//! `brigade team …`

mod list;
pub(super) mod show;
mod transfer;

use brigade_core::roster::{self, MemberPlan, SkipChecks, TeamPlan};
use brigade_core::store::StoreError;
use brigade_core::wire::backend;
use brigade_host::delete;
use brigade_host::team_choice::TeamSource;
use brigade_wire::name::{MemberName, TeamName};
use serde_json::json;

use brigade_core::task_view;

use super::changing;
use crate::cli::{ActivityWord, GlobalArgs, RevokeArgs, TeamCommand, TeamJoinArgs};
use crate::context::{CliContext, cwd};
use crate::error::{CliError, Trouble, no_member_hint};
use crate::output::{self, STRONG};
use crate::slow_notice::{with_lock_notice, with_notice};
use crate::{env, exit};

pub(crate) async fn run(global: GlobalArgs, command: TeamCommand) -> Result<u8, CliError> {
    match command {
        TeamCommand::Create { name, description } => {
            changing(global, async |context| create(context, name, &description).await).await
        }
        TeamCommand::List => list::run(&CliContext::reading(global).await?).await,
        TeamCommand::Show { name } => {
            show::run(&CliContext::reading(global).await?.with_team(name)).await
        }
        TeamCommand::Delete { name, force } => {
            let force = if force { SkipChecks::Yes } else { SkipChecks::No };
            let named = name.or(global.team.clone());
            let global = GlobalArgs { team: named, ..global };
            changing(global, async |context| delete(context, force).await).await
        }
        TeamCommand::Export { name, file } => {
            transfer::export(&CliContext::new(global).await?, &name, &file).await
        }
        TeamCommand::Import { file, rename } => {
            let rename = rename.as_ref();
            changing(global, async |context| transfer::import(context, &file, rename).await).await
        }
        TeamCommand::Join(member) => {
            changing(global, async |context| join(context, &member).await).await
        }
        TeamCommand::Leave { name, credentials } => {
            changing(global, async |context| leave(context, &name, &credentials).await).await
        }
        TeamCommand::Activity { name, activity } => {
            changing(global, async |context| set_activity(context, &name, activity).await).await
        }
    }
}

async fn create(context: &CliContext, name: TeamName, description: &str) -> Result<u8, CliError> {
    let seat = context.seat_of(name, MemberName::lead());
    let plan = TeamPlan { description, lead_model: "unknown", cwd: &cwd() };
    // If the NATS server lacks brigade's streams, the request fails only after some seconds, so print a notice.
    with_notice("waiting for the NATS server", roster::create(&seat, plan)).await?;
    let team = &seat.team;
    if context.json {
        output::print_json(&json!({ "team": team }))?;
    } else {
        let name = &seat.name;
        output::print(&format!("created team {STRONG}{team}{STRONG:#}; you are its {name}\n"))?;
    }
    if context.named_team().is_none() {
        match context.use_created(team).await? {
            _ if context.json => {}
            Some(TeamSource::Chosen) => output::hint(
                "commands without `--team` use this team from now on; `brigade use TEAM` chooses another one",
            ),
            Some(_) => {}
            // In the folder of a brigade.toml, a command without `--team` does not use this team.
            None => output::hint(&format!(
                "run `export {}={team}`, or add `--team {team}` to commands for this team",
                env::TEAM
            )),
        }
    }
    Ok(exit::DONE)
}

async fn delete(context: &CliContext, force: SkipChecks) -> Result<u8, CliError> {
    let seat = match context.named_team() {
        // A process may have died while it deleted the team. The lead can complete that deletion.
        Some(team) if !context.team_exists(team).await? => {
            context.refuse_to_lead(team, "delete the team")?;
            context.seat_of(team.clone(), MemberName::lead())
        }
        _ => context.seat().await?,
    };
    let team = &seat.team;
    let members = context.host()?.registry.members(team)?;
    let deleted = with_lock_notice(delete::delete(context, &seat, force)).await;
    if let Err(error) = &deleted
        && let Some(StoreError::NoTeam { .. }) = error.source.downcast_ref()
    {
        // Fail with an error that lists the existing teams.
        context.team().await?;
    }
    deleted?;
    if !members.is_empty() {
        let names: Vec<&str> = members.iter().map(MemberName::as_str).collect();
        output::note(&format!(
            "the members on this host ({}) end by themselves; `brigade down {team}` waits for them and removes their \
             worktrees",
            names.join(", ")
        ));
    }
    if context.json {
        output::print_json(&json!({ "team": team }))?;
    } else {
        output::print(&format!(
            "deleted team {STRONG}{team}{STRONG:#}; its history: \
             `brigade --team {team} log`\n"
        ))?;
    }
    Ok(exit::DONE)
}

async fn join(context: &CliContext, member: &TeamJoinArgs) -> Result<u8, CliError> {
    let TeamJoinArgs { name, agent_type, model, prompt } = member;
    let seat = context.seat_or(name).await?;
    let plan =
        MemberPlan { agent_type, model, prompt, cwd: &cwd(), backend_type: backend::PROCESS };
    let color = with_lock_notice(roster::join(&seat, name, plan)).await?;
    let team = &seat.team;
    if context.json {
        output::print_json(&json!({ "name": name, "team": team, "color": color }))?;
    } else {
        output::print(&format!("{STRONG}{name}{STRONG:#} joined team {team} (color: {color})\n"))?;
    }
    Ok(exit::DONE)
}

async fn leave(
    context: &CliContext,
    name: &MemberName,
    credentials: &RevokeArgs,
) -> Result<u8, CliError> {
    let seat = context.seat_or(name).await?;
    let members = seat.member_names().await?;
    let roster::Left { was_there, released } = with_lock_notice(roster::leave(&seat, name)).await?;
    let team = &seat.team;
    if released.is_empty() && !was_there {
        let error = Trouble::NoMember { name: name.to_string(), team: team.to_string() };
        return Err(CliError::failed(error).hint(no_member_hint(name.as_str(), &members)));
    }
    if context.json {
        let released = task_view::texts(released);
        output::print_json(&json!({ "name": name, "team": team, "released": released }))?;
    } else {
        output::print(&format!("{STRONG}{name}{STRONG:#} left team {team}\n"))?;
        if !released.is_empty() {
            output::print(&format!(
                "unassigned its unfinished tasks: {}\n",
                task_view::join(released)
            ))?;
        }
    }
    super::credentials::end(context, team, name, credentials).await
}

async fn set_activity(
    context: &CliContext,
    name: &MemberName,
    word: ActivityWord,
) -> Result<u8, CliError> {
    let seat = context.seat_or(name).await?;
    with_lock_notice(roster::set_activity(&seat, name, word.into())).await?;
    let active = word == ActivityWord::Active;
    if context.json {
        output::print_json(&json!({ "name": name, "active": active }))?;
    } else {
        let word = if active { "active" } else { "idle" };
        output::print(&format!("{STRONG}{name}{STRONG:#} is {word}\n"))?;
    }
    Ok(exit::DONE)
}
