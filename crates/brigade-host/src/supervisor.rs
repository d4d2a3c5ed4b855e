//! The supervising process of a host: it starts the members that are to be there and are not, and holds
//! the lead's seat where nobody else does.
//!
//! It keeps nothing in mind that is not written down. Members do not depend on it: they go on when it
//! dies, and the next one finds them by the seats they hold.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade_core::approvals::Approval;
use brigade_core::board;
use brigade_core::event::Event;
use brigade_core::mail::{self, Words};
use brigade_core::roster::{self, Activity, MemberPlan, RosterError};
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, NameError, TeamName};
use rustix::process::setsid;
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::context::Context;
use crate::error::{HostError, failed};
use crate::policy_answers::{Attention, Requests};
use crate::progress::Log;
use crate::restarts::{Restarts, Step};
use crate::spec::{MemberSpec, Place};
use crate::{Host, policy_answers, process_lock, signals, start};

/// How often it is looked though nothing was heard.
const LOOK: Duration = Duration::from_millis(500);
/// How long it stays when no team is up.
const LINGER: Duration = Duration::from_secs(3);

/// A team in its charge.
struct Charge {
    /// The lead's.
    seat: Seat,
    members: HashMap<MemberName, Care>,
    /// Whether somebody asked the lead for something that a rule may answer, and that was not looked at.
    asked: Arc<AtomicBool>,
    attention: Attention,
    /// Wakes us when something happens in the team.
    watching: JoinHandle<()>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// What is done for one member.
#[derive(Default)]
struct Care {
    restarts: Restarts,
    child: Option<Child>,
    /// What was last said of it in the log.
    said: String,
}

struct Supervisor<'c> {
    context: &'c Context,
    log: Log<'c>,
    host: Host,
    teams: HashMap<TeamName, Charge>,
    began: Instant,
    woken: Arc<Notify>,
}

/// Supervises until no team is up, or until told to end. Another supervisor in our place is fine.
pub async fn run(context: &Context, log: Log<'_>) -> Result<(), HostError> {
    let host = context.host()?;
    let place = process_lock::take(&host.registry.supervisor()?).await;
    let Some(_place) = place.map_err(|source| failed("take the supervisor's place", source))?
    else {
        return Ok(());
    };
    // Fails only if we lead a session already, and then that is the one.
    let _leads = setsid();
    let woken = Arc::new(Notify::new());
    let teams = HashMap::new();
    let mut supervisor = Supervisor { context, log, host, teams, began: Instant::now(), woken };
    supervisor.go_on().await?;
    supervisor.host.registry.remove_if_empty()?;
    Ok(())
}

impl Supervisor<'_> {
    async fn go_on(&mut self) -> Result<(), HostError> {
        let mut told = std::pin::pin!(signals::stop_signal());
        let mut last_up = Instant::now();
        loop {
            // An engine that is away may keep it looking for minutes.
            let is_up = tokio::select! {
                told = &mut told => return told.map(drop),
                is_up = self.look() => is_up?,
            };
            if is_up {
                last_up = Instant::now();
            } else if last_up.elapsed() > LINGER {
                return Ok(());
            }
            tokio::select! {
                told = &mut told => return told.map(drop),
                () = tokio::time::sleep(LOOK) => {}
                () = self.woken.notified() => {}
            }
        }
    }

    /// Looks after every team that is up; whether there is one.
    async fn look(&mut self) -> Result<bool, HostError> {
        let up = self.host.registry.teams()?;
        self.teams.retain(|team, _| up.contains(team));
        for team in &up {
            if let Err(error) = self.look_after(team).await {
                (self.log)(&format!("team {team}: {error}"));
            }
        }
        Ok(!up.is_empty())
    }

    async fn look_after(&mut self, team: &TeamName) -> Result<(), HostError> {
        // A team whose folder is gone waits for `brigade resume`.
        if self.context.store.team(team).await?.is_none() {
            self.teams.remove(team);
            // One that nobody here was left on was deleted, and is over.
            if self.host.registry.members(team)?.is_empty() {
                self.host.registry.remove_team(team)?;
            }
            return Ok(());
        }
        if !self.teams.contains_key(team) {
            let charge = self.take_charge(team).await?;
            self.teams.insert(team.clone(), charge);
        }
        let Some(charge) = self.teams.get_mut(team) else { return Ok(()) };
        let now = self.began.elapsed();
        let asked = charge.asked.swap(false, Ordering::Relaxed);
        if charge.attention.is_due(asked, now) {
            match policy_answers::duties(&self.host, &charge.seat, self.log).await {
                Ok(Requests::Wait) => charge.attention.renew(now),
                Ok(Requests::None) => {}
                Err(error) => {
                    charge.asked.store(true, Ordering::Relaxed);
                    (self.log)(&format!("team {team}: {error}"));
                }
            }
        }
        let members = self.host.registry.members(team)?;
        charge.members.retain(|name, _| members.contains(name));
        for name in members {
            let care = charge.members.entry(name.clone()).or_default();
            let said = match look_after_member(&self.host, &charge.seat, &name, care, now, self.log)
                .await
            {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            };
            if !said.is_empty() && said != care.said {
                (self.log)(&format!("{name} of team {team}: {said}"));
            }
            care.said = said;
        }
        Ok(())
    }

    async fn take_charge(&self, team: &TeamName) -> Result<Charge, HostError> {
        let seat = self.context.seat_of(team.clone(), MemberName::lead());
        let mut watch = seat.store.watch_proceedings(team).await?;
        let woken = Arc::clone(&self.woken);
        // What came while nobody was in charge counts as new.
        let asked = Arc::new(AtomicBool::new(true));
        let (lead, has_asked) = (seat.name.clone(), Arc::clone(&asked));
        let watching = tokio::spawn(async move {
            while let Some(record) = watch.next_shared().await {
                // What a member does at its work is nothing to look after.
                if matches!(record.event, Event::Worked { .. }) {
                    continue;
                }
                if record.event.mailbox() == Some(lead.as_str())
                    && Approval::told(&record, 0).is_some()
                {
                    has_asked.store(true, Ordering::Relaxed);
                }
                woken.notify_one();
            }
        });
        let attention = Attention::default();
        Ok(Charge { seat, members: HashMap::new(), asked, attention, watching })
    }
}

async fn look_after_member(
    host: &Host,
    seat: &Seat,
    name: &MemberName,
    care: &mut Care,
    now: Duration,
    log: Log<'_>,
) -> Result<(), HostError> {
    let (folder, team) = (&host.registry, &seat.team);
    let Some(spec) = folder.member(team, name)? else { return Ok(()) };
    // A log that cannot be shortened now is shortened later.
    let _untidy = start::shorten(&folder.log(team, name));
    let plays = process_lock::holder(&folder.seat(team, name));
    let plays = plays.map_err(|source| failed("look who plays it", source))?;
    if let Some(child) = &mut care.child
        && let Ok(Some(_)) = child.try_wait()
    {
        care.child = None;
        care.restarts.ended(now);
    }
    if plays.is_none() && !on_roster(host, seat, &spec).await? {
        // It has left, and so it is not to be any more.
        return folder.remove_member(team, name);
    }
    let given_up = folder.trouble(team, name).is_some();
    match given_up {
        // Somebody wants it tried again.
        false if care.restarts.is_given_up() => care.restarts = Restarts::default(),
        // Whoever supervised before us gave it up.
        true if care.restarts.is_new() && plays.is_none() => care.restarts = Restarts::given_up(),
        true if plays.is_some() => folder.set_trouble(team, name, None)?,
        _ => {}
    }
    match care.restarts.look(plays.is_some(), spec.restart, now) {
        Step::Rest => Ok(()),
        Step::Start => {
            log(&format!("{name} of team {team}: started"));
            let started = start::member(&host.self_command, folder, team, &spec);
            care.child = started.map_err(|source| failed("start it", source))?;
            Ok(())
        }
        Step::GiveUp => {
            log(&format!("{name} of team {team}: given up"));
            folder.set_trouble(team, name, Some(&last_words(host, seat, &spec)))?;
            let acting = host.acting(seat, name).await?;
            board::release(&acting, name).await?;
            roster::set_activity(&acting, name, Activity::Idle).await?;
            Ok(())
        }
    }
}

/// Sees to it that the member is on the roster and has been told what it is for; false if it was, and
/// has left.
async fn on_roster(host: &Host, seat: &Seat, spec: &MemberSpec) -> Result<bool, HostError> {
    let there = seat.of(spec.name.clone()).role().await?.is_some();
    let acting = host.acting(seat, &spec.name).await?;
    if host.registry.has_joined(&seat.team, &spec.name) {
        return Ok(there);
    }
    if !there {
        let member = MemberPlan {
            agent_type: &spec.agent,
            model: spec.model.as_deref().unwrap_or("unknown"),
            prompt: spec.prompt.as_deref().unwrap_or_default(),
            cwd: &spec.cwd.to_string_lossy(),
            backend_type: backend(spec.place),
        };
        match roster::join(&acting, &spec.name, member).await {
            Ok(_) | Err(RosterError::Name(NameError::Taken { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if acting.name == seat.name {
        // Before the first word to it is said, so that this one is signed as well.
        let key = host.registry.keys(&seat.team).of(&spec.name, seat.clock.as_ref());
        key.map_err(HostError::failed)?;
    }
    // Where Claude Code leads, the prompt is its user's words, and comes with the first turn.
    if let Some(prompt) = &spec.prompt
        && acting.name == seat.name
    {
        let words = Words { text: prompt, summary: None };
        mail::send_once(seat, &spec.name, "prompt", words).await?;
    }
    host.registry.set_joined(&seat.team, &spec.name)?;
    Ok(true)
}

/// Where a member runs, in the wire's words.
fn backend(place: Place) -> &'static str {
    match place {
        Place::Headless => "process",
        Place::Tmux | Place::Native => "tmux",
    }
}

fn last_words(host: &Host, seat: &Seat, spec: &MemberSpec) -> String {
    let log = std::fs::read_to_string(host.registry.log(&seat.team, &spec.name));
    let log = log.unwrap_or_default();
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("its process ended again and again; it said last: {line}"),
        None => "its process ended again and again".to_owned(),
    }
}
