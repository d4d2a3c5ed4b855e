//! Restarts teams after a crash or a reboot, and restores teams whose team folder is gone.

use std::borrow::Cow;

use brigade_agents::driver;
use brigade_core::revive::{self, Revived};
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};

use crate::context::Context;
use crate::down::choose_team;
use crate::error::{ErrorKind, HostError, Trouble};
use crate::host::Host;
use crate::progress::{Progress, ReportProgress};
use crate::spec::TeamSpec;
use crate::{spawn, state, wait};

/// A team that was restarted.
#[derive(Debug)]
pub struct Resumed {
    /// The team that was restarted.
    pub team: TeamName,
    /// How many members of the team are running now.
    pub running: usize,
    /// The members that did not start.
    pub dead: Vec<MemberName>,
    /// Whether the team was restored from its journal.
    pub restored: bool,
}

impl Resumed {
    /// Returns whether there was no member to restart.
    pub fn has_no_members(&self) -> bool {
        self.running == 0 && self.dead.is_empty()
    }
}

/// Restarts the named team, or every team that should run on this host. Calls `done` after each team.
pub async fn resume(
    context: &Context,
    named: Option<&TeamName>,
    report: ReportProgress<'_>,
    mut done: impl FnMut(&Resumed) -> Result<(), HostError>,
) -> Result<Vec<Resumed>, HostError> {
    let host = context.host()?;
    let mut taken_over = false;
    let teams: Vec<TeamName> = match named.or(context.named_team()) {
        Some(team) => {
            // The registry lists no members of this team if the team was deleted or never ran on this host.
            if host.registry.members(team)?.is_empty() || host.registry.is_taking_over(team) {
                taken_over = take_over(context, &host, team, report).await?;
            }
            vec![choose_team(context, &host, Some(team)).await?]
        }
        None => host.registry.teams()?,
    };
    if teams.is_empty() {
        let error = HostError::new(ErrorKind::Nothing, Trouble::NoneUp);
        return Err(error.hint("`brigade up` starts a team"));
    }
    let mut resumed = Vec::new();
    for team in teams {
        let mut restored = taken_over;
        if host.registry.is_taking_over(&team) {
            restored |= take_over(context, &host, &team, report).await?;
        }
        restored |= restore(context, &team, report).await?;
        let lead = context.seat_of(team.clone(), MemberName::lead());
        let mut names = Vec::new();
        for name in host.registry.members(&team)? {
            // The supervisor removes a member that has left the team.
            if !state::has_left(&host, &lead, &name).await? {
                names.push(name);
            }
        }
        for name in &names {
            state::retry_if_dead(&host, &lead, name).await?;
        }
        host.ensure_supervisor().await?;
        let failed = wait::until_ready(&host, &lead, &names, report).await?;
        let one = Resumed {
            team,
            running: names.len() - failed.len(),
            dead: failed.into_iter().map(|(name, _)| name).collect(),
            restored,
        };
        done(&one)?;
        resumed.push(one);
    }
    Ok(resumed)
}

/// Restores a team from its journal if the team's folder is gone. Returns whether it did.
async fn restore(
    context: &Context,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    let lead = context.seat_of(team.clone(), MemberName::lead());
    let Some(revived) = revive::revive(&lead).await? else { return Ok(false) };
    let restored = revived != Revived::default();
    if restored {
        let Revived { members, tasks, messages } = revived;
        report(Progress::Restored(team.clone(), members.len(), tasks, messages));
    }
    Ok(restored)
}

/// Takes over a team that did not run on this host and whose lead has ended, for example the team of an ended
/// Claude Code session. From then on this host runs the members whose agents brigade can drive. If a process died
/// while it took over the team, completes that. Returns whether the team was restored from its journal.
async fn take_over(
    context: &Context,
    host: &Host,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    let lead_seat = context.seat_of(team.clone(), MemberName::lead());
    if context.team_exists(team).await? {
        let is_ours = lead_seat.store.is_ours(team).await?;
        if !is_ours || !host.registry.is_taking_over(team) {
            // Another program leads the team, or the team was not started on this host.
            return Ok(false);
        }
    }
    host.registry.begin_take_over(team)?;
    let restored = restore(context, team, report).await?;
    add_restored(context, host, &lead_seat, report).await?;
    host.registry.end_take_over(team)?;
    Ok(restored)
}

/// Adds the members of a restored team to this host's registry.
async fn add_restored(
    context: &Context,
    host: &Host,
    lead_seat: &Seat,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let team = &lead_seat.team;
    let Some(config) = lead_seat.find_config().await? else { return Ok(()) };
    let Ok(roster) = lead_seat.read(&config) else { return Ok(()) };
    let lead = roster.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let lead_cwd = roster.lead().and_then(|lead| Some(lead.cwd()?.into_owned()));
    let root = lead_cwd.map_or_else(|| context.cwd.clone(), Into::into);
    if host.registry.team(team)?.is_none() {
        host.registry.put_team(&TeamSpec::new(team.clone(), root))?;
    }
    for member in roster.members() {
        let Some(name) = member.name().filter(|name| lead.as_deref() != Some(&**name)) else {
            continue;
        };
        let Ok(name) = name.parse::<MemberName>() else { continue };
        if member.is_remote() {
            report(Progress::RemoteNotRestored(name));
            continue;
        }
        let agent = member.agent_type().map(Cow::into_owned).unwrap_or_default();
        let cwd = member.cwd().map_or_else(|| context.cwd.clone(), |cwd| cwd.into_owned().into());
        match driver::agent(&agent).filter(|choice| !choice.agent.native) {
            // Any member that can write the roster could have chosen the command and its folder.
            Some(_)
                if driver::is_command(&agent) && !host.registry.knows_command(&agent, &cwd)? =>
            {
                report(Progress::CommandNotRestored(name, agent));
            }
            Some(_) => {
                let spec = spawn::default_spec(name, agent, cwd);
                host.registry.add_member(team, &spec)?;
                // The member is already on the roster and has received its prompt.
                host.registry.set_joined(team, &spec.name)?;
            }
            None => report(Progress::NativeNotRestored(name)),
        }
    }
    Ok(())
}
