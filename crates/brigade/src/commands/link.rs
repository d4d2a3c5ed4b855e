//! `brigade link`

use std::sync::Arc;

use brigade_core::text;
use brigade_host::link_registry::{self, LinkCondition, LinkReport};
use brigade_host::links::{self, LinkNote, LinkOptions, LinkOutput, StartedLink};
use brigade_host::location::Location;
use brigade_host::signals;
use brigade_link::LinkEvent;
use brigade_wire::name::TeamName;
use serde::Serialize;
use serde_json::json;

use crate::cli::{self, GlobalArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, Kind};
use crate::output::{self, BUSY, Cell, FAINT, READY, STRONG, Table};
use crate::{env, exit, progress};

pub(crate) async fn run(mut global: GlobalArgs, asked: cli::LinkArgs) -> Result<u8, CliError> {
    // Links belong to the files of this host. The command connects to the NATS servers itself.
    let location = std::mem::replace(&mut global.home, Location::Files);
    let wait = global.server_wait();
    let context = CliContext::new(global).await?;
    if asked.list {
        return list(&context);
    }
    if asked.stop {
        return stop(&context, &asked.teams).await;
    }
    let Location::Nats(servers) = location else {
        let error = CliError::usage(CliTrouble::NothingToLink);
        return Err(error.hint("add `--store nats://HOST:PORT`"));
    };
    let teams = match asked.teams.is_empty() {
        true => context.named_team().cloned().into_iter().collect(),
        false => asked.teams,
    };
    let host = asked.host.unwrap_or_else(env::host_name);
    let options = LinkOptions { servers, teams, host, wait };
    let output = link_output(context.json);
    if asked.once {
        let once = links::once(&context, &options, &output);
        return match signals::until_stop_signal(once).await {
            Err(error) if error.kind == Kind::Nothing => {
                output::note(&error.to_string());
                Ok(exit::NOTHING)
            }
            done => done.map(|_| exit::DONE),
        };
    }
    if asked.foreground {
        let running = links::run(&context, &options, &output);
        return signals::until_stop_signal(running).await.map(|_| exit::DONE);
    }
    let starting = links::start(&context, &options, &progress::print);
    let Some(started) = signals::until_stop_signal(starting).await? else {
        output::note("interrupted; `brigade link --list` shows the links that were started");
        return Ok(exit::INTERRUPTED);
    };
    if context.json {
        let reports: Vec<&LinkReport> = started.iter().map(|started| &started.report).collect();
        output::print_json(&reports)?;
    } else {
        for StartedLink { new, report } in &started {
            let (team, how) = (&report.team, if *new { "is linked" } else { "was linked already" });
            let (servers, members) = (report.servers.join(", "), members(report));
            output::print(&format!("team {STRONG}{team}{STRONG:#} {how}: {servers}; {members}\n"))?;
        }
    }
    Ok(exit::DONE)
}

async fn stop(context: &CliContext, teams: &[TeamName]) -> Result<u8, CliError> {
    for team in teams {
        links::stop(context, team).await?;
        if !context.json {
            output::print(&format!("team {STRONG}{team}{STRONG:#} is no longer linked\n"))?;
        }
    }
    if context.json {
        output::print_json(&json!({ "stopped": teams }))?;
    }
    Ok(exit::DONE)
}

fn list(context: &CliContext) -> Result<u8, CliError> {
    let links = link_registry::list(&context.files_host()?.registry)?;
    if context.json {
        output::print_json(&links)?;
    } else if links.is_empty() {
        output::print("no team of this host is linked\n")?;
    } else {
        output::print(&table(&links))?;
    }
    Ok(if links.is_empty() { exit::NOTHING } else { exit::DONE })
}

/// Renders links as a table, one line for each.
pub(crate) fn table(links: &[LinkReport]) -> String {
    let mut table = Table::new(&["LINK", "SERVER", "STATE", "DETAILS"]);
    for link in links {
        let style = match link.state {
            LinkCondition::Connected => READY,
            _ => BUSY,
        };
        table.row([
            Cell::new(STRONG, link.team.as_str()),
            link.servers.join(",").as_str().into(),
            Cell::new(style, link.state.label()),
            Cell::new(FAINT, &details(link)),
        ]);
    }
    table.render("", output::width())
}

fn details(link: &LinkReport) -> String {
    let since = link.since.map(|since| {
        let seconds = jiff::Timestamp::now().duration_since(since).as_secs().max(0);
        format!("for {}", output::duration(seconds))
    });
    let why = link.why.as_deref().map(text::one_line);
    let is_carrying = !link.local.is_empty() || !link.remote.is_empty();
    let members = is_carrying.then(|| members(link));
    let place = (!link.background).then(|| "in the foreground".to_owned());
    [since, why, members, place].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn members(link: &LinkReport) -> String {
    let here = text::count(link.local.len(), "member");
    format!("{here} on this host, {} on other hosts", link.remote.len())
}

fn link_output(json: bool) -> LinkOutput {
    LinkOutput {
        on_event: Arc::new(move |team, event| show(json, team, event)),
        on_note: Arc::new(|note| match note {
            LinkNote::Retrying(why) => output::note(&format!("{}; retrying", text::one_line(why))),
            LinkNote::NoTeamYet => {
                output::note("there is no team on the NATS server yet; waiting for one");
            }
            LinkNote::Ended(team, why) => {
                output::note(&format!("the link of team {team} ended: {}", text::one_line(why)));
            }
            _ => {}
        }),
        is_closed: output::is_stdout_closed,
    }
}

/// The JSON form of an event of a link.
#[derive(Serialize)]
struct NewsDocument<'l> {
    team: &'l TeamName,
    #[serde(flatten)]
    news: &'l LinkEvent,
}

/// Prints an event of a link. Ignores write errors, because the main loop notices if standard output was closed.
fn show(json: bool, team: &TeamName, news: &LinkEvent) {
    let _abandoned = if json {
        output::print_json(&NewsDocument { team, news })
    } else {
        output::print(&format!("{team}: {}\n", text::plain(&news.to_string())))
    };
}
