//! The state of a team, collected from the registry, process locks, pulses, the board and inboxes.

mod attention;
mod elsewhere;
mod not_running;
mod summary;
mod words;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;

use brigade_core::approvals;
use brigade_core::board;
use brigade_core::clock::Timestamp;
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::{self, InboxFilter, MailError};
use brigade_core::pulse::{self, Judgement, Liveness, Process, Pulse};
use brigade_core::seat::Seat;
use brigade_core::store::{NoteKind, StoreError};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::task::{Status, Task};
use brigade_wire::team::Team;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::attention::{AttentionItem, request_words};
pub use self::not_running::NotRunningMember;
pub use self::summary::{StateSummary, member_summary};
use crate::Host;
use crate::claude_led::FollowedLead;
use crate::claude_session::ClaudeSession;
use crate::error::HostError;
use crate::spec::{MemberPlace, MemberSpec};
use crate::worktree::{BranchDistance, Worktree};

/// The state of a team.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TeamState {
    /// The team's name.
    #[schemars(with = "String")]
    pub team: TeamName,
    /// The supervisor's process id. Without a supervisor, members keep running but are not restarted.
    pub supervisor: Option<u32>,
    /// Whether Claude Code leads the team.
    pub is_claude_led: bool,
    /// Whether Claude Code has deleted the team at the end of its session. Its members wait for the session.
    #[serde(skip_serializing_if = "is_false")]
    pub is_ended: bool,
    /// The last id of the Claude Code session that leads or led the team, as far as this host's members know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_session: Option<String>,
    /// The Claude Code session that leads the team, if it runs on this host and describes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_session: Option<ClaudeSession>,
    /// The members of the team, on this host and on others.
    pub members: Vec<MemberState>,
    /// The members on the roster that no host runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub unplayed: Vec<MemberName>,
    /// The members on the roster that brigade runs neither on this host nor, as far as known, on another one.
    #[serde(skip)]
    pub others: Vec<MemberName>,
    /// The number of members besides the lead.
    #[serde(skip)]
    pub member_count: usize,
    /// The members of the team file that do not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_running: Vec<NotRunningMember>,
    /// The number of tasks in each state.
    pub tasks: TaskTotals,
    /// The number of requests that wait for the lead's answer; `None` if they cannot be read.
    pub approvals: Option<usize>,
    /// The number of unread messages to the lead, by the rule of [`unread`](brigade_core::unread); `None` if they cannot be read.
    pub unread: Option<usize>,
    /// The things that wait for the person, the most urgent first.
    pub attention: Vec<AttentionItem>,
    /// Why parts of the state cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Whether the teams of this store may have members on other hosts.
    #[serde(skip)]
    is_shared: bool,
    /// Whether the caller may act as the lead.
    #[serde(skip)]
    pub may_lead: bool,
}

impl TeamState {
    /// Returns whether members of this host are not restarted, because the supervisor is not running.
    pub fn lacks_supervisor(&self) -> bool {
        let is_ours = |place: MemberPlace| place != MemberPlace::Pane;
        let is_here = self.members.iter().any(|member| member.place.is_some_and(is_ours));
        self.supervisor.is_none() && (is_here || !(self.is_shared || self.is_claude_led))
    }
}

/// The state of a member.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemberState {
    /// The member's name.
    #[schemars(with = "String")]
    pub name: MemberName,
    /// The member's agent.
    pub agent: String,
    /// The model that the member's settings name, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The activity of the member and its duration, in words.
    pub words: String,
    /// When the member's state began, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The folder in which the member's agent works: a folder of its worktree, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Where the member runs on this host. `None` if another host runs the member.
    pub place: Option<MemberPlace>,
    /// The host that runs the member, according to the member's pulse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether the member is alive, and the observation that shows it.
    #[serde(flatten)]
    #[schemars(with = "JudgementSchema")]
    pub judged: Judgement,
    /// The id of the member's process on this host.
    pub pid: Option<u32>,
    /// The id that the agent gave to its session.
    pub session: Option<String>,
    /// The numbers of input and output tokens used in the agent's present session. A member that was stopped and started
    /// again has a new session, and so has one that was restarted with a briefing.
    pub tokens: (u64, u64),
    /// The cost of the session in US dollars, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The number of unread messages in the member's inbox, by the rule of [`unread`](brigade_core::unread); `None` if they
    /// cannot be read.
    pub unread: Option<usize>,
    /// The state of the member's branch, if the member has a worktree.
    pub worktree: Option<BranchDistance>,
    /// The ids of the member's tasks that are in progress.
    pub tasks: Vec<u64>,
    /// The ids of the member's tasks that were not started.
    pub assigned: Vec<u64>,
    /// The task that the member works on, or the first of its assigned tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<MemberTask>,
}

/// Describes the JSON form of a [`Judgement`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct JudgementSchema {
    /// Whether the member works, waits, is idle, starts or is dead.
    liveness: String,
    /// The observation that shows it.
    evidence: String,
}

/// A member's task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemberTask {
    /// The id of the task.
    pub id: u64,
    /// The subject of the task.
    pub subject: String,
}

/// The number of tasks on the board: in total, completed, and in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskTotals {
    /// All tasks.
    pub total: usize,
    /// Completed tasks.
    pub done: usize,
    /// Tasks in progress.
    pub in_progress: usize,
    /// Tasks whose files are damaged. They count as not done.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreadable: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns the state of a team.
pub async fn team(host: &Host, lead: &Seat) -> Result<TeamState, HostError> {
    let mut errors = Vec::new();
    let open = match approvals::waiting(lead).await {
        Ok(open) => Some(open),
        Err(HandshakeError::Store(error)) if is_out_of_reach(&error) => Some(Vec::new()),
        Err(error) => {
            errors.push(format!("cannot read the requests to {}: {error}", lead.name));
            None
        }
    };
    let claude_led = host.claude_led();
    let waiting = claude_led.registry.members(&lead.team)?;
    let is_ended = !waiting.is_empty() && lead.find_config().await?.is_none();
    let documents = if is_ended { Vec::new() } else { board::list(lead).await?.0 };
    let tasks: Vec<Task<'_>> =
        documents.iter().filter_map(|(_, document)| Task::read(&document.bytes).ok()).collect();
    let count = |status| tasks.iter().filter(|task| task.status() == Some(status)).count();
    let mut members = Vec::new();
    for name in host.registry.members(&lead.team)? {
        let Some(spec) = host.registry.member(&lead.team, &name)? else { continue };
        members.push(member(host, lead, spec).await?);
    }
    let mut last_session = None;
    for name in waiting {
        let Some(spec) = claude_led.registry.member(&lead.team, &name)? else { continue };
        if !members.iter().any(|member| member.name == name) {
            let mut state = member(&claude_led, lead, spec).await?;
            let followed = FollowedLead::stored(host, &lead.team, &name)?.unwrap_or_default();
            if followed.waits {
                state.judged = waiting_for_lead(&lead.team, &state, &followed);
                state.words = state.judged.evidence.clone();
            }
            last_session = followed.sessions.last().cloned().or(last_session);
            members.push(state);
        }
    }
    let on_roster = roster_names(lead).await?;
    for state in &mut members {
        if let (Some(pid), Some(on_roster)) = (state.pid, &on_roster)
            && host.registry.has_joined(&lead.team, &state.name)
            && !on_roster.contains(state.name.as_str())
        {
            // The member's process ends by itself when it notices that the member has left.
            let evidence = format!("left the team; process {pid} is still ending");
            state.words = evidence.clone();
            state.judged = Judgement { liveness: Liveness::Dead, evidence };
        }
    }
    let mut unplayed = Vec::new();
    if host.is_shared {
        let (remote, not_running) = elsewhere::remote_members(host, lead).await?;
        members.extend(remote);
        unplayed = not_running;
    }
    let is_claude_led = !host.is_shared && !lead.store.is_ours(&lead.team).await?;
    let mut lead_session = None;
    if is_claude_led && let Some(config) = lead.find_config().await? {
        let roster = lead.read(&config)?;
        lead_session = ClaudeSession::of_lead(&host.claude_dir, &roster);
        members.extend(elsewhere::claude_members(lead, &roster, &members).await);
    }
    for state in &mut members {
        let name = &state.name;
        let asks = open.iter().flatten().find(|request| request.from == *name);
        if state.judged.liveness == Liveness::Idle
            && let Some(request) = asks
        {
            // The member ended its turn and waits for the answer to its request.
            state.judged.liveness = Liveness::Waiting;
            state.judged.evidence =
                format!("{}; asked: {}", state.judged.evidence, request.request_id);
        }
        if state.judged.liveness == Liveness::Waiting
            && let Some(request) = asks
        {
            state.words = request_words(request);
        }
        let owned = |status: Status| -> Vec<u64> {
            let mine = tasks.iter().filter(|task| {
                task.status() == Some(status)
                    && task.owner().is_some_and(|owner| owner == name.as_str())
            });
            mine.filter_map(|task| task.id()?.parse().ok()).collect()
        };
        (state.tasks, state.assigned) = (owned(Status::InProgress), owned(Status::Pending));
        let first = state.tasks.first().or(state.assigned.first()).copied();
        state.task = first.and_then(|id| {
            let task = tasks.iter().find(|task| task.id().is_some_and(|own| own == id.to_string()));
            let subject = task?.subject().map(Cow::into_owned).unwrap_or_default();
            Some(MemberTask { id, subject })
        });
    }
    let unread = unread(lead, &lead.name).await.map_err(|error| errors.push(error)).ok();
    let others = elsewhere::others(lead, &members, &unplayed).await?;
    let besides_lead = members.iter().filter(|member| member.name != lead.name).count();
    let mut state = TeamState {
        team: lead.team.clone(),
        is_claude_led,
        is_ended,
        last_session,
        lead_session,
        supervisor: host.supervisor()?.map(|process| process.pid),
        member_count: besides_lead + unplayed.len() + others.len(),
        not_running: not_running::find(host, &lead.team, &members),
        members,
        unplayed,
        others,
        tasks: TaskTotals {
            total: documents.len(),
            unreadable: documents.len() - tasks.len(),
            done: count(Status::Completed),
            in_progress: count(Status::InProgress),
        },
        approvals: open.as_ref().map(Vec::len),
        unread,
        attention: Vec::new(),
        errors,
        is_shared: host.is_shared,
        may_lead: host.may_lead,
    };
    state.attention = attention::list(&state, open.as_deref().unwrap_or_default());
    Ok(state)
}

/// Returns the number of members on a roster besides the lead. This is the number that every view shows.
pub fn member_count(roster: &Team<'_>) -> usize {
    let is_lead = |name: &str| roster.lead().is_some_and(|lead| lead.is(name));
    roster.members().filter(|member| !member.name().is_some_and(|name| is_lead(&name))).count()
}

/// Returns the state of a member that waits for an ended Claude Code session.
fn waiting_for_lead(team: &TeamName, member: &MemberState, record: &FollowedLead) -> Judgement {
    let session = record.sessions.last().map(String::as_str).unwrap_or_default();
    let (liveness, evidence) = match member.pid {
        Some(pid) => (
            Liveness::Idle,
            format!("process {pid} waits for Claude Code; `claude --resume {session}` continues"),
        ),
        None => {
            (Liveness::Dead, format!("Claude Code has ended; `brigade resume {team}` continues"))
        }
    };
    Judgement { liveness, evidence }
}

/// Returns the number of unread messages in a member's inbox. A member that has not joined yet has no inbox.
async fn unread(lead: &Seat, of: &MemberName) -> Result<usize, String> {
    match mail::inbox(lead, of, InboxFilter::Unread).await {
        Ok(mail) => Ok(brigade_core::unread::count(&mail)),
        Err(MailError::NoMember { .. }) => Ok(0),
        Err(MailError::Store(error)) if is_out_of_reach(&error) => Ok(0),
        Err(error) => Err(format!("cannot read the mail of {of}: {error}")),
    }
}

/// Returns whether the data of a team cannot be read because the team was deleted, or because a member's credentials do
/// not allow it. The rest of the state can still be shown.
fn is_out_of_reach(error: &StoreError) -> bool {
    matches!(error, StoreError::NoTeam { .. } | StoreError::Forbidden { .. })
}

/// Returns the names on the roster, or `None` if the team does not exist or its roster cannot be read.
async fn roster_names(lead: &Seat) -> Result<Option<HashSet<String>>, HostError> {
    let Some(config) = lead.find_config().await? else { return Ok(None) };
    let Ok(roster) = Team::read(&config.bytes) else { return Ok(None) };
    let names = roster.members().filter_map(|member| Some(member.name()?.into_owned()));
    Ok(Some(names.collect()))
}

/// Returns the state of a member that runs on this host.
pub async fn member(host: &Host, lead: &Seat, spec: MemberSpec) -> Result<MemberState, HostError> {
    let (process, pulse, judged) = liveness(host, lead, &spec.name).await?;
    let unread = unread(lead, &spec.name).await.ok();
    let worktree = host.worktree(&lead.team, &spec).filter(Worktree::exists);
    let mut words = words::describe(pulse.as_ref(), &judged, lead.clock.now());
    if judged.liveness == Liveness::Working && host.registry.is_paused(&lead.team, &spec.name) {
        words.push_str(", then paused");
    }
    let cwd = match &worktree {
        Some(worktree) => worktree.folder(&spec.cwd).unwrap_or_else(|_| worktree.dir.clone()),
        None => spec.cwd.clone(),
    };
    Ok(MemberState {
        cwd: Some(cwd),
        // Show the member even if git cannot read its repository.
        worktree: worktree.and_then(|worktree| worktree.distance().ok()),
        agent: spec.agent,
        model: spec.model,
        words,
        since: pulse.as_ref().map(|pulse| pulse.since),
        cost: pulse.as_ref().and_then(|pulse| pulse.cost),
        task: None,
        place: Some(spec.place),
        host: pulse.as_ref().map(|pulse| pulse.host.clone()).filter(|_| host.is_shared),
        judged,
        pid: process.map(|process| process.pid),
        session: match pulse.as_ref().and_then(|pulse| pulse.session.clone()) {
            None if host.is_shared => saved_session(lead, &spec.name).await?,
            session => session,
        },
        tokens: pulse.map(|pulse| pulse.tokens).unwrap_or_default(),
        unread,
        tasks: Vec::new(),
        assigned: Vec::new(),
        name: spec.name,
    })
}

/// Returns the id of the agent's session, which the member's process saved.
async fn saved_session(lead: &Seat, name: &MemberName) -> Result<Option<String>, HostError> {
    #[derive(serde::Deserialize)]
    struct SavedSession {
        session: Option<String>,
    }
    match lead.store.get_note(&lead.team, name, NoteKind::Memory).await {
        Ok(note) => {
            let saved = note.and_then(|note| serde_json::from_slice::<SavedSession>(&note).ok());
            Ok(saved.and_then(|saved| saved.session).filter(|session| !session.is_empty()))
        }
        Err(StoreError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name of the other host that runs the member, or `None` if no other host does.
pub async fn remote_host(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    if !host.is_shared {
        return Ok(None);
    }
    let here = host.name.as_str();
    let pulse = pulse::last_report(lead, name).await?.filter(|pulse| pulse.is_remote(here));
    let is_alive = |pulse: &Pulse| {
        pulse::judge(Some(pulse), None, here, lead.clock.now()).liveness != Liveness::Dead
    };
    Ok(pulse.filter(is_alive).map(|pulse| pulse.host))
}

/// Returns the member's process on this host, the member's pulse, and the liveness derived from both.
pub async fn liveness(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<(Option<Process>, Option<Pulse>, Judgement), HostError> {
    let process = host.member_process(&lead.team, name)?;
    let pulse = pulse::last_report(lead, name).await?;
    let mut judged = pulse::judge(pulse.as_ref(), process.as_ref(), &host.name, lead.clock.now());
    if process.is_none() {
        if let Some(why) = host.registry.failure(&lead.team, name) {
            judged.evidence = format!("{}; {why}", judged.evidence);
        } else if pulse.is_none() && ran_before(host, lead, name)? {
            // The member ran before, but a NATS store drops old pulses.
            judged.evidence = "its process is not running; no recent heartbeat".to_owned();
        } else if pulse.is_none() {
            let problem = host.registry.problem(&lead.team, name);
            let evidence = match problem {
                Some(why) => format!("cannot be started: {why}"),
                None => "not started yet".to_owned(),
            };
            judged = Judgement { liveness: Liveness::Starting, evidence };
        }
    }
    Ok((process, pulse, judged))
}

/// Returns whether a member of this host has left its team. Its process may still be ending.
pub async fn has_left(host: &Host, lead: &Seat, name: &MemberName) -> Result<bool, HostError> {
    if host.registry.member(&lead.team, name)?.is_none()
        || !host.registry.has_joined(&lead.team, name)
    {
        return Ok(false);
    }
    let on_roster = roster_names(lead).await?;
    Ok(on_roster.is_some_and(|names| !names.contains(name.as_str())))
}

/// Removes the heartbeat of an earlier member of this name, so that it is not taken for one of the new member.
pub(crate) async fn forget_heartbeat(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<(), HostError> {
    if host.leads(lead).await? {
        lead.store.put_note(&lead.team, name, NoteKind::Pulse, None).await?;
    }
    Ok(())
}

/// Asks the supervisor to start a member again if its process or its agent is dead.
pub async fn retry_if_dead(host: &Host, lead: &Seat, name: &MemberName) -> Result<(), HostError> {
    let (_, _, judged) = liveness(host, lead, name).await?;
    match judged.liveness {
        Liveness::Dead => host.registry.request_restart(&lead.team, name),
        _ => host.registry.set_failure(&lead.team, name, None),
    }
}

/// Returns why a member of this host does not receive messages, or `None` if it does. A member that the supervisor is
/// about to start receives its messages soon. A failed agent is started again by the next message.
pub async fn why_not_reached(
    host: &Host,
    seat: &Seat,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    if host.registry.member(&seat.team, name)?.is_none() {
        return Ok(None);
    }
    let (process, _, judged) = liveness(host, seat, name).await?;
    let is_lost = is_lost(host, seat, name, false, judged.liveness);
    let is_left_alone = judged.liveness == Liveness::Dead && host.supervisor()?.is_none();
    Ok((process.is_none() && (is_lost || is_left_alone)).then_some(judged.evidence))
}

/// For a member without a pulse: returns true if the member ran before and no supervisor is running to restart it.
fn ran_before(host: &Host, lead: &Seat, name: &MemberName) -> Result<bool, HostError> {
    let joined = host.is_shared && host.registry.has_joined(&lead.team, name);
    Ok(joined && host.supervisor()?.is_none())
}

/// Returns whether brigade has stopped trying to restart a member. That is the case if the member's process is
/// running but no longer restarts its dead agent, or if the supervisor has marked the member as failed.
pub fn is_lost(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
    is_played: bool,
    liveness: Liveness,
) -> bool {
    let is_marked_failed = || host.registry.failure(&lead.team, name).is_some();
    liveness == Liveness::Dead
        && !host.registry.is_restart_requested(&lead.team, name)
        && (is_played || is_marked_failed())
}
