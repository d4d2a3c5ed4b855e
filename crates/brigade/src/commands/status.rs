//! `brigade status`

use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::error::CliError;
use crate::exit;
use crate::host::spec::Place;
use crate::host::state::{self, TeamState};
use crate::host::worktree::Distance;
use crate::host::{Host, wait};
use crate::output::{self, BUSY, Cell, FAINT, STRONG, Table};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let host = context.host()?;
    let teams = match context.named_team() {
        Some(_) => vec![super::down::which(context, &host, None)?],
        None => host.folder.teams()?,
    };
    let mut states = Vec::new();
    for team in teams {
        let lead = context.seat_of(team.clone(), MemberName::lead());
        match state::team(&host, &lead).await {
            Ok(state) => states.push(state),
            Err(error) => output::note(&format!("team {team}: {error}; `brigade resume {team}`")),
        }
    }
    if context.json {
        output::print_json(&states)?;
    } else {
        let told: Vec<String> = states.iter().map(|state| tell(&host, state)).collect();
        output::print(&told.join("\n"))?;
    }
    if states.is_empty() {
        if !context.json {
            output::print("no team is up on this host\n")?;
        }
        return Ok(exit::NOTHING);
    }
    Ok(exit::DONE)
}

fn tell(host: &Host, state: &TeamState) -> String {
    let TeamState { team, supervisor, tasks, approvals, .. } = state;
    let mut said =
        format!("{STRONG}{team}{STRONG:#}  {} of {} tasks done", tasks.done, tasks.total);
    if tasks.in_progress > 0 {
        said.push_str(&format!(", {} under way", tasks.in_progress));
    }
    if *approvals > 0 {
        said.push_str(&format!("  {BUSY}{approvals} waiting for approval{BUSY:#}"));
    }
    said.push('\n');
    let mut table = Table::new(&["NAME", "AGENT", "STATE", "TASKS", "UNREAD", "TOKENS", "BECAUSE"]);
    for member in &state.members {
        let tasks: Vec<String> = member.tasks.iter().map(ToString::to_string).collect();
        let (read, wrote) = member.tokens;
        let tokens = if read + wrote == 0 { String::new() } else { format!("{read}/{wrote}") };
        let unread = if member.unread == 0 { String::new() } else { member.unread.to_string() };
        let judged = &member.judged;
        table.row([
            Cell::new(STRONG, member.name.as_str()),
            member.agent.as_str().into(),
            Cell::new(wait::style(judged.liveness), judged.liveness.word()),
            tasks.join(",").into(),
            unread.into(),
            tokens.into(),
            Cell::new(FAINT, &judged.evidence),
        ]);
    }
    said.push_str(&table.render("  ", output::width()));
    for member in &state.members {
        if let Some(Distance { branch, ahead, behind, changed }) = &member.worktree {
            said.push_str(&format!(
                "  {FAINT}{branch}: {ahead} ahead, {behind} behind, {changed} files not committed{FAINT:#}\n"
            ));
        }
    }
    if supervisor.is_none() {
        said.push_str(&format!(
            "  {BUSY}nobody supervises this host; `brigade resume` does{BUSY:#}\n"
        ));
    }
    if state.members.iter().any(|member| member.place != Place::Headless) {
        let attach = host.tmux().attach(team.as_str());
        said.push_str(&format!("  {FAINT}windows: {attach}{FAINT:#}\n"));
    }
    said
}
