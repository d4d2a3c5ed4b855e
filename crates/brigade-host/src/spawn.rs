//! Adds a member to a team and starts it on this host.

use brigade_agents::driver::{self, AGENTS, AgentChoice};
use brigade_core::policy::RuleDecision;
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use crate::context::Context;
use crate::differences::MemberDifferences;
use crate::error::{HostError, Trouble};
use crate::error_core::join_hint;
use crate::progress::{Progress, ReportProgress};
use crate::spec::{AccessLevel, MemberPlace, MemberSpec, TeamSpec};
use crate::{Host, preflight, renewal, state, stopped, suggest, wait};

/// The result of [`spawn`].
#[derive(Debug)]
pub struct Spawned {
    /// Whether the member was added. False if the member already existed.
    pub new: bool,
    /// Why the member did not start, or `None` if it started.
    pub trouble: Option<String>,
}

/// Fails if the name is the lead's, or if a member of this name would share its inbox with another member.
pub async fn check_name(seat: &Seat, name: &MemberName) -> Result<(), HostError> {
    let Some(config) = seat.find_config().await? else { return Ok(()) };
    let team = Team::read(&config.bytes).map_err(HostError::failed)?;
    if team.lead().is_some_and(|lead| lead.is(name.as_str())) {
        let (name, team) = (name.to_string(), seat.team.to_string());
        let error = HostError::failed(Trouble::LeadsIt { name, team });
        return Err(
            error.hint("choose another name; to let an agent lead, add `[lead]` to brigade.toml")
        );
    }
    if team.member(name.as_str()).is_none() {
        let names: Vec<_> = team.members().filter_map(|member| member.name()).collect();
        name.check_free(names.iter().map(AsRef::as_ref)).map_err(RosterError::Name)?;
    }
    Ok(())
}

/// Checks that the caller may start members of the team, and that a new member of this name can be started. Only a
/// person may start a member whose agent is a command.
pub async fn check(
    context: &Context,
    host: &Host,
    seat: &Seat,
    spec: &MemberSpec,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let name = &spec.name;
    check_credentials(context, host, seat, name).await?;
    context.check_may_start(seat, name, &spec.agent)?;
    check_permissions(context, seat, spec)?;
    preflight::refuse_native(host.is_shared, [spec])?;
    if spec.place == MemberPlace::Native && !host.leads(seat).await? {
        let (name, team) = (name.to_string(), seat.team.to_string());
        let error = HostError::failed(Trouble::NativeByClaude { name, team });
        return Err(error.hint("ask Claude Code to start it, or use another place"));
    }
    check_not_elsewhere(host, seat, name).await?;
    check_name(seat, name).await?;
    if !roster::is_lead_reading(seat).await? {
        report(Progress::LeadDoesNotListen(seat.team.clone(), name.clone()));
    }
    Ok(())
}

/// Fails if an agent, or Claude Code, would start a member with more permissions than a new member has by default. Such a
/// member could do what its starter may not do.
fn check_permissions(context: &Context, seat: &Seat, spec: &MemberSpec) -> Result<(), HostError> {
    let is_wider = spec.access == AccessLevel::Full
        || spec.rules.iter().any(|rule| rule.ruling == RuleDecision::Allow)
        || spec.program.is_some()
        || spec.env.is_some();
    if !is_wider || (context.is_run_by_person() && seat.user.is_person()) {
        return Ok(());
    }
    let what = "give a new member permissions, a program or variables";
    let error = HostError::failed(Trouble::PersonOnly { what });
    Err(error.hint("without them, the member asks the person, or add it to brigade.toml"))
}

/// Fails if the NATS credentials of this host do not let it run the member: they are for other members, or the member
/// is not on the roster and they may not add it.
async fn check_credentials(
    context: &Context,
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<(), HostError> {
    let Some(servers) = context.location().nats() else { return Ok(()) };
    let members = servers.speaks_for()?;
    let team = &lead.team;
    if members.is_empty() {
        return Ok(());
    }
    if !members.contains(name) {
        let members = members.iter().map(ToString::to_string).collect();
        let error =
            HostError::failed(Trouble::NotInCredentials { name: name.to_string(), members });
        return Err(error.hint(format!(
            "the operator of the NATS server issues credentials with `brigade org add-member {team} {name}`; \
             name them with `--creds FILE`"
        )));
    }
    if !host.leads(lead).await? && lead.for_member(name.clone()).role().await?.is_none() {
        let (name, team) = (name.to_string(), team.to_string());
        let hint = join_hint(&team, &name);
        return Err(HostError::failed(Trouble::NotOnRoster { name, team }).hint(hint));
    }
    Ok(())
}

/// Fails if another host runs the member. Without this check, two processes could work under one name. If one of
/// them failed, the tasks that the other still works on would be released.
pub async fn check_not_elsewhere(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<(), HostError> {
    let Some(other) = state::remote_host(host, lead, name).await? else { return Ok(()) };
    let (name, team) = (name.to_string(), lead.team.to_string());
    Err(HostError::failed(Trouble::Elsewhere { name, team, host: other }))
}

/// Returns the agent of this name. If there is none, the error suggests a similar name.
pub fn known_agent(name: &str) -> Result<AgentChoice, HostError> {
    if let Some(choice) = driver::agent(name) {
        return Ok(choice);
    }
    let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    let question = suggest::question(name, &known);
    let error = HostError::usage(Trouble::NoAgent { name: name.to_owned() });
    Err(error.hint(format!("{question}supported agents: {}, acp:COMMAND", known.join(", "))))
}

/// Adds a member, lets the supervisor start it on this host, and waits until the member is ready. Spawning an
/// existing member with the same spec changes nothing. If several processes spawn the same member at once, only
/// one of them adds it.
pub async fn spawn(
    context: &Context,
    lead: &Seat,
    spec: &MemberSpec,
    report: ReportProgress<'_>,
) -> Result<Spawned, HostError> {
    let host = &context.host()?;
    check_credentials(context, host, lead, &spec.name).await?;
    context.check_may_start(lead, &spec.name, &spec.agent)?;
    renewal::renew(context, host, report).await?;
    wait::until_removed(host, lead, &spec.name, report).await?;
    if host.registry.member(&lead.team, &spec.name)?.is_some() {
        check_not_elsewhere(host, lead, &spec.name).await?;
    } else {
        check(context, host, lead, spec, report).await?;
        preflight::check(&host.programs, [spec])?;
    }
    if host.registry.team(&lead.team)?.is_none() {
        host.registry.put_team(&TeamSpec::new(lead.team.clone(), spec.cwd.clone()))?;
    }
    let unread = stopped::unread_texts(&host.registry, lead, &spec.name).await?;
    let new = host.registry.add_member(&lead.team, spec)?;
    if new && unread > 0 {
        report(Progress::HasUnreadMail(spec.name.clone(), unread));
    }
    if !new
        && let Some(existing) = host.registry.member(&lead.team, &spec.name)?
        && let Some(differences) = MemberDifferences::find(&existing, spec)
    {
        let (name, difference) = (spec.name.to_string(), differences.keys());
        let error = HostError::failed(Trouble::OtherMember { name, difference });
        return Err(error.hint("choose another name, or stop the existing member first"));
    }
    if new {
        state::forget_heartbeat(host, lead, &spec.name).await?;
    } else {
        state::retry_if_dead(host, lead, &spec.name).await?;
    }
    let dead = wait::until_ready(host, lead, std::slice::from_ref(&spec.name), report).await?;
    Ok(Spawned { new, trouble: dead.into_iter().next().map(|(_, why)| why) })
}
