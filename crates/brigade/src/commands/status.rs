//! `brigade status`

pub(crate) mod local;
mod metrics;
pub(crate) mod view;

use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};

use crate::cli::StatusArgs;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::{exit, output};
use brigade_host::Host;
use brigade_host::down::{no_team_hint, teams_of_host, teams_to_show};
use brigade_host::link_registry;
use brigade_host::signals;
use brigade_host::state;

/// How often `--watch` refreshes the view. The times in it change by the second.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &CliContext, asked: &StatusArgs) -> Result<u8, CliError> {
    if asked.metrics {
        return metrics::run(context).await;
    }
    if !asked.watch {
        return print(context, asked.all).await;
    }
    if context.json || output::width().is_none() {
        return Err(CliError::usage(CliTrouble::WatchNeedsTerminal));
    }
    let watching = async {
        loop {
            let text = text(context, asked.all).await?;
            output::redraw(&text)?;
            tokio::time::sleep(REFRESH_INTERVAL).await;
        }
    };
    match signals::until_stop_signal::<u8>(watching).await? {
        Some(code) => Ok(code),
        None => Ok(exit::INTERRUPTED),
    }
}

/// Returns whether the commands in the text must name the team: if there are several, or if a command without a team would act on
/// another one.
async fn names_team(context: &CliContext, shown: &[TeamName]) -> bool {
    let chosen = context.team_choice().await;
    shown.len() > 1 || chosen.is_ok_and(|chosen| !shown.contains(&chosen.team))
}

/// Returns the teams of this host as text, for a view that is refreshed.
async fn text(context: &CliContext, all: bool) -> Result<String, CliError> {
    let host = context.host()?;
    let teams = chosen(context, &host, all).await?;
    let (now, width) = (context.clock.now(), output::width());
    let names_team = names_team(context, &teams).await;
    let mut texts = Vec::new();
    for team in teams {
        let lead = context.seat_of(team.clone(), MemberName::lead());
        texts.push(match state::team(&host, &lead).await {
            Ok(state) => view::render(&host, &state, names_team, now, width),
            Err(error) => format!("{team}: {}\n", error.to_one_line()),
        });
    }
    if texts.is_empty() {
        texts.push("no team is running on this host\n".to_owned());
    }
    Ok(texts.join("\n"))
}

async fn chosen(context: &CliContext, host: &Host, all: bool) -> Result<Vec<TeamName>, CliError> {
    match all {
        true => teams_of_host(context, host).await,
        false => teams_to_show(context, host).await,
    }
}

async fn print(context: &CliContext, all: bool) -> Result<u8, CliError> {
    let host = context.host()?;
    let teams = chosen(context, &host, all).await?;
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
        let width = output::width();
        let teams: Vec<TeamName> = states.iter().map(|state| state.team.clone()).collect();
        let names_team = names_team(context, &teams).await;
        let render = |state| view::render(&host, state, names_team, now, width);
        let mut texts: Vec<String> = states.iter().map(render).collect();
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
