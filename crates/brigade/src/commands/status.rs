//! `brigade status`

pub(crate) mod local;
mod metrics;

use brigade_core::clock::Timestamp;
use brigade_core::text::one_line;
use brigade_wire::name::{MemberName, TeamName};

use crate::context::CliContext;
use crate::error::CliError;
use crate::output::{self, BUSY, Cell, FAINT, STRONG, Table};
use crate::{exit, progress};
use brigade_host::Host;
use brigade_host::claude_session::ClaudeSession;
use brigade_host::down::{no_team_hint, teams_to_show};
use brigade_host::link_registry;
use brigade_host::spec::MemberPlace;
use brigade_host::state::{self, TeamState};
use brigade_host::worktree::BranchDistance;

pub(crate) async fn run(context: &CliContext, only_metrics: bool) -> Result<u8, CliError> {
    if only_metrics {
        return metrics::run(context).await;
    }
    let host = context.host()?;
    let teams = teams_to_show(context, &host).await?;
    let mut states = Vec::new();
    let mut failure = None;
    for team in teams {
        let lead = context.seat_of(team.clone(), MemberName::lead());
        match state::team(&host, &lead).await {
            Ok(state) => states.push(state),
            // The error is printed after the other teams.
            Err(error) if context.team_exists(&team).await? => failure = Some(error),
            Err(error) => {
                output::note(&format!("team {team}: {error}; run `brigade resume {team}`"));
            }
        }
    }
    if context.json {
        output::print_json(&states)?;
    } else {
        let now = context.clock.now();
        let mut texts: Vec<String> = states.iter().map(|state| render(&host, state, now)).collect();
        let links = link_registry::list(&context.files_host()?.registry)?;
        if !links.is_empty() {
            texts.push(super::link::table(&links));
        }
        output::print(&texts.join("\n"))?;
        if context.location().nats().is_some() {
            let teams = states.iter().map(|state| state.team.clone()).collect();
            output::print(&metrics::render(&metrics::StatusMetrics::read(context, teams).await?))?;
        }
    }
    if let Some(error) = failure {
        return Err(error.hint("`brigade doctor` searches for the cause"));
    }
    if states.is_empty() {
        let others = host.registry.teams()?;
        let names: Vec<&str> = others.iter().map(TeamName::as_str).collect();
        if !context.json && !others.is_empty() {
            output::print("the team of this folder's brigade.toml is not running on this host\n")?;
            output::hint("`brigade up` starts it");
            output::hint(&format!(
                "other teams run here: {}; `brigade status --team {}` shows one",
                names.join(", "),
                names.first().unwrap_or(&"TEAM")
            ));
        } else if !context.json {
            output::print("no team is running on this host\n")?;
            output::hint(&hint(context, &host).await?);
        }
        return Ok(exit::NOTHING);
    }
    Ok(exit::DONE)
}

/// Returns the hint to print if no team runs on this host.
async fn hint(context: &CliContext, host: &Host) -> Result<String, CliError> {
    let stored = context.teams().await?;
    Ok(match stored.as_slice() {
        [] => no_team_hint(context, host),
        teams => {
            let names: Vec<&str> = teams.iter().map(TeamName::as_str).collect();
            let (were, it) = if names.len() == 1 { ("was", "it") } else { ("were", "them") };
            format!(
                "{} {were} not started on this host; `brigade` and `brigade ui` show {it}",
                names.join(", ")
            )
        }
    })
}

/// Lists a member's tasks: those in progress, and those that were not started.
fn task_ids(in_progress: &[u64], assigned: &[u64]) -> String {
    let list = |mark: &str, ids: &[u64]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        (!ids.is_empty()).then(|| format!("{mark} {}", ids.join(",")))
    };
    let lists = [list("◐", in_progress), list("○", assigned)];
    lists.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Describes the Claude Code session that leads a team.
fn lead_line(state: &TeamState, now: Timestamp) -> String {
    let Some(session) = &state.lead_session else {
        let how =
            state.last_session.as_ref().map(|id| format!("; `claude --resume {id}` continues"));
        return format!(
            "Claude Code leads; no running session was found{}",
            how.unwrap_or_default()
        );
    };
    let ClaudeSession { pid, cwd, status, waiting_for, started_at, .. } = session;
    let began = i64::try_from(*started_at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let age = began.map_or(0, |began| now.duration_since(began).as_secs());
    let age = output::duration(age);
    let status = if status.is_empty() { "running" } else { status };
    let waits = waiting_for.as_ref().map(|what| format!(" for {what}")).unwrap_or_default();
    one_line(&format!("Claude Code leads: {status}{waits}, in {cwd}, for {age} (process {pid})"))
}

fn render(host: &Host, state: &TeamState, now: Timestamp) -> String {
    let TeamState { team, supervisor, tasks, approvals, unread, .. } = state;
    let mut text = match state.is_ended {
        true => format!("{STRONG}{team}{STRONG:#}  Claude Code's session has ended"),
        false => format!("{STRONG}{team}{STRONG:#}  {} of {} tasks done", tasks.done, tasks.total),
    };
    if tasks.in_progress > 0 {
        text.push_str(&format!(", {} in progress", tasks.in_progress));
    }
    if tasks.unreadable > 0 {
        let unreadable = tasks.unreadable;
        text.push_str(&format!("  {BUSY}{unreadable} unreadable (run `brigade doctor`){BUSY:#}"));
    }
    if let Some(approvals) = approvals.filter(|count| *count > 0) {
        text.push_str(&format!("  {BUSY}{approvals} waiting for approval{BUSY:#}"));
    }
    if let Some(unread) = unread.filter(|count| *count > 0) {
        text.push_str(&format!("  {BUSY}{unread} unread for team-lead{BUSY:#}"));
    }
    text.push('\n');
    if state.is_claude_led && !state.is_ended {
        let line = lead_line(state, now);
        text.push_str(&format!("  {FAINT}{line}{FAINT:#}\n"));
    }
    for error in &state.errors {
        text.push_str(&format!("  {BUSY}{}{BUSY:#}\n", one_line(error)));
    }
    let mut table = Table::new(&["NAME", "AGENT", "STATE", "TASKS", "UNREAD", "TOKENS", "DETAILS"]);
    for member in &state.members {
        let (read, wrote) = member.tokens;
        let tokens = if read + wrote == 0 { String::new() } else { format!("{read}/{wrote}") };
        let unread = match member.unread {
            Some(0) => String::new(),
            Some(unread) => unread.to_string(),
            None => "?".to_owned(),
        };
        let judged = &member.judged;
        table.row([
            Cell::new(STRONG, member.name.as_str()),
            member.agent.as_str().into(),
            Cell::new(progress::style(judged.liveness), judged.liveness.label()),
            task_ids(&member.tasks, &member.assigned).into(),
            unread.into(),
            tokens.into(),
            Cell::new(FAINT, &judged.evidence),
        ]);
    }
    text.push_str(&table.render("  ", output::width()));
    for member in &state.members {
        if let Some(BranchDistance { branch, ahead, behind, changed }) = &member.worktree {
            text.push_str(&format!(
                "  {FAINT}{branch}: {ahead} ahead, {behind} behind, {changed} files uncommitted{FAINT:#}\n"
            ));
        }
    }
    if state.members.is_empty() && state.unplayed.is_empty() && !state.is_claude_led {
        text.push_str(&format!(
            "  {FAINT}no members; `brigade up` starts those of brigade.toml, `brigade down {team}` deletes the \
             team{FAINT:#}\n"
        ));
    }
    if !state.unplayed.is_empty() {
        let names: Vec<&str> = state.unplayed.iter().map(MemberName::as_str).collect();
        text.push_str(&format!("  {FAINT}not running: {}{FAINT:#}\n", names.join(", ")));
    }
    let is_ours = |place: MemberPlace| place != MemberPlace::Pane;
    let is_here = state.members.iter().any(|member| member.place.is_some_and(is_ours));
    if supervisor.is_none() && (is_here || !(host.is_shared || state.is_claude_led)) {
        text.push_str(&format!(
            "  {BUSY}The supervisor is not running. Start it with `brigade resume`{BUSY:#}\n"
        ));
    }
    let has_window = |place| matches!(place, MemberPlace::Tmux | MemberPlace::Native);
    if state.members.iter().any(|member| member.place.is_some_and(has_window)) {
        let attach = host.tmux_of_team(team).attach(team.as_str());
        text.push_str(&format!("  {FAINT}windows: {attach}{FAINT:#}\n"));
    }
    text
}
