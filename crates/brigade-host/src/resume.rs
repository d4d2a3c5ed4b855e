//! Restarts teams after a crash or a reboot, and restores teams whose team folder is gone.

use std::time::Duration;

use brigade_agents::teammate::{Membership, carry_over};
use brigade_core::revive::{self, Revived};
use brigade_core::roster;
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_wire::name::{MemberName, TeamName};
use rustix::process::Signal;
use tokio::time::Instant;

use crate::claude_led::{self, FollowedLead, ResumedSession};
use crate::claude_session::ClaudeSession;
use crate::context::Context;
use crate::down::choose_team;
use crate::error::{ErrorKind, HostError, Trouble};
use crate::host::{Host, is_led_remotely};
use crate::process::send_signal;
use crate::progress::{Ended, Progress, ReportProgress};
use crate::spec::{MemberPlace, MemberSpec, TeamSpec};
use crate::{renewal, state, wait};

/// How long a process may take to end after SIGKILL.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How often to check whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
    /// The members of a team that Claude Code leads or led.
    pub session: Option<ResumedSession>,
}

impl Resumed {
    /// Returns whether there was no member to restart.
    pub fn has_no_members(&self) -> bool {
        self.running == 0 && self.dead.is_empty()
    }

    /// Returns the result for a team that Claude Code leads or led.
    fn of_session(team: TeamName, session: ResumedSession) -> Self {
        let running = session.joined.len() + session.waiting.len();
        Self { team, running, dead: session.dead.clone(), restored: false, session: Some(session) }
    }
}

/// Restarts the named team, or every team that should run on this host. Calls `done` after each team.
///
/// The members of a team that Claude Code led wait for their lead, unless `take_over_as` names a new team: then this host leads
/// a copy of the team.
pub async fn resume(
    context: &Context,
    named: Option<&TeamName>,
    take_over_as: Option<&TeamName>,
    report: ReportProgress<'_>,
    mut done: impl FnMut(&Resumed) -> Result<(), HostError>,
) -> Result<Vec<Resumed>, HostError> {
    let host = context.host()?;
    renewal::renew(context, &host, report).await?;
    let mut taken_over = false;
    let mut resumed = Vec::new();
    let teams: Vec<TeamName> = match named.or(context.named_team()) {
        Some(team) if take_over_as.is_none() && is_of_session(context, team).await? => {
            let session = claude_led::resume_members(context, team, report).await?;
            if !host.registry.members(team)?.is_empty() {
                // Members that brigade added to the team run under the supervisor.
                host.ensure_supervisor().await?;
            }
            let one = Resumed::of_session(team.clone(), session);
            done(&one)?;
            return Ok(vec![one]);
        }
        Some(named) => {
            let team = take_over_as.unwrap_or(named);
            // An earlier command may have been interrupted.
            let pending = host.registry.taking_over(team);
            let source = &pending.unwrap_or_else(|| named.clone());
            if team != source {
                prepare_take_over(context, &host, source, team, report).await?;
            }
            // The registry lists no members of this team if the team was deleted or never ran on this host.
            if host.registry.members(team)?.is_empty() || host.registry.taking_over(team).is_some()
            {
                taken_over = take_over(context, &host, team, source, report).await?;
            }
            vec![choose_team(context, &host, Some(team)).await?]
        }
        None => {
            if context.location().nats().is_none() {
                for team in host.claude_led().registry.teams()? {
                    let session = claude_led::resume_members(context, &team, report).await?;
                    let one = Resumed::of_session(team, session);
                    done(&one)?;
                    resumed.push(one);
                }
            }
            host.registry.teams()?
        }
    };
    if teams.is_empty() && resumed.is_empty() {
        let error = HostError::new(ErrorKind::Nothing, Trouble::NoneUp);
        return Err(error.hint("`brigade up` starts a team"));
    }
    for team in teams {
        let mut restored = taken_over;
        if let Some(source) = host.registry.taking_over(&team) {
            restored |= take_over(context, &host, &team, &source, report).await?;
        }
        restored |= restore(context, &host, &team, &team, report).await?;
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
            session: None,
        };
        done(&one)?;
        resumed.push(one);
    }
    Ok(resumed)
}

/// Returns whether Claude Code leads or led the team on this host, and named it after its session.
async fn is_of_session(context: &Context, team: &TeamName) -> Result<bool, HostError> {
    let lead = context.seat_of(team.clone(), MemberName::lead());
    Ok(context.location().nats().is_none()
        && ClaudeSession::names_team(team)
        && !context.store.is_ours(team).await?
        && !is_led_remotely(&lead).await?)
}

/// Checks that the team `source` can be taken over under the name `team`, and ends the processes of the members that
/// wait for the lead of `source`.
async fn prepare_take_over(
    context: &Context,
    host: &Host,
    source: &TeamName,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let name = team.to_string();
    context.refuse_to_lead(source, "take the team over")?;
    // Claude's model could have chosen the command.
    context.person_seat(&context.seat_of(source.clone(), MemberName::lead()))?;
    if context.store.is_ours(source).await? {
        let error = HostError::failed(Trouble::IsOurs { team: source.to_string() });
        return Err(error.hint(format!("`brigade resume {source}` restarts its members")));
    }
    if !host.registry.members(source)?.is_empty() {
        let error = HostError::failed(Trouble::RunsMembers { team: source.to_string() });
        return Err(error.hint(format!("`brigade down {source}` stops them first")));
    }
    if ClaudeSession::names_team(team) {
        let error = HostError::new(ErrorKind::Usage, Trouble::SessionName { team: name });
        return Err(error.hint("choose another name"));
    }
    if host.registry.taking_over(team).is_none() && context.team_exists(team).await? {
        return Err(HostError::failed(StoreError::TeamExists { team: team.clone() }));
    }
    let claude_led = host.claude_led();
    let names = claude_led.registry.members(source)?;
    let mut sessions = Vec::new();
    for name in &names {
        let record = FollowedLead::stored(host, source, name)?.unwrap_or_default();
        sessions.extend(record.sessions);
    }
    let is_led = claude_led::find_lead(&host.claude_dir, &sessions).is_some();
    if is_led || lead_runs(context, host, source).await? {
        let error = HostError::failed(Trouble::ClaudeLeads { team: source.to_string() });
        return Err(error.hint("end its session first, or work with its members there"));
    }
    end_processes(&claude_led, source, &names, report).await
}

/// Kills the processes of these members, which stay on the roster: a process that is only asked to end would leave the team.
async fn end_processes(
    host: &Host,
    team: &TeamName,
    names: &[MemberName],
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    for name in names {
        let Some(process) = host.member_process(team, name)? else { continue };
        send_signal(&process, Signal::KILL);
        let began = Instant::now();
        while host.member_process(team, name)?.is_some() {
            if began.elapsed() > ENDS_WITHIN {
                let (name, team, pid) = (name.to_string(), team.to_string(), process.pid);
                return Err(HostError::failed(Trouble::RunsAlready { name, team, pid }));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        report(Progress::Ended(name.clone(), Ended::Forced));
    }
    Ok(())
}

/// Returns whether a running Claude Code session leads the team.
async fn lead_runs(context: &Context, host: &Host, team: &TeamName) -> Result<bool, HostError> {
    let seat = context.seat_of(team.clone(), MemberName::lead());
    let Some(config) = seat.find_config().await? else { return Ok(false) };
    Ok(ClaudeSession::of_lead(&host.claude_dir, &seat.read(&config)?).is_some())
}

/// Restores the team `source` from its journal under the name `team`, if that team does not exist. Never creates a team with the
/// name of a Claude Code session: a resumed session would find its name taken. Does nothing with the credentials of members,
/// because only the lead's credentials can read the lead's notes and create a team. Returns whether a team was restored.
async fn restore(
    context: &Context,
    host: &Host,
    team: &TeamName,
    source: &TeamName,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    if !host.may_lead {
        return Ok(false);
    }
    let lead = context.seat_of(team.clone(), MemberName::lead());
    if ClaudeSession::names_team(team) && !context.team_exists(team).await? {
        return Ok(false);
    }
    let Some(revived) = revive::revive_from(&lead, source).await? else { return Ok(false) };
    let restored = revived != Revived::default();
    let mut members = revived.members;
    if team != source {
        // The journal does not know about members that were stopped after the session of their lead had ended.
        for name in context.registry().claude_led().gone_members(source)? {
            roster::leave(&lead, &name).await?;
            members.retain(|member| *member != name.as_str());
        }
    }
    if restored {
        let (tasks, messages) = (revived.tasks, revived.messages);
        report(Progress::Restored(team.clone(), members.len(), tasks, messages));
    }
    Ok(restored)
}

/// Takes over the team `source` under the name `team`. The team did not run on this host, or its lead has ended. From then
/// on this host runs the members whose agents brigade can drive. If a process died while it took over the team, completes
/// that. Returns whether the team was restored from its journal.
async fn take_over(
    context: &Context,
    host: &Host,
    team: &TeamName,
    source: &TeamName,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    let lead_seat = context.seat_of(team.clone(), MemberName::lead());
    if context.team_exists(team).await? {
        let is_ours = lead_seat.store.is_ours(team).await?;
        if !is_ours || host.registry.taking_over(team).is_none() {
            // Another program leads the team, or the team was not started on this host.
            return Ok(false);
        }
    }
    host.registry.begin_take_over(team, source)?;
    let restored = restore(context, host, team, source, report).await?;
    add_restored(context, host, &lead_seat, source, report).await?;
    if team != source {
        host.claude_led().registry.remove_team(source)?;
    }
    host.registry.end_take_over(team)?;
    Ok(restored)
}

/// Adds the members of a team that was restored from the team `source` to this host's registry.
async fn add_restored(
    context: &Context,
    host: &Host,
    lead_seat: &Seat,
    source: &TeamName,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let team = &lead_seat.team;
    let claude_led = host.claude_led();
    let Some(config) = lead_seat.find_config().await? else { return Ok(()) };
    let Ok(roster) = lead_seat.read(&config) else { return Ok(()) };
    let lead = roster.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let lead_cwd = roster.lead().and_then(|lead| Some(lead.cwd()?.into_owned()));
    let root = lead_cwd.map_or_else(|| context.cwd.clone(), Into::into);
    if host.registry.team(team)?.is_none() {
        host.registry.put_team(&TeamSpec::new(team.clone(), root))?;
    }
    for member in roster.members() {
        if member.name().is_none_or(|name| lead.as_deref() == Some(&*name)) {
            continue;
        }
        let name = member.name().and_then(|name| name.parse::<MemberName>().ok());
        let known = name.map(|name| claude_led.registry.member_or_stopping(source, &name));
        let spec = match known.transpose()?.flatten() {
            Some(known) => Some(MemberSpec { place: MemberPlace::Headless, ..known }),
            None => claude_led::driven_spec(context, host, &member, report)?,
        };
        if let Some(spec) = spec {
            host.registry.add_member(team, &spec)?;
            // The member is already on the roster and has received its prompt.
            host.registry.set_joined(team, &spec.name)?;
            let (from, to) = (
                context.seat_of(source.clone(), spec.name.clone()),
                context.seat_of(team.clone(), spec.name.clone()),
            );
            if team != source
                && let Some(membership) = Membership::present(&to).await?
            {
                // The restored roster has the times of the earlier one.
                carry_over(&from, membership, &to).await.map_err(HostError::failed)?;
            }
        }
    }
    Ok(())
}
