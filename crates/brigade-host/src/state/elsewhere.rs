//! The states of members that this host does not run: members on other hosts, and members that Claude Code runs itself.

use std::borrow::Cow;

use brigade_core::pulse::{self, Judgement, Liveness};
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use super::{MemberState, unread, words};
use crate::Host;
use crate::claude_led;
use crate::error::HostError;
use crate::spec::MemberPlace;

/// Returns the states of the members that other hosts run, and the names of the members that no host runs.
pub(super) async fn remote_members(
    host: &Host,
    lead: &Seat,
) -> Result<(Vec<MemberState>, Vec<MemberName>), HostError> {
    let Some(config) = lead.find_config().await? else { return Ok(Default::default()) };
    let roster = Team::read(&config.bytes).map_err(HostError::failed)?;
    let here = host.registry.members(&lead.team)?;
    let (mut remote, mut unplayed) = (Vec::new(), Vec::new());
    for entry in roster.members() {
        let Some(Ok(name)) = entry.name().map(|name| name.parse::<MemberName>()) else { continue };
        if here.contains(&name) {
            continue;
        }
        let Some(pulse) = pulse::last_report(lead, &name).await? else {
            // Do not list the lead: a lead without a pulse is usually a person.
            unplayed.extend((name != lead.name).then_some(name));
            continue;
        };
        let unread = unread(lead, &name).await.ok();
        let judged = pulse::judge(Some(&pulse), None, &host.name, lead.clock.now());
        remote.push(MemberState {
            agent: entry.agent_type().map(Cow::into_owned).unwrap_or_default(),
            model: None,
            cwd: entry.cwd().map(|cwd| cwd.into_owned().into()),
            words: words::describe(Some(&pulse), &judged, lead.clock.now()),
            since: Some(pulse.since),
            cost: pulse.cost,
            task: None,
            place: None,
            judged,
            host: Some(pulse.host),
            pid: None,
            session: None,
            tokens: pulse.tokens,
            unread,
            worktree: None,
            tasks: Vec::new(),
            assigned: Vec::new(),
            name,
        });
    }
    Ok((remote, unplayed))
}

/// Returns the states of the members that Claude Code itself runs or is starting, according to the roster. `known` are the members that
/// brigade runs.
pub(super) async fn claude_members(
    lead: &Seat,
    roster: &Team<'_>,
    known: &[MemberState],
) -> Vec<MemberState> {
    let mut states = Vec::new();
    for entry in roster.members() {
        let Some(Ok(name)) = entry.name().map(|name| name.parse::<MemberName>()) else { continue };
        let is_lead = roster.lead().is_some_and(|lead| lead.is(name.as_str()));
        if is_lead || entry.is_remote() || known.iter().any(|member| member.name == name) {
            continue;
        }
        let is_active = entry.is_active() == Some(true);
        let liveness = if is_active { Liveness::Working } else { Liveness::Idle };
        let agent = entry.agent_type().map(Cow::into_owned).unwrap_or_default();
        let evidence = match claude_led::is_driven(&agent) {
            // Claude Code adds a member to the roster before it starts the member's process.
            true => "according to the roster; its process has not registered on this host yet",
            false => "according to Claude Code, which runs it",
        };
        let evidence = evidence.to_owned();
        let judged = Judgement { liveness, evidence };
        states.push(MemberState {
            model: None,
            cwd: entry.cwd().map(|cwd| cwd.into_owned().into()),
            words: match claude_led::is_driven(&agent) {
                true => format!("starting; {}", judged.evidence),
                false => format!("{} (run by Claude Code)", liveness.label()),
            },
            agent,
            since: None,
            cost: None,
            task: None,
            place: Some(MemberPlace::Pane),
            host: None,
            judged,
            pid: None,
            session: None,
            tokens: (0, 0),
            unread: unread(lead, &name).await.ok(),
            worktree: None,
            tasks: Vec::new(),
            assigned: Vec::new(),
            name,
        });
    }
    states
}

/// Returns the other members on the roster, without the lead. Another program may run them.
pub(super) async fn others(
    lead: &Seat,
    known: &[MemberState],
    unplayed: &[MemberName],
) -> Result<Vec<MemberName>, HostError> {
    let Some(config) = lead.find_config().await? else { return Ok(Vec::new()) };
    let Ok(roster) = Team::read(&config.bytes) else { return Ok(Vec::new()) };
    let is_known = |name: &MemberName| {
        known.iter().any(|member| member.name == *name)
            || unplayed.contains(name)
            || roster.lead().is_some_and(|lead| lead.is(name.as_str()))
    };
    let names = roster.members().filter_map(|entry| entry.name()?.parse::<MemberName>().ok());
    Ok(names.filter(|name| !is_known(name)).collect())
}
