//! Resumes the members of a team that Claude Code leads or led.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use brigade_agents::driver;
use brigade_agents::teammate::Membership;
use brigade_core::revive;
use brigade_wire::member::Member;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use tokio::time::Instant;

use super::{FollowedLead, find_lead};
use crate::context::Context;
use crate::error::{HostError, failed};
use crate::host::Host;
use crate::progress::{Progress, ReportProgress};
use crate::spec::{MemberPlace, MemberSpec, TeamSpec};
use crate::start;

/// How long the members may take to join the team of a lead that is back.
const JOIN_WITHIN: Duration = Duration::from_secs(20);
/// How long the process of a member may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(1);
/// How often to check whether the members have joined.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The members of a team that Claude Code leads or led.
#[derive(Debug)]
pub struct ResumedSession {
    /// The members that are on the lead's team.
    pub joined: Vec<MemberName>,
    /// The members that wait for their lead.
    pub waiting: Vec<MemberName>,
    /// The members whose processes have ended again.
    pub dead: Vec<MemberName>,
    /// The last id of the lead's session.
    pub session: Option<String>,
    /// Whether the lead's session runs.
    pub is_lead_back: bool,
    /// The folder in which the members work.
    pub cwd: Option<PathBuf>,
}

/// Starts the members of a team that Claude Code leads or led, and that no process runs. They join the team of their lead when
/// the lead's session runs again. Restores members from the journal if necessary.
pub async fn resume_members(
    context: &Context,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<ResumedSession, HostError> {
    let host = context.host()?.claude_led();
    add_recorded(context, &host, team, report).await?;
    let names = host.registry.members(team)?;
    let mut sessions: Vec<String> = Vec::new();
    let mut cwd = None;
    for name in &names {
        if let Some(record) = FollowedLead::stored(&host, team, name)? {
            sessions.extend(record.sessions);
        }
        if cwd.is_none() {
            cwd = host.registry.member(team, name)?.map(|spec| spec.cwd);
        }
        if host.member_process(team, name)?.is_none() {
            // Until it has joined, the member waits.
            if let Some(followed) = FollowedLead::stored(&host, team, name)? {
                let followed = FollowedLead { waits: true, ..followed };
                host.registry.put_followed_lead(team, name, &followed)?;
            }
            let started = start::waiting_member(&host.self_command, &host.registry, team, name);
            drop(started.map_err(|source| failed(format!("start {name}"), source))?);
        }
    }
    let lead = find_lead(&host.claude_dir, &sessions);
    let is_lead_back = lead.is_some();
    let joins_in = lead.map_or_else(|| team.clone(), |lead| lead.team);
    let limit = if is_lead_back { JOIN_WITHIN } else { STARTS_WITHIN };
    let began = Instant::now();
    let (mut joined, mut waiting) = (Vec::new(), names);
    while !waiting.is_empty() && began.elapsed() < limit {
        tokio::time::sleep(POLL_INTERVAL).await;
        let mut left = Vec::new();
        for name in waiting {
            let is_back = is_lead_back && is_joined(context, &host, &joins_in, &name).await?;
            if is_back { joined.push(name) } else { left.push(name) }
        }
        waiting = left;
    }
    let mut dead = Vec::new();
    for name in std::mem::take(&mut waiting) {
        let runs = host.member_process(team, &name)?.is_some();
        if runs { waiting.push(name) } else { dead.push(name) }
    }
    Ok(ResumedSession { joined, waiting, dead, session: sessions.pop(), is_lead_back, cwd })
}

/// Returns whether a process runs the member on the team of its lead.
async fn is_joined(
    context: &Context,
    host: &Host,
    team: &TeamName,
    name: &MemberName,
) -> Result<bool, HostError> {
    let followed = FollowedLead::stored(host, team, name)?.unwrap_or_default();
    let seat = context.seat_of(team.clone(), name.clone());
    Ok(!followed.waits
        && host.member_process(team, name)?.is_some()
        && Membership::present(&seat).await? == Some(followed.membership))
}

/// Adds the members of a team to the registry that the journal names, unless they are registered.
async fn add_recorded(
    context: &Context,
    host: &Host,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let seat = context.seat_of(team.clone(), MemberName::lead());
    let Some(config) = revive::last_roster(&seat).await? else { return Ok(()) };
    let roster = Team::read(&config).map_err(HostError::failed)?;
    let lead = roster.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let session = roster.lead_session_id().map(Cow::into_owned);
    let gone = host.registry.gone_members(team)?;
    let supervised = context.registry();
    for member in roster.members() {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if lead.as_deref() == Some(name.as_str())
            || gone.contains(&name)
            || host.registry.member(team, &name)?.is_some()
            // The supervisor runs a member that brigade added.
            || supervised.member_or_stopping(team, &name)?.is_some()
        {
            continue;
        }
        let Some(spec) = driven_spec(context, host, &member, report)? else { continue };
        if host.registry.team(team)?.is_none() {
            host.registry.put_team(&TeamSpec::new(team.clone(), spec.cwd.clone()))?;
        }
        let spec = MemberSpec { place: MemberPlace::Pane, ..spec };
        host.registry.put_member(team, &spec)?;
        host.registry.set_joined(team, &spec.name)?;
        let membership = Membership {
            team_created: roster.created_at().unwrap_or_default(),
            joined: member.joined_at().unwrap_or_default(),
        };
        let sessions = session.clone().into_iter().collect();
        let record = FollowedLead { sessions, membership, waits: true, joining: None };
        host.registry.put_followed_lead(team, &spec.name, &record)?;
    }
    Ok(())
}

/// Returns whether brigade drives this agent, so that Claude Code does not run a member with it itself.
pub(crate) fn is_driven(agent: &str) -> bool {
    driver::agent(agent).is_some_and(|choice| !choice.agent.native)
}

/// Returns the settings of a member on a recorded roster, if brigade can run the member on this host.
pub(crate) fn driven_spec(
    context: &Context,
    host: &Host,
    member: &Member<'_>,
    report: ReportProgress<'_>,
) -> Result<Option<MemberSpec>, HostError> {
    let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else {
        return Ok(None);
    };
    if member.is_remote() {
        report(Progress::RemoteNotRestored(name));
        return Ok(None);
    }
    let agent = member.agent_type().map(Cow::into_owned).unwrap_or_default();
    let cwd = member.cwd().map_or_else(|| context.cwd.clone(), |cwd| cwd.into_owned().into());
    if !is_driven(&agent) {
        report(Progress::NativeNotRestored(name));
        return Ok(None);
    }
    // Any member that can write the roster could have chosen the command and its folder.
    if driver::is_command(&agent) && !host.registry.knows_command(&agent, &cwd)? {
        report(Progress::CommandNotRestored(name, agent));
        return Ok(None);
    }
    Ok(Some(MemberSpec::new(name, agent, cwd)))
}
