//! Stops members. First asks each member with the shutdown handshake. If a member does not stop within a time
//! limit, ends its process. Ends only processes that hold a member's lock on this host.

use std::time::Duration;

use brigade_core::board;
use brigade_core::handshake::{self, HandshakeError};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::pulse::{Judgement, Liveness, Process, Pulse, ReportedState};
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::{NoteKind, StoreError};
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::protocol::Protocol;
use jiff::SignedDuration;
use rustix::process::Signal;
use tokio::time::Instant;

use crate::error::{HostError, Trouble};
use crate::process::send_signal;
use crate::progress::{Ended, Progress, ReportProgress};
use crate::spec::MemberSpec;
use crate::worktree::{IgnoredFiles, Removed, Worktree};
use crate::{Host, state};

/// How often to check whether a member has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process may take to end after SIGTERM before it gets SIGKILL.
const GRACE: Duration = Duration::from_secs(8);
/// How long to wait for a process after SIGKILL, or for a process that brigade cannot identify.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// A member that has been idle for this long after a failed turn does not start another turn by itself.
const FAILED_FOR: SignedDuration = SignedDuration::from_secs(1);

/// How to stop members.
#[derive(Clone, Copy, Debug)]
pub struct StopOptions<'m> {
    /// How long the members may take to agree. `None` stops them without asking.
    pub ask: Option<Duration>,
    /// The reason to send with the shutdown request.
    pub reason: Option<&'m str>,
    /// Whether a member that refuses keeps running.
    pub may_refuse: bool,
    /// Whether to remove files that git ignores together with a member's worktree.
    pub ignored_files: IgnoredFiles,
}

/// The fate of the team after its members have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamAfterwards {
    /// The team stays, without the members.
    Stays,
    /// The whole team is deleted, so that each member need not leave it.
    Deleted,
}

/// The shutdown of one member.
struct Stopping {
    name: MemberName,
    /// The member's settings, unless an earlier version of brigade has removed them.
    spec: Option<MemberSpec>,
    worktree: Option<Worktree>,
    /// The id of the shutdown request, if one was sent.
    request: Option<String>,
    /// The reason that the member gave, if the member refused.
    refused: Option<String>,
    /// When SIGTERM was sent to the member's process.
    terminated: Option<Instant>,
    ended: Option<Ended>,
    /// Why the member's process cannot be ended.
    stuck: Option<String>,
}

impl Stopping {
    fn is_over(&self) -> bool {
        self.ended.is_some() || self.stuck.is_some()
    }
}

/// Stops these members, all at the same time. Returns how the shutdown of each ended.
pub async fn members(
    host: &Host,
    lead: &Seat,
    names: &[MemberName],
    manner: StopOptions<'_>,
    afterwards: TeamAfterwards,
    report: ReportProgress<'_>,
) -> Result<Vec<(MemberName, Ended)>, HostError> {
    let began = Instant::now();
    if afterwards == TeamAfterwards::Deleted {
        host.registry.mark_deletion(&lead.team)?;
    }
    let mut stopping = Vec::new();
    for name in names {
        let spec = host.registry.member_or_stopping(&lead.team, name)?;
        let mut one = Stopping {
            name: name.clone(),
            worktree: spec.as_ref().and_then(|spec| host.worktree(&lead.team, spec)),
            spec,
            request: None,
            refused: None,
            terminated: None,
            ended: None,
            stuck: None,
        };
        // In a team that Claude Code leads, the person asks the members that Claude Code started.
        let ours = host.is_claude_led || host.acting_seat(lead, name).await?.name == lead.name;
        let (process, pulse, judged) = state::liveness(host, lead, name).await?;
        let obstacle = why_no_answer(pulse.as_ref(), &judged);
        let asks = manner.ask.filter(|_| ours && process.is_some());
        if let (Some(_), Some(why)) = (asks, &obstacle) {
            report(Progress::CannotAnswer(name.clone(), why.clone()));
        }
        if let Some(limit) = asks.filter(|_| obstacle.is_none()) {
            match handshake::request_shutdown(lead, name.as_str(), manner.reason).await {
                Ok(asked) => {
                    one.request = Some(asked.request_id);
                    report(Progress::AskedToStop(name.clone(), limit));
                }
                // The member has not joined the roster yet, or has left it. Its process is ended without asking.
                Err(HandshakeError::Send(_)) => {}
                Err(error) => return Err(HostError::failed(error)),
            }
        }
        stopping.push(one);
    }
    let limit = manner.ask.unwrap_or_default();
    loop {
        for one in stopping.iter_mut().filter(|one| !one.is_over()) {
            let is_late = began.elapsed() >= limit;
            step(host, lead, one, manner, afterwards, is_late, report).await?;
        }
        if stopping.iter().all(Stopping::is_over) {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let stuck = stopping.iter().filter_map(|one| Some((&one.name, one.stuck.as_ref()?)));
    still_running(host, &lead.team, stuck)?;
    Ok(stopping.into_iter().filter_map(|one| Some((one.name, one.ended?))).collect())
}

/// Returns why a member's agent cannot answer a request to stop, or `None` if it may be able to.
fn why_no_answer(pulse: Option<&Pulse>, judged: &Judgement) -> Option<String> {
    match pulse.map(|pulse| &pulse.state) {
        _ if matches!(judged.liveness, Liveness::Dead | Liveness::Paused) => {
            Some(judged.evidence.clone())
        }
        Some(ReportedState::Idle { failed: Some(why), .. })
            if judged.liveness == Liveness::Idle =>
        {
            Some(format!("its last turn failed: {why}"))
        }
        _ => None,
    }
}

/// Returns why the process of a member cannot be ended, if SIGTERM was sent long enough ago.
fn why_stuck(process: &Process, terminated: Instant) -> Option<String> {
    let waited = terminated.elapsed();
    match process.pid {
        0 if waited > LAST_WAIT => Some("brigade cannot identify the process".to_owned()),
        0 => None,
        pid if waited > GRACE + LAST_WAIT => Some(format!("process {pid} survives SIGKILL")),
        _ => None,
    }
}

/// Fails if there are members whose processes cannot be ended.
fn still_running<'s>(
    host: &Host,
    team: &TeamName,
    stuck: impl Iterator<Item = (&'s MemberName, &'s String)>,
) -> Result<(), HostError> {
    let stuck: Vec<(&MemberName, &String)> = stuck.collect();
    let [(_, why), ..] = stuck.as_slice() else { return Ok(()) };
    let names = stuck.iter().map(|(name, _)| name.to_string()).collect();
    let mut error = HostError::failed(Trouble::StillRunning { names, why: (*why).clone() });
    for (name, _) in stuck {
        let lock = host.registry.seat(team, name);
        error = error.hint(format!(
            "find the process with `fuser {0}` or `lsof {0}`, end it, and run the command again",
            lock.display()
        ));
    }
    Err(error)
}

/// Ends the processes of these members without asking. For use when the store cannot be reached: the members'
/// data stays in the store.
pub async fn kill(
    host: &Host,
    team: &TeamName,
    names: &[MemberName],
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    for name in names {
        host.registry.withdraw_member(team, name)?;
        if let Some(process) = host.member_process(team, name)? {
            send_signal(&process, Signal::TERM);
            report(Progress::ToldToEnd(name.clone()));
        }
    }
    let began = Instant::now();
    let mut left: Vec<&MemberName> = names.iter().collect();
    let mut stuck = Vec::new();
    while !left.is_empty() {
        let mut running = Vec::new();
        for name in left {
            match host.member_process(team, name)? {
                None => report(Progress::Ended(name.clone(), Ended::Forced)),
                Some(process) => match why_stuck(&process, began) {
                    Some(why) => stuck.push((name, why)),
                    None => {
                        if began.elapsed() > GRACE {
                            send_signal(&process, Signal::KILL);
                        }
                        running.push(name);
                    }
                },
            }
        }
        left = running;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    still_running(host, team, stuck.iter().map(|(name, why)| (*name, why)))
}

async fn step(
    host: &Host,
    lead: &Seat,
    one: &mut Stopping,
    manner: StopOptions<'_>,
    afterwards: TeamAfterwards,
    is_late: bool,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let Some(process) = host.member_process(&lead.team, &one.name)? else {
        let on_roster = lead.for_member(one.name.clone()).role().await;
        let on_roster = matches!(on_roster, Ok(Some(_)));
        let ended = match (one.terminated, &one.request) {
            (Some(_), _) => Ended::Forced,
            (None, Some(_)) if !on_roster => Ended::Agreed,
            // The roster may still list the member if Claude Code has overwritten the roster with an old copy.
            (None, Some(request))
                if reply(lead, &one.name, request).await? == Some(ShutdownReply::Yes) =>
            {
                Ended::Agreed
            }
            // The member's process was not running, and is not started again.
            (None, _) => Ended::WasGone,
        };
        match afterwards {
            TeamAfterwards::Stays => {
                leave_team(host, lead, &one.name).await?;
                if let Some(spec) = &one.spec {
                    record_stopped(host, lead, spec)?;
                }
            }
            TeamAfterwards::Deleted => {
                host.registry.withdraw_member(&lead.team, &one.name)?;
                forget_notes(lead, &one.name).await?;
            }
        }
        if let Some(worktree) = &one.worktree {
            // The shutdown continues even if git cannot read the repository.
            match worktree.remove(manner.ignored_files).unwrap_or(Removed::Unclear) {
                Removed::None | Removed::Wholly => {}
                stays => report(Progress::WorktreeKept(one.name.clone(), stays, worktree.clone())),
            }
        }
        // Remove the member's folder last: it shows a repeated command that the member is not completely stopped.
        host.registry.remove_member(&lead.team, &one.name)?;
        report(Progress::Ended(one.name.clone(), ended.clone()));
        one.ended = Some(ended);
        return Ok(());
    };
    if one.refused.is_none()
        && let Some(request) = &one.request
        && let Some(ShutdownReply::No(why)) = reply(lead, &one.name, request).await?
    {
        one.refused = Some(why.clone());
        if manner.may_refuse {
            let refused = Ended::Refused(why);
            report(Progress::Ended(one.name.clone(), refused.clone()));
            one.ended = Some(refused);
            return Ok(());
        }
        report(Progress::Refuses(one.name.clone(), why));
    }
    let mut cannot_answer = false;
    if one.terminated.is_none()
        && one.request.is_some()
        && !is_late
        && let Some(why) = lost_ability_to_answer(host, lead, &one.name).await?
    {
        cannot_answer = true;
        report(Progress::CannotAnswer(one.name.clone(), why));
    }
    match one.terminated {
        None if one.request.is_none() || is_late || cannot_answer => {
            // Withdraw the member first, so that the supervisor does not restart it.
            host.registry.withdraw_member(&lead.team, &one.name)?;
            send_signal(&process, Signal::TERM);
            one.terminated = Some(Instant::now());
            report(Progress::ToldToEnd(one.name.clone()));
        }
        Some(at) => {
            one.stuck = why_stuck(&process, at);
            if at.elapsed() > GRACE {
                // If the killed process leaves its agent behind, the guard process ends the agent.
                send_signal(&process, Signal::KILL);
            }
        }
        None => {}
    }
    Ok(())
}

/// Returns why a member that was asked to stop can no longer answer, for example because the turn that showed it the
/// request has failed.
async fn lost_ability_to_answer(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    let (process, pulse, judged) = state::liveness(host, lead, name).await?;
    let has_settled = |pulse: &Pulse| lead.clock.now().duration_since(pulse.since) >= FAILED_FOR;
    if process.is_none() || !pulse.as_ref().is_some_and(has_settled) {
        return Ok(None);
    }
    Ok(why_no_answer(pulse.as_ref(), &judged))
}

/// The answer to a shutdown request.
#[derive(Debug, PartialEq, Eq)]
enum ShutdownReply {
    Yes,
    /// The member refused, with this reason.
    No(String),
}

/// Returns the member's answer to a shutdown request. An answer from any other sender is ignored.
async fn reply(
    lead: &Seat,
    member: &MemberName,
    request: &str,
) -> Result<Option<ShutdownReply>, HostError> {
    for mail in mail::inbox(lead, &lead.name, InboxFilter::All).await? {
        let from_member = |message: &Message<'_>| message.from() == member.as_str();
        let reply = with_message(&mail.json, |message| match message.filter(from_member)?.body() {
            Body::Protocol(Protocol::ShutdownApproved(yes)) if yes.request_id == request => {
                Some(ShutdownReply::Yes)
            }
            Body::Protocol(Protocol::ShutdownRejected(no)) if no.request_id == request => {
                let why = no.reason.unwrap_or_else(|| "no reason given".to_owned());
                Some(ShutdownReply::No(why))
            }
            _ => None,
        });
        if let Ok(Some(reply)) = reply {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

/// Removes the data of a stopped member from the store: its roster entry, its ownership of tasks and its notes.
async fn leave_team(host: &Host, lead: &Seat, name: &MemberName) -> Result<(), HostError> {
    host.registry.withdraw_member(&lead.team, name)?;
    let acting = host.acting_seat(lead, name).await?;
    match roster::leave(&acting, name).await {
        Ok(_)
        | Err(
            RosterError::NoMember { .. }
            // The lead's agent has stopped, but the lead stays on the roster.
            | RosterError::LeadStays
            | RosterError::Denied(_)
            | RosterError::Store(StoreError::NoTeam { .. }),
        ) => {}
        Err(error) => return Err(error.into()),
    }
    clear_leftovers(lead).await;
    forget_notes(lead, name).await
}

/// Removes the locks and temporary files that a dead process of a member left in the store. Reading the board does that.
pub(crate) async fn clear_leftovers(seat: &Seat) {
    let _unreadable = board::list(seat).await;
}

/// Removes the notes about a member that has left, so that a later member of this name starts fresh.
async fn forget_notes(seat: &Seat, name: &MemberName) -> Result<(), HostError> {
    seat.store.put_note(&seat.team, name, NoteKind::Memory, None).await?;
    match seat.store.put_note(&seat.team, name, NoteKind::Pulse, None).await {
        // On NATS only the member itself may write its pulse, and the pulse expires.
        Ok(()) | Err(StoreError::Forbidden { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Records that a member was stopped. Claude Code starts its own members again.
fn record_stopped(host: &Host, seat: &Seat, spec: &MemberSpec) -> Result<(), HostError> {
    if host.is_claude_led {
        return Ok(());
    }
    host.registry.record_stopped(&seat.team, spec, seat.clock.now())
}

/// Removes a member from this host after it has left the team. If it has a worktree, keeps its folder, so that
/// `brigade stop` or `brigade down` finds and removes the worktree.
pub async fn remove_left(host: &Host, seat: &Seat, spec: &MemberSpec) -> Result<(), HostError> {
    forget_notes(seat, &spec.name).await?;
    record_stopped(host, seat, spec)?;
    match spec.worktree {
        true => host.registry.withdraw_member(&seat.team, &spec.name),
        false => host.registry.remove_member(&seat.team, &spec.name),
    }
}
