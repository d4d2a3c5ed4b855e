//! Ending members: first they are asked, by the handshake; after a limit they are ended. Nothing is
//! touched that does not hold a seat of this host.

use std::time::Duration;

use brigade_core::handshake::{self, HandshakeError};
use brigade_core::mail::{self, Which, with_message};
use brigade_core::pulse::Liveness;
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::{Shelf, StoreError};
use brigade_wire::body::Body;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::protocol::Protocol;
use rustix::process::Signal;
use tokio::time::Instant;

use crate::error::{HostError, failed};
use crate::process::send_signal;
use crate::progress::{Ended, Progress, Report};
use crate::worktree::{Removed, Worktree};
use crate::{Host, process_lock, state};

/// How often it is looked whether a member has gone.
const LOOK: Duration = Duration::from_millis(100);
/// How long a process has to end when it is told to.
const GRACE: Duration = Duration::from_secs(8);

/// How members are ended.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'m> {
    /// How long they may take to agree; none if they are not asked.
    pub ask: Option<Duration>,
    /// Why, for them to read.
    pub reason: Option<&'m str>,
    /// Whether one that refuses stays.
    pub may_refuse: bool,
}

/// One member on its way out.
struct Going {
    name: MemberName,
    worktree: Option<Worktree>,
    request: Option<String>,
    refused: Option<String>,
    told: Option<Instant>,
    ended: Option<Ended>,
}

/// Ends members, all at the same time.
pub async fn members(
    host: &Host,
    lead: &Seat,
    names: &[MemberName],
    manner: Manner<'_>,
    report: Report<'_>,
) -> Result<Vec<(MemberName, Ended)>, HostError> {
    let began = Instant::now();
    let mut going = Vec::new();
    for name in names {
        let spec = host.registry.member(&lead.team, name)?;
        let mut one = Going {
            name: name.clone(),
            worktree: spec.and_then(|spec| host.worktree(&lead.team, &spec)),
            request: None,
            refused: None,
            told: None,
            ended: None,
        };
        let ours = host.acting(lead, name).await?.name == lead.name;
        // Who plays it without an agent has nobody to ask.
        let (process, _, judged) = state::liveness(host, lead, name).await?;
        let can_answer = process.is_some() && judged.liveness != Liveness::Dead;
        if let Some(limit) = manner.ask.filter(|_| ours && can_answer) {
            match handshake::request_shutdown(lead, name.as_str(), manner.reason).await {
                Ok(asked) => {
                    one.request = Some(asked.request_id);
                    report(Progress::AskedToStop(name.clone(), limit));
                }
                // It is on its way in or out; it is told.
                Err(HandshakeError::Send(_)) => {}
                Err(error) => return Err(HostError::failed(error)),
            }
        }
        going.push(one);
    }
    let limit = manner.ask.unwrap_or_default();
    loop {
        for one in going.iter_mut().filter(|one| one.ended.is_none()) {
            step(host, lead, one, manner, began.elapsed() >= limit, report).await?;
        }
        if going.iter().all(|one| one.ended.is_some()) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(going.into_iter().filter_map(|one| Some((one.name, one.ended?))).collect())
}

/// Ends who plays these members, and asks nobody: where their team lives cannot be reached. What is known of them
/// there stays.
pub async fn kill(
    host: &Host,
    team: &TeamName,
    names: &[MemberName],
    report: Report<'_>,
) -> Result<(), HostError> {
    let look = |name: &MemberName| {
        let plays = process_lock::holder(&host.registry.seat(team, name));
        plays.map_err(|source| failed("look who plays it", source))
    };
    for name in names {
        host.registry.withdraw_member(team, name)?;
        if let Some(process) = look(name)? {
            send_signal(&process, Signal::TERM);
            report(Progress::ToldToEnd(name.clone()));
        }
    }
    let began = Instant::now();
    for name in names {
        while let Some(process) = look(name)? {
            if began.elapsed() > GRACE {
                send_signal(&process, Signal::KILL);
            }
            tokio::time::sleep(LOOK).await;
        }
        report(Progress::Ended(name.clone(), Ended::Forced));
    }
    Ok(())
}

async fn step(
    host: &Host,
    lead: &Seat,
    one: &mut Going,
    manner: Manner<'_>,
    is_late: bool,
    report: Report<'_>,
) -> Result<(), HostError> {
    let Some(process) = plays(host, lead, &one.name)? else {
        let on_roster = lead.of(one.name.clone()).role().await;
        let on_roster = matches!(on_roster, Ok(Some(_)));
        let ended = match (one.told, &one.request) {
            (Some(_), _) => Ended::Forced,
            (None, Some(_)) if !on_roster => Ended::Agreed,
            // Claude Code may have written an old roster back, with who has just left on it.
            (None, Some(request)) if reply(lead, request).await? == Some(Reply::Yes) => {
                Ended::Agreed
            }
            // Between two lives: it is not to have another.
            (None, _) => Ended::WasGone,
        };
        clear_up(host, lead, &one.name).await?;
        if let Some(worktree) = &one.worktree {
            // A repository that git cannot look at keeps nobody here.
            match worktree.remove().unwrap_or(Removed::Unclear) {
                Removed::None | Removed::Wholly => {}
                stays => report(Progress::WorktreeKept(one.name.clone(), stays, worktree.clone())),
            }
        }
        report(Progress::Ended(one.name.clone(), ended.clone()));
        one.ended = Some(ended);
        return Ok(());
    };
    if one.refused.is_none()
        && let Some(request) = &one.request
        && let Some(Reply::No(why)) = reply(lead, request).await?
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
    match one.told {
        None if one.request.is_none() || is_late => {
            // First nobody is to start it again.
            host.registry.withdraw_member(&lead.team, &one.name)?;
            send_signal(&process, Signal::TERM);
            one.told = Some(Instant::now());
            report(Progress::ToldToEnd(one.name.clone()));
        }
        // Its guard ends what it leaves behind.
        Some(at) if at.elapsed() > GRACE => send_signal(&process, Signal::KILL),
        _ => {}
    }
    Ok(())
}

fn plays(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
) -> Result<Option<brigade_core::pulse::Process>, HostError> {
    let plays = process_lock::holder(&host.registry.seat(&lead.team, name));
    plays.map_err(|source| failed("look who plays it", source))
}

/// What was said to a request to stop.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes,
    /// And why.
    No(String),
}

async fn reply(lead: &Seat, request: &str) -> Result<Option<Reply>, HostError> {
    for mail in mail::inbox(lead, &lead.name, Which::All).await? {
        let said = with_message(&mail.json, |message| match message?.body() {
            Body::Protocol(Protocol::ShutdownApproved(yes)) if yes.request_id == request => {
                Some(Reply::Yes)
            }
            Body::Protocol(Protocol::ShutdownRejected(no)) if no.request_id == request => {
                let why = no.reason.unwrap_or_else(|| "it does not say why".to_owned());
                Some(Reply::No(why))
            }
            _ => None,
        });
        if let Ok(Some(said)) = said {
            return Ok(Some(said));
        }
    }
    Ok(None)
}

/// Nothing of a member that has gone stays: no entry, no task of its, no note.
async fn clear_up(host: &Host, lead: &Seat, name: &MemberName) -> Result<(), HostError> {
    host.registry.withdraw_member(&lead.team, name)?;
    let acting = host.acting(lead, name).await?;
    match roster::leave(&acting, name).await {
        Ok(_)
        | Err(
            RosterError::NoMember { .. }
            // An agent that led no longer does; the seat stays.
            | RosterError::LeadStays
            | RosterError::Denied(_)
            | RosterError::Store(StoreError::NoTeam { .. }),
        ) => {}
        Err(error) => return Err(error.into()),
    }
    for shelf in [Shelf::Memory, Shelf::Pulse] {
        lead.store.keep(&lead.team, name, shelf, None).await?;
    }
    host.registry.remove_member(&lead.team, name)
}
