//! `brigade down` and `brigade stop`

use std::time::Duration;

use brigade_core::board;
use brigade_core::graph::State;
use brigade_core::roster::{self, Force, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::check;
use crate::cli::{Down, Ending, Global, Stop};
use crate::context::{Context, host_alone, named_team};
use crate::error::{CliError, Trouble};
use crate::host::end::{self, Ended, Manner, News};
use crate::host::worktree::Removed;
use crate::host::{Host, failed, is_led_from_afar, seat, state};
use crate::output::{self, BUSY, FAINT, STRONG};
use crate::{env, exit, team_file};

/// How long to wait for the supervisor to exit after the last team is gone.
const LAST: Duration = Duration::from_secs(10);

/// Gives members 15 seconds to agree. Used when all work is done, so killing a slow member loses nothing.
pub(crate) const KINDLY: Manner<'static> =
    Manner { ask: Some(Duration::from_secs(15)), reason: None, may_refuse: false };

fn manner(ending: &Ending, may_refuse: bool) -> Manner<'_> {
    let ask = (!ending.now).then(|| Duration::from_secs(ending.limit));
    Manner { ask, reason: ending.reason.as_deref(), may_refuse }
}

/// `brigade stop`
pub(crate) async fn stop(context: &Context, stop: &Stop) -> Result<u8, CliError> {
    let host = context.host()?;
    let team = context.team().await?;
    context.refuse_to_lead(&team, "ask a member to stop")?;
    let lead = context.seat_of(team.clone(), MemberName::lead());
    if host.folder.member(&team, &stop.name)?.is_none() {
        let error = Trouble::NotHere { name: stop.name.to_string(), team: team.to_string() };
        let here = host.folder.members(&team)?;
        let error = CliError::failed(error);
        return Err(if here.is_empty() {
            error.hint("no member of this team runs on this host")
        } else {
            let here: Vec<String> = here.iter().map(ToString::to_string).collect();
            error.hint(format!("members on this host: {}", here.join(", ")))
        });
    }
    let names = [stop.name.clone()];
    let ended = end::members(&host, &lead, &names, manner(&stop.how, !stop.how.now), tell).await?;
    if context.json {
        output::print_json(&document(&ended))?;
    }
    match ended.into_iter().next() {
        Some((name, Ended::Refused(why))) => {
            let error = CliError::failed(Trouble::Refuses { name: name.to_string(), why });
            Err(error.hint(format!("`brigade stop {name} --now` kills it anyway")))
        }
        _ => Ok(exit::DONE),
    }
}

/// `brigade down`
pub(crate) async fn run(context: &Context, down: &Down) -> Result<u8, CliError> {
    let host = context.host()?;
    let team = which(context, &host, down.which.as_ref()).await?;
    context.refuse_to_lead(&team, "take the team down")?;
    let lead = context.seat_of(team.clone(), MemberName::lead());
    let not_done = not_done(&lead).await;
    let ended = take_down(&host, &lead, manner(&down.how, false)).await?;
    if context.store.team(&team).await?.is_none() {
        tell_lost(&team, not_done);
    }
    if context.json {
        output::print_json(&document(&ended))?;
    } else {
        let elsewhere = host.is_shared || is_led_from_afar(&lead).await?;
        let stays = elsewhere && context.store.team(&team).await?.is_some();
        let how = if stays { "no longer runs on this host" } else { "is down" };
        output::print(&format!(
            "team {STRONG}{team}{STRONG:#} {how}; `brigade log --team {team}` still shows its history\n"
        ))?;
    }
    Ok(exit::DONE)
}

/// `brigade down` while the NATS server is unreachable. With `--now`, kills the members on this host. The team stays
/// on the server and still has to be taken down later.
pub(crate) async fn cut_off(global: &Global, down: &Down, away: CliError) -> Result<u8, CliError> {
    let host = host_alone(global)?;
    let up = host.folder.teams()?;
    let named = down.which.clone().map_or_else(|| named_team(global), |team| Ok(Some(team)))?;
    let meant = named.as_ref().map_or(up.as_slice(), std::slice::from_ref);
    let (true, [team]) = (down.how.now, meant) else {
        return Err(away.hint("`brigade down TEAM --now` kills the members on this host anyway"));
    };
    let names = host.folder.members(team)?;
    end::by_force(&host, team, &names, tell).await?;
    if up.iter().all(|up| up == team)
        && let Some(supervisor) = host.supervisor()?
    {
        crate::host::tell(&supervisor, Signal::TERM);
    }
    output::note(&format!(
        "{}; killed the members of team {team} on this host; the team still exists on the NATS server: run \
         `brigade down {team}` when the server is reachable",
        away.in_a_line()
    ));
    if global.json {
        let ended: Vec<(MemberName, Ended)> =
            names.into_iter().map(|name| (name, Ended::Forced)).collect();
        output::print_json(&document(&ended))?;
    }
    Ok(exit::FAILED)
}

/// Prints a note if the team was deleted with unfinished tasks.
fn tell_lost(team: &TeamName, not_done: usize) {
    if not_done > 0 {
        let tasks = output::count(not_done, "unfinished task");
        output::note(&format!("team deleted with {tasks}; `brigade log --team {team}` shows them"));
    }
}

/// The number of unfinished tasks; 0 if the board cannot be read.
async fn not_done(lead: &Seat) -> usize {
    let Ok((_, graph)) = board::list(lead).await else { return 0 };
    let is_open = |id: &TaskId| graph.state(*id) != Some(State::Done);
    graph.nodes().filter(|(id, _)| is_open(id)).count()
}

/// Resolves the team: the one named, or the only one that is running.
pub(crate) async fn which(
    context: &Context,
    host: &Host,
    named: Option<&TeamName>,
) -> Result<TeamName, CliError> {
    let up = host.folder.teams()?;
    let names: Vec<String> = up.iter().map(ToString::to_string).collect();
    if let Some(team) = named.or(context.named_team()) {
        if up.contains(team) {
            return Ok(team.clone());
        }
        let error = CliError::failed(Trouble::NotUp { team: team.to_string() });
        if host.folder.elsewhere().contains(team) {
            return Err(error.hint(up_elsewhere(team.as_str())));
        }
        let there = context.store.teams().await.unwrap_or_default();
        return Err(match names.as_slice() {
            _ if there.contains(team) => error.hint(format!(
                "it was not started on this host; `brigade team delete {team}` deletes it"
            )),
            [] => error.hint("no team is running; `brigade up` starts one"),
            names => error.hint(format!("running teams: {}", names.join(", "))),
        });
    }
    match up.as_slice() {
        [team] => Ok(team.clone()),
        [] => {
            let error = CliError::new(crate::error::Kind::Nothing, Trouble::NoneUp);
            Err(error.hint(if_none_is_up(host)))
        }
        teams => match team_file::here().filter(|team| teams.contains(team)) {
            Some(team) => Ok(team),
            None => Err(CliError::usage(Trouble::SeveralTeams(names)).hint("name one of them")),
        },
    }
}

/// The hint to show if no team is running.
pub(crate) fn if_none_is_up(host: &Host) -> String {
    let elsewhere: Vec<String> = host.folder.elsewhere().iter().map(ToString::to_string).collect();
    if !elsewhere.is_empty() {
        return up_elsewhere(&elsewhere.join(", "));
    }
    match check::found() {
        Ok(file) => format!("`brigade up` starts the team in {}", file.display()),
        Err(_) => "`brigade new` writes a brigade.toml, `brigade up` starts its team".to_owned(),
    }
}

fn up_elsewhere(teams: &str) -> String {
    format!(
        "{teams} runs here but lives in another store; choose it with `--store`, {} or {}",
        env::STORE,
        env::CLAUDE_CONFIG_DIR
    )
}

/// Stops every member of a team on this host and deletes the team.
pub(crate) async fn take_down(
    host: &Host,
    lead: &Seat,
    manner: Manner<'_>,
) -> Result<Vec<(MemberName, Ended)>, CliError> {
    let place = seat::wait_for(&host.folder.up(&lead.team)?).await;
    let _alone = place.map_err(|source| failed("wait for another `brigade up`", source))?;
    let names = host.folder.members(&lead.team)?;
    let ended = end::members(host, lead, &names, manner, tell).await?;
    let afar = members_afar(host, lead).await?;
    for (name, other) in &afar {
        output::note(&format!("{name} runs on {other}; team {} stays for it", lead.team));
    }
    // Do not delete a team that Claude Code leads or in which other hosts still run members.
    let ours = host.leads(lead).await? && !is_led_from_afar(lead).await?;
    let deleted = match afar.is_empty() && ours {
        true => roster::delete(lead, Force::Yes).await,
        false => Ok(()),
    };
    match deleted {
        Ok(()) | Err(RosterError::Store(StoreError::NoTeam { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    host.folder.remove_team(&lead.team)?;
    // The supervisor exits when no team is left. Wait for it, so that no process of ours remains.
    let began = Instant::now();
    while host.folder.teams()?.is_empty() && host.supervisor()?.is_some() && began.elapsed() < LAST
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(ended)
}

/// The members that run on other hosts, and the name of each host.
async fn members_afar(host: &Host, lead: &Seat) -> Result<Vec<(MemberName, String)>, CliError> {
    if !host.is_shared {
        return Ok(Vec::new());
    }
    let Some(config) = lead.store.team(&lead.team).await? else { return Ok(Vec::new()) };
    let roster = Team::read(&config.bytes).map_err(CliError::failed)?;
    let mut afar = Vec::new();
    for member in roster.members() {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if let Some(other) = state::played_afar(host, lead, &name).await? {
            afar.push((name, other));
        }
    }
    Ok(afar)
}

fn tell(name: &MemberName, news: News) {
    let said = match news {
        News::Asked(limit) => format!("asked to stop within {} s", limit.as_secs()),
        News::Refuses(why) => format!("refuses to stop: {}", output::one_line(&why)),
        News::Told => format!("{BUSY}stopping{BUSY:#}"),
        News::Worktree(Removed::Stays, tree) => {
            format!("kept its worktree because it has uncommitted changes: {}", tree.dir.display())
        }
        News::Worktree(Removed::Unclear, tree) => {
            format!("kept its worktree because git cannot read it: {}", tree.dir.display())
        }
        News::Worktree(_, tree) => {
            format!("kept its branch {} because it has commits", tree.branch)
        }
        News::Over(Ended::Agreed) => "stopped".to_owned(),
        News::Over(Ended::WasGone) => "was not running".to_owned(),
        News::Over(Ended::Forced) => "killed".to_owned(),
        News::Over(Ended::Refused(why)) => {
            format!("refused to stop and stays: {}", output::one_line(&why))
        }
    };
    output::say(&format!("{FAINT}{name}:{FAINT:#} {said}"));
}

fn document(ended: &[(MemberName, Ended)]) -> serde_json::Value {
    let of = |(name, ended): &(MemberName, Ended)| {
        let (word, why) = match ended {
            Ended::Agreed => ("agreed", None),
            Ended::WasGone => ("was_gone", None),
            Ended::Forced => ("forced", None),
            Ended::Refused(why) => ("refused", Some(why)),
        };
        json!({ "name": name, "ended": word, "why": why })
    };
    json!({ "members": ended.iter().map(of).collect::<Vec<_>>() })
}
