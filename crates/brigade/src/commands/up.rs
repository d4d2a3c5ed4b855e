//! `brigade up`

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_core::text;
use brigade_wire::name::MemberName;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::time::Instant;

use brigade_host::up as host_up;
use brigade_host::{down, team_file};

use super::check;
use crate::cli::Up;
use crate::context::Context;
use crate::error::{CliError, CliTrouble, Trouble};
use crate::output::{self, FAINT, STRONG};
use crate::{exit, progress};
use brigade_host::history_text::LogFormatter;
use brigade_host::spec::{Place, TeamSpec};
use brigade_host::state::TeamState;
use brigade_host::{Host, state, wait};

/// How often to read the board again even if the watch reports nothing.
const LOOK: Duration = Duration::from_secs(1);
/// How long all members must be idle before a note reports it.
const IDLE_NOTE_DELAY: Duration = Duration::from_secs(60);
/// After this long without an event, all earlier events have arrived.
const REST: Duration = Duration::from_millis(200);

pub(crate) async fn run(context: &Context, up: &Up) -> Result<u8, CliError> {
    let began = context.clock.now();
    let end = up.limit.map(|limit| Instant::now() + Duration::from_secs(limit));
    let file = up.file.clone().map_or_else(check::found, Ok)?;
    let spec = team_file::read(&file)?;
    let lead = context.seat_of(spec.team.clone(), MemberName::lead());
    let host = context.host()?;
    let brought = host_up::up(&host, &lead, &spec, &progress::print).await?;
    for (name, difference) in &brought.differs {
        output::note(&format!(
            "{name} still runs with its old settings ({difference}); \
             restart it with `brigade stop {name}` and `brigade up`"
        ));
    }
    host.supervised().await?;
    let names: Vec<MemberName> =
        spec.members.iter().chain(&spec.lead).map(|member| member.name.clone()).collect();
    let there = wait::until_ready(&host, &lead, &names, &progress::print);
    let there = async {
        match end {
            // The timeout is reported below.
            Some(end) => {
                tokio::time::timeout_at(end, there).await.unwrap_or_else(|_| Ok(Vec::new()))
            }
            None => there.await,
        }
    };
    let dead = tokio::select! {
        dead = there => dead?,
        told = brigade_host::signals::stop_signal() => {
            told?;
            output::note(&format!(
                "team {} is still starting; `brigade status` shows its progress, `brigade down` stops it",
                spec.team
            ));
            return Ok(exit::FAILED);
        }
    };
    if host.may_lead {
        host_up::give(&lead, &spec.tasks).await?;
    }
    if up.until_done {
        return until_done(context, &host, &lead, began, end).await;
    }
    if context.json {
        output::print_json(&json!({
            "team": spec.team,
            "new": brought.new,
            "tasks": brought.tasks,
            "dead": dead.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }))?;
    } else {
        output::print(&said(&host, &spec, brought.new.len(), brought.tasks))?;
        if let (Some(first), true) =
            (spec.members.first(), dead.is_empty() && !brought.new.is_empty())
        {
            output::hint(&format!(
                "assign work with `brigade task add \"…\" --owner {}`, watch with `brigade ui`, \
                 stop with `brigade down`",
                first.name
            ));
        }
    }
    match dead.as_slice() {
        [] => Ok(exit::DONE),
        dead => {
            let names: Vec<String> = dead.iter().map(|(name, _)| name.to_string()).collect();
            let error = CliError::failed(Trouble::DidNotStart { names });
            Err(error.hint("`brigade status` shows the reason; `brigade up` tries again"))
        }
    }
}

fn said(host: &Host, spec: &TeamSpec, new: usize, tasks: usize) -> String {
    let team = &spec.team;
    let mut said = match (new, tasks) {
        (0, 0) => format!("team {STRONG}{team}{STRONG:#} is already up; no changes\n"),
        _ => {
            let (new, tasks) = (text::count(new, "new member"), text::count(tasks, "new task"));
            format!("team {STRONG}{team}{STRONG:#} is up: {new}, {tasks}\n")
        }
    };
    let in_tmux = spec.members.iter().any(|member| member.place != Place::Headless);
    if in_tmux {
        let attach = host.tmux().attach(team.as_str());
        said.push_str(&format!("{FAINT}windows: {attach}{FAINT:#}\n"));
    }
    said
}

/// Waits until every task is done, then takes the team down.
async fn until_done(
    context: &Context,
    host: &Host,
    lead: &Seat,
    since: Timestamp,
    end: Option<Instant>,
) -> Result<u8, CliError> {
    let mut watch = lead.store.watch(&lead.team).await?;
    let mut story = LogFormatter::new(TimeZone::system());
    let history = lead.store.history(&lead.team).await?;
    // Prime the formatter with older records; print only newer ones.
    let (before, since): (Vec<_>, Vec<_>) =
        history.into_iter().partition(|record| record.at < since);
    let _told = story.tell(&before, None);
    let mut told = HashSet::new();
    for record in &since {
        told.insert(serde_json::to_vec(record).unwrap_or_default());
        show(context, &mut story, record)?;
    }
    let mut told_to_end = std::pin::pin!(brigade_host::signals::stop_signal());
    let mut rest = IdleDetector::default();
    let trouble = loop {
        let state = state::team(host, lead).await?;
        if state.tasks.done == state.tasks.total {
            break None;
        }
        host.supervised().await?;
        let left = state.tasks.total - state.tasks.done;
        let alive = state.members.iter().any(|member| {
            let is_played = member.pid.is_some();
            !state::is_lost(host, lead, &member.name, is_played, member.judged.liveness)
        });
        if !alive {
            break Some(CliTrouble::NobodyLeft { left });
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            break Some(CliTrouble::NotDone { left });
        }
        if let Some(words) = rest.look(&state, left) {
            output::note(&words);
        }
        let until = Instant::now() + LOOK;
        loop {
            let record = tokio::select! {
                told = &mut told_to_end => {
                    told?;
                    // An interrupt stops the team as well.
                    let ended = down::take_down(host, lead, down::STOP_AFTER_WORK, &progress::print).await;
                    ended?;
                    return Ok(exit::FAILED);
                }
                record = tokio::time::timeout_at(until, watch.next()) => record,
            };
            let Ok(Some(record)) = record else { break };
            show_once(context, &mut story, &mut told, &record)?;
        }
    };
    let mut end = Instant::now() + REST;
    while let Ok(Some(record)) = tokio::time::timeout_at(end, watch.next()).await {
        // Members may keep working for long, so their work events do not extend the wait.
        if !matches!(record.event, Event::Worked { .. }) {
            end = Instant::now() + REST;
        }
        show_once(context, &mut story, &mut told, &record)?;
    }
    let state = state::team(host, lead).await?;
    down::take_down(host, lead, down::STOP_AFTER_WORK, &progress::print).await?;
    if context.json {
        output::print_json(&json!({ "done": trouble.is_none(), "tasks": state.tasks }))?;
    }
    match trouble {
        None => Ok(exit::DONE),
        Some(trouble) => Err(CliError::failed(trouble)),
    }
}

/// Detects that all members have been idle for a while, which may never change by itself. Notes it once each time.
#[derive(Default)]
struct IdleDetector {
    since: Option<Instant>,
    told: bool,
}

impl IdleDetector {
    fn look(&mut self, state: &TeamState, left: usize) -> Option<String> {
        let rests =
            |liveness| matches!(liveness, Liveness::Idle | Liveness::Waiting | Liveness::Dead);
        if !state.members.iter().all(|member| rests(member.judged.liveness)) {
            *self = Self::default();
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.told || since.elapsed() < IDLE_NOTE_DELAY {
            return None;
        }
        self.told = true;
        let left = text::count(left, "task");
        let why = match state.approvals {
            0 => format!(
                "ask a member to continue with `brigade send NAME \"…\" --team {}`",
                state.team
            ),
            asked => {
                format!(
                    "{asked} requests wait for your answer: `brigade approvals --team {}`",
                    state.team
                )
            }
        };
        Some(format!("all members are idle with {left} unfinished; {why}; Ctrl-C stops the team"))
    }
}

/// Prints a record from the watch, unless it was already printed from the history: the watch started first, so the
/// two overlap.
fn show_once(
    context: &Context,
    story: &mut LogFormatter,
    told: &mut HashSet<Vec<u8>>,
    record: &Record,
) -> Result<(), CliError> {
    if told.remove(&serde_json::to_vec(record).unwrap_or_default()) {
        return Ok(());
    }
    show(context, story, record)
}

fn show(context: &Context, story: &mut LogFormatter, record: &Record) -> Result<(), CliError> {
    if context.json {
        output::print_json(record)?;
    } else {
        output::print(&story.go_on(record, output::width()))?;
    }
    Ok(())
}
