//! `brigade up`

use std::time::Duration;

use brigade_core::board;
use brigade_core::event::Event;
use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_core::store::event_log::RecordBatch;
use brigade_core::text;
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::time::Instant;

use brigade_host::down;
use brigade_host::up::{self as host_up, OtherOwner, UpResult};

use super::down::note_lost_tasks;
use super::steer::first_failure;
use super::{check, differences, spawn};
use crate::cli::UpArgs;
use crate::context::{CliContext, trust};
use crate::error::{CliError, CliTrouble, Trouble};
use crate::output::{self, FAINT, STRONG};
use crate::{exit, login, progress};
use brigade_host::history_text::LogFormatter;
use brigade_host::spec::{MemberPlace, MemberSpec, TeamSpec};
use brigade_host::state::TeamState;
use brigade_host::{Host, state, wait};

/// How often to read the team's state again even if there are no events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long all members must be idle before brigade prints a note about it.
const IDLE_NOTE_DELAY: Duration = Duration::from_secs(60);
/// How many times in a row a task must be unreadable before it counts as damaged. Another program may be writing it.
const DAMAGED_POLLS: u32 = 3;
/// After this time without a new event, assume that all earlier events have arrived.
const QUIET_TIME: Duration = Duration::from_millis(200);

/// Starts the team of the file. `named` is the team that the option `--team` names.
pub(crate) async fn run(
    context: &CliContext,
    up: &UpArgs,
    named: Option<&TeamName>,
) -> Result<u8, CliError> {
    let began = context.clock.now();
    let end = up.limit.map(|limit| Instant::now() + Duration::from_secs(limit));
    let file = up.file.clone().map_or_else(check::found, Ok)?;
    let trusted = trust()?.read(&file)?;
    let spec = trusted.spec();
    if let Some(named) = named.filter(|named| **named != spec.team) {
        let (file, team) = (file.display().to_string(), spec.team.to_string());
        let error = CliTrouble::OtherTeamInFile { file, team, named: named.to_string() };
        return Err(CliError::usage(error).hint("leave out `--team`"));
    }
    host_up::check_recreated(spec, up.recreate.as_deref().unwrap_or_default())?;
    let lead = context.seat_of(spec.team.clone(), MemberName::lead());
    let host = context.host()?;
    if up.until_done && spec.tasks.is_empty() && !has_tasks(&lead).await? {
        let error = CliError::failed(CliTrouble::NoTasks);
        return Err(error.hint(
            "add `[tasks.NAME]` to brigade.toml, or run `brigade up` and add tasks with `brigade task add`",
        ));
    }
    let other_owner = if up.adopt { OtherOwner::Adopt } else { OtherOwner::Refuse };
    let result =
        host_up::up(context, &host, &lead, &trusted, other_owner, &progress::print).await?;
    super::warn_about_changes(context);
    let changed = differences::apply(context, &lead, spec, &result.differences, up).await;
    let is_new = |member: &&MemberSpec| result.new.contains(&member.name);
    spawn::note_environment(&host, spec.members.iter().chain(&spec.lead).filter(is_new))?;
    host.ensure_supervisor().await?;
    let names = spec.members.iter().chain(&spec.lead).map(|member| member.name.clone());
    let names: Vec<MemberName> = names.filter(|name| !result.elsewhere.contains(name)).collect();
    let ready = wait::until_ready(&host, &lead, &names, &progress::print);
    let ready = async {
        match end {
            // If the time is up, continue: `until_done` reports the timeout.
            Some(end) => {
                tokio::time::timeout_at(end, ready).await.unwrap_or_else(|_| Ok(Vec::new()))
            }
            None => ready.await,
        }
    };
    let is_new = |member: &&MemberSpec| result.new.contains(&member.name);
    let new = spec.members.iter().chain(&spec.lead).filter(is_new);
    let ready = async { tokio::join!(ready, login::check_members(new)) };
    let dead = tokio::select! {
        (dead, logins) = ready => {
            login::warn_logged_out(&logins);
            dead?
        }
        stopped = brigade_host::signals::stop_signal() => {
            stopped?;
            if up.until_done {
                return stop_interrupted(&host, &lead).await;
            }
            output::note(&format!(
                "team {} is still starting; `brigade status` shows its progress, `brigade down` stops it",
                spec.team
            ));
            return Ok(exit::INTERRUPTED);
        }
    };
    let mut assigned = result.assigned;
    // If the time is up, some owners may not have joined yet.
    let is_late = end.is_some_and(|end| end <= Instant::now());
    if host.may_lead && !is_late {
        assigned += host_up::assign_tasks(&lead, &spec.tasks, |_| true).await?;
    }
    let has_new = !result.new.is_empty();
    if up.until_done {
        return until_done(context, &host, &lead, began, end).await;
    }
    if context.json {
        output::print_json(&json!({
            "team": spec.team,
            "new": result.new,
            "tasks": result.tasks,
            "assigned": assigned,
            "dead": dead.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "not_in_file": result.differences.removed,
            "changes": result.differences,
            "recreated": changed.recreated,
            "removed": changed.removed,
        }))?;
    } else {
        let is_unchanged = changed.tried == 0;
        output::print(&summary(&host, spec, &UpResult { assigned, ..result }, is_unchanged))?;
        if let (Some(first), true) = (spec.members.first(), dead.is_empty() && has_new) {
            output::hint(&format!(
                "assign work with `brigade task add \"…\" --owner {}`, watch with `brigade ui`, \
                 stop with `brigade down`",
                first.name
            ));
        }
    }
    match dead.as_slice() {
        [] => first_failure(changed.failures, changed.tried, exit::DONE),
        dead => {
            let names: Vec<String> = dead.iter().map(|(name, _)| name.to_string()).collect();
            let error = CliError::failed(Trouble::DidNotStart { names });
            Err(error.hint("`brigade status` shows the reason; `brigade up` tries again"))
        }
    }
}

fn summary(host: &Host, spec: &TeamSpec, result: &UpResult, is_unchanged: bool) -> String {
    let team = &spec.team;
    let assigned = match result.assigned {
        0 => String::new(),
        assigned => format!(", {} assigned", text::count(assigned, "task")),
    };
    let mut text = match (result.new.len(), result.tasks) {
        (0, 0) if result.assigned == 0 && is_unchanged => {
            format!("team {STRONG}{team}{STRONG:#} is already up; no changes\n")
        }
        (new, tasks) => {
            let (new, tasks) = (text::count(new, "new member"), text::count(tasks, "new task"));
            format!("team {STRONG}{team}{STRONG:#} is up: {new}, {tasks}{assigned}\n")
        }
    };
    let in_tmux = spec.members.iter().any(|member| member.place != MemberPlace::Headless);
    if in_tmux {
        let attach = host.tmux_of_team(team).attach(team.as_str());
        text.push_str(&format!("{FAINT}windows: {attach}{FAINT:#}\n"));
    }
    text
}

/// Returns whether the team exists and has tasks.
async fn has_tasks(lead: &Seat) -> Result<bool, CliError> {
    if lead.find_config().await?.is_none() {
        return Ok(false);
    }
    Ok(!board::list(lead).await?.0.is_empty())
}

/// Takes the team down after the person interrupted `up --until-done`.
async fn stop_interrupted(host: &Host, lead: &Seat) -> Result<u8, CliError> {
    if !down::take_down_interrupted(host, lead, &progress::print).await? {
        let team = &lead.team;
        output::note(&format!(
            "members of team {team} may still be running; `brigade down {team} --now` kills them"
        ));
    }
    Ok(exit::INTERRUPTED)
}

/// Waits until every task is done, then takes the team down.
async fn until_done(
    context: &CliContext,
    host: &Host,
    lead: &Seat,
    since: Timestamp,
    end: Option<Instant>,
) -> Result<u8, CliError> {
    let (mut events, _) = context.event_stream(&lead.team).await?;
    let mut formatter = LogFormatter::new(TimeZone::system());
    while let Some(batch) = events.next().await {
        show(context, &mut formatter, since, &batch)?;
        if batch.caught_up {
            break;
        }
    }
    let mut stop_signal = std::pin::pin!(brigade_host::signals::stop_signal());
    let mut idle = IdleDetector::default();
    let mut damaged_polls = 0;
    let trouble = loop {
        let state = state::team(host, lead).await?;
        damaged_polls = if state.tasks.unreadable > 0 { damaged_polls + 1 } else { 0 };
        if damaged_polls >= DAMAGED_POLLS {
            refuse_damaged_tasks(lead).await?;
        }
        if state.tasks.done == state.tasks.total {
            break None;
        }
        host.ensure_supervisor().await?;
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
        if let Some(note) = idle.note(&state, left) {
            output::note(&note);
        }
        let until = Instant::now() + POLL_INTERVAL;
        loop {
            let batch = tokio::select! {
                stopped = &mut stop_signal => {
                    stopped?;
                    return stop_interrupted(host, lead).await;
                }
                batch = tokio::time::timeout_at(until, events.next()) => batch,
            };
            let Ok(Some(batch)) = batch else { break };
            show(context, &mut formatter, since, &batch)?;
        }
    };
    let mut end = Instant::now() + QUIET_TIME;
    while let Ok(Some(batch)) = tokio::time::timeout_at(end, events.next()).await {
        // Work events do not extend the wait, because members may keep working for a long time.
        if batch.records.iter().any(|(_, record)| !matches!(record.event, Event::Worked { .. })) {
            end = Instant::now() + QUIET_TIME;
        }
        show(context, &mut formatter, since, &batch)?;
    }
    let state = state::team(host, lead).await?;
    refuse_damaged_tasks(lead).await?;
    down::take_down(host, lead, down::STOP_AFTER_WORK, &progress::print).await?;
    if !context.team_exists(&lead.team).await? {
        note_lost_tasks(&lead.team, state.tasks.total - state.tasks.done);
    }
    if context.json {
        output::print_json(&json!({ "done": trouble.is_none(), "tasks": state.tasks }))?;
    }
    match trouble {
        None => Ok(exit::DONE),
        Some(trouble) => Err(CliError::failed(trouble)),
    }
}

/// Fails if the file of a task is damaged. The team keeps running, because taking it down would delete the file.
async fn refuse_damaged_tasks(lead: &Seat) -> Result<(), CliError> {
    let (tasks, _) = board::list(lead).await?;
    host_up::check_readable(&tasks).map_err(|error| {
        error.hint(format!("team {} keeps running; `brigade down` stops it", lead.team))
    })
}

/// Detects that all members have been idle for a while. A person may then have to act. Reports each idle period
/// once.
#[derive(Default)]
struct IdleDetector {
    since: Option<Instant>,
    noted: bool,
}

impl IdleDetector {
    fn note(&mut self, state: &TeamState, left: usize) -> Option<String> {
        let is_idle =
            |liveness| matches!(liveness, Liveness::Idle | Liveness::Waiting | Liveness::Dead);
        if !state.members.iter().all(|member| is_idle(member.judged.liveness)) {
            *self = Self::default();
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.noted || since.elapsed() < IDLE_NOTE_DELAY {
            return None;
        }
        self.noted = true;
        let left = text::count(left, "task");
        let why = match state.approvals {
            None | Some(0) => format!(
                "ask a member to continue with `brigade send NAME \"…\" --team {}`",
                state.team
            ),
            Some(asked) => {
                format!(
                    "waiting for your answer: {}, see `brigade approvals --team {}`",
                    text::count(asked, "request"),
                    state.team
                )
            }
        };
        Some(format!("all members are idle with {left} unfinished; {why}; Ctrl-C stops the team"))
    }
}

/// Prints the records of a batch that are not older than `since`. The formatter also reads the older records,
/// because newer records refer to them.
fn show(
    context: &CliContext,
    formatter: &mut LogFormatter,
    since: Timestamp,
    batch: &RecordBatch,
) -> Result<(), CliError> {
    for (_, record) in &batch.records {
        let text = formatter.format_record(record, output::width());
        match record.at >= since {
            true if context.json => output::print_json(record.as_ref())?,
            true => output::print(&text)?,
            false => {}
        }
    }
    Ok(())
}
