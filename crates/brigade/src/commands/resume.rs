//! `brigade resume`

use std::borrow::Cow;

use brigade_core::driver;
use brigade_core::revive::{self, Revived};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use serde_json::json;

use super::down::which;
use crate::cli::Resume;
use crate::context::{Context, cwd};
use crate::error::{CliError, Trouble};
use crate::exit;
use crate::host::spec::{Answers, TeamSpec};
use crate::host::{Host, hire, wait};
use crate::output::{self, STRONG};

pub(crate) async fn run(context: &Context, resume: &Resume) -> Result<u8, CliError> {
    let host = context.host()?;
    let teams: Vec<TeamName> = match resume.which.as_ref().or(context.named_team()) {
        Some(team) => {
            // After its team was deleted, a member's process may have removed the member as if it had left.
            if host.folder.members(team)?.is_empty() {
                take_over(context, &host, team).await?;
            }
            vec![which(context, &host, Some(team)).await?]
        }
        None => host.folder.teams()?,
    };
    if teams.is_empty() {
        let error = CliError::new(crate::error::Kind::Nothing, Trouble::NoneUp);
        return Err(error.hint("`brigade up` starts a team"));
    }
    let mut dead = Vec::new();
    for team in &teams {
        bring_back(context, team).await?;
        let lead = context.seat_of(team.clone(), MemberName::lead());
        let names = host.folder.members(team)?;
        for name in &names {
            host.folder.set_trouble(team, name, None)?;
        }
        host.supervised().await?;
        let failed = wait::until_there(&host, &lead, &names).await?;
        if !context.json {
            let there = names.len() - failed.len();
            let there = output::count(there, "member");
            output::print(&format!("team {STRONG}{team}{STRONG:#} is up again with {there}\n"))?;
        }
        dead.extend(failed.into_iter().map(|(name, _)| name.to_string()));
    }
    if context.json {
        output::print_json(&json!({ "teams": teams, "dead": dead }))?;
    }
    if dead.is_empty() {
        return Ok(exit::DONE);
    }
    let error = CliError::failed(Trouble::DidNotStart { names: dead });
    Err(error.hint("`brigade status` shows the reason; `brigade resume` tries again"))
}

/// Restores a team whose folder is gone from the journal.
async fn bring_back(context: &Context, team: &TeamName) -> Result<(), CliError> {
    let lead = context.seat_of(team.clone(), MemberName::lead());
    let Some(revived) = revive::revive(&lead).await? else { return Ok(()) };
    if revived != Revived::default() {
        let Revived { members, tasks, messages } = revived;
        output::say(&format!(
            "restored team {team} from the journal: {} members, {tasks} tasks, {messages} unread \
             messages",
            members.len()
        ));
    }
    Ok(())
}

/// Takes over a team that did not run on this host and whose lead is gone, such as the team of an ended Claude
/// Code session. The members that brigade can run then run on this host.
async fn take_over(context: &Context, host: &Host, team: &TeamName) -> Result<(), CliError> {
    if context.store.team(team).await?.is_some() {
        // It still exists and has another lead.
        return Ok(());
    }
    bring_back(context, team).await?;
    let Some(config) = context.store.team(team).await? else { return Ok(()) };
    let Ok(roster) = Team::read(&config.bytes) else { return Ok(()) };
    let lead = roster.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let lead_cwd = roster.lead().and_then(|lead| Some(lead.cwd()?.into_owned()));
    host.folder.put_team(&TeamSpec {
        team: team.clone(),
        description: String::new(),
        root: lead_cwd.unwrap_or_else(cwd).into(),
        lead: None,
        answers: Answers::Person,
        members: Vec::new(),
        tasks: Vec::new(),
    })?;
    for member in roster.members() {
        let Some(name) = member.name().filter(|name| lead.as_deref() != Some(&**name)) else {
            continue;
        };
        let Ok(name) = name.parse::<MemberName>() else { continue };
        let agent = member.agent_type().map(Cow::into_owned).unwrap_or_default();
        match driver::agent(&agent).filter(|choice| !choice.agent.native) {
            Some(_) => {
                let cwd = member.cwd().map_or_else(cwd, Cow::into_owned);
                let spec = hire::plain(name, agent, cwd.into());
                host.folder.add_member(team, &spec)?;
                // It is already on the roster and has received its prompt.
                host.folder.set_joined(team, &spec.name)?;
            }
            None => output::note(&format!(
                "did not restart {name}, which Claude Code ran itself; `brigade spawn {name} --agent claude` \
                 replaces it"
            )),
        }
    }
    Ok(())
}
