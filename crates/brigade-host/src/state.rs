//! How a team on this host is, gathered from everything that says so.

use std::borrow::Cow;

use brigade_core::board;
use brigade_core::handshake;
use brigade_core::mail::{self, Which};
use brigade_core::pulse::{self, Judged, Liveness, Process, Pulse};
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::task::{Status, Task};
use brigade_wire::team::Team;
use serde::Serialize;

use crate::error::{HostError, failed};
use crate::spec::{MemberSpec, Place};
use crate::worktree::{Distance, Worktree};
use crate::{Host, process_lock};

/// A team.
#[derive(Debug, Serialize)]
pub struct TeamState {
    pub team: TeamName,
    /// The supervising process; members go on without it, and nobody starts them again.
    pub supervisor: Option<u32>,
    pub members: Vec<MemberState>,
    /// Who is on the roster, and of whom no host has said that it plays it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unplayed: Vec<MemberName>,
    pub tasks: Tasks,
    /// Requests that wait for an answer of the lead's.
    pub approvals: usize,
    /// Messages to the lead that were not read.
    pub unread: usize,
}

/// A member.
#[derive(Debug, Serialize)]
pub struct MemberState {
    pub name: MemberName,
    pub agent: String,
    /// Where on this host; none if it is on another.
    pub place: Option<Place>,
    /// The host it is on, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(flatten)]
    pub judged: Judged,
    pub pid: Option<u32>,
    pub session: Option<String>,
    pub tokens: (u64, u64),
    pub unread: usize,
    /// How its branch stands, where it has one.
    pub worktree: Option<Distance>,
    /// The tasks it is at.
    pub tasks: Vec<u64>,
}

/// The board in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tasks {
    pub total: usize,
    pub done: usize,
    pub in_progress: usize,
}

/// How a team is.
pub async fn team(host: &Host, lead: &Seat) -> Result<TeamState, HostError> {
    let open = handshake::open(lead).await.unwrap_or_default();
    let (documents, _) = board::list(lead).await?;
    let tasks: Vec<Task<'_>> =
        documents.iter().filter_map(|(_, document)| Task::read(&document.bytes).ok()).collect();
    let count = |status| tasks.iter().filter(|task| task.status() == Some(status)).count();
    let mut members = Vec::new();
    for name in host.registry.members(&lead.team)? {
        let Some(spec) = host.registry.member(&lead.team, &name)? else { continue };
        members.push(member(host, lead, spec).await?);
    }
    let mut unplayed = Vec::new();
    if host.is_shared {
        let afar = elsewhere(host, lead).await?;
        members.extend(afar.0);
        unplayed = afar.1;
    }
    for state in &mut members {
        let name = &state.name;
        let asks = open.iter().filter(|request| request.from == *name);
        if state.judged.liveness == Liveness::Idle
            && let Some(request) = asks.into_iter().next()
        {
            // It ended its turn with a plan in its lead's hands.
            state.judged.liveness = Liveness::Waiting;
            state.judged.evidence = format!("{}; asked: {}", state.judged.evidence, request.id);
        }
        let mine = |task: &&Task<'_>| {
            task.owner().is_some_and(|owner| owner == name.as_str())
                && task.status() == Some(Status::InProgress)
        };
        state.tasks =
            tasks.iter().filter(mine).filter_map(|task| task.id()?.parse().ok()).collect();
    }
    Ok(TeamState {
        team: lead.team.clone(),
        supervisor: host.supervisor()?.map(|process| process.pid),
        members,
        unplayed,
        tasks: Tasks {
            total: tasks.len(),
            done: count(Status::Completed),
            in_progress: count(Status::InProgress),
        },
        approvals: open.len(),
        unread: mail::inbox(lead, &lead.name, Which::Unread).await.map_or(0, |mail| mail.len()),
    })
}

/// How a member is.
pub async fn member(host: &Host, lead: &Seat, spec: MemberSpec) -> Result<MemberState, HostError> {
    let (plays, pulse, judged) = liveness(host, lead, &spec.name).await?;
    let unread = mail::inbox(lead, &spec.name, Which::Unread).await;
    let worktree = host.worktree(&lead.team, &spec).filter(Worktree::is_there);
    Ok(MemberState {
        // A repository that git cannot look at is no reason not to show the member.
        worktree: worktree.and_then(|worktree| worktree.distance().ok()),
        agent: spec.agent,
        place: Some(spec.place),
        host: pulse.as_ref().map(|pulse| pulse.host.clone()).filter(|_| host.is_shared),
        judged,
        pid: plays.map(|process| process.pid),
        session: pulse.as_ref().and_then(|pulse| pulse.session.clone()),
        tokens: pulse.map(|pulse| pulse.tokens).unwrap_or_default(),
        // Who has not joined yet has no inbox.
        unread: unread.map(|mail| mail.len()).unwrap_or_default(),
        tasks: Vec::new(),
        name: spec.name,
    })
}

/// The members of a team that do not run here: those that another host plays, and the names of those
/// that nobody does.
async fn elsewhere(
    host: &Host,
    lead: &Seat,
) -> Result<(Vec<MemberState>, Vec<MemberName>), HostError> {
    let Some(config) = lead.store.team(&lead.team).await? else { return Ok(Default::default()) };
    let roster = Team::read(&config.bytes).map_err(HostError::failed)?;
    let here = host.registry.members(&lead.team)?;
    let (mut afar, mut unplayed) = (Vec::new(), Vec::new());
    for entry in roster.members() {
        let Some(Ok(name)) = entry.name().map(|name| name.parse::<MemberName>()) else { continue };
        if here.contains(&name) {
            continue;
        }
        let Some(pulse) = pulse::of(lead, &name).await? else {
            // The lead's seat may well be a person's.
            unplayed.extend((name != lead.name).then_some(name));
            continue;
        };
        let unread = mail::inbox(lead, &name, Which::Unread).await;
        afar.push(MemberState {
            agent: entry.agent_type().map(Cow::into_owned).unwrap_or_default(),
            place: None,
            judged: pulse::judge(Some(&pulse), None, &host.name, lead.clock.now()),
            host: Some(pulse.host),
            pid: None,
            session: pulse.session,
            tokens: pulse.tokens,
            unread: unread.map(|mail| mail.len()).unwrap_or_default(),
            worktree: None,
            tasks: Vec::new(),
            name,
        });
    }
    Ok((afar, unplayed))
}

/// The other host that plays a member now, if one does.
pub async fn played_afar(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    if !host.is_shared {
        return Ok(None);
    }
    let here = host.name.as_str();
    let pulse = pulse::of(lead, name).await?.filter(|pulse| pulse.is_afar(here));
    let is_there = |pulse: &Pulse| {
        pulse::judge(Some(pulse), None, here, lead.clock.now()).liveness != Liveness::Dead
    };
    Ok(pulse.filter(is_there).map(|pulse| pulse.host))
}

/// Whether a member is there, and how it is.
pub async fn liveness(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<(Option<Process>, Option<Pulse>, Judged), HostError> {
    let plays = process_lock::holder(&host.registry.seat(&lead.team, name));
    let plays = plays.map_err(|source| failed("look who plays it", source))?;
    let pulse = pulse::of(lead, name).await?;
    let mut judged = pulse::judge(pulse.as_ref(), plays.as_ref(), &host.name, lead.clock.now());
    if plays.is_none() {
        if let Some(why) = host.registry.trouble(&lead.team, name) {
            judged.evidence = format!("{}; {why}", judged.evidence);
        } else if pulse.is_none() && had_its_day(host, lead, name)? {
            // An engine forgets what was said long ago.
            judged.evidence = "no process plays it; nothing was heard of it for a while".to_owned();
        } else if pulse.is_none() {
            judged =
                Judged { liveness: Liveness::Starting, evidence: "not started yet".to_owned() };
        }
    }
    Ok((plays, pulse, judged))
}

/// Whether a member of which nothing is known was there before, and nobody is about to start it.
fn had_its_day(host: &Host, lead: &Seat, name: &MemberName) -> Result<bool, HostError> {
    let joined = host.is_shared && host.registry.has_joined(&lead.team, name);
    Ok(joined && host.supervisor()?.is_none())
}

/// Whether nothing more is done to have a member back. Who plays it and has no agent has tried as often as
/// it does; where nobody plays it, that is the supervising process's to say.
pub fn is_lost(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
    is_played: bool,
    liveness: Liveness,
) -> bool {
    let given_up = || host.registry.trouble(&lead.team, name).is_some();
    liveness == Liveness::Dead && (is_played || given_up())
}
