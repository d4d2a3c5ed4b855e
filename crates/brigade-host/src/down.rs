//! Stops whole teams and single members.

use std::path::Path;
use std::time::Duration;

use brigade_core::board;
use brigade_core::graph::TaskState;
use brigade_core::handshake;
use brigade_core::roster::{self, RosterError, SkipChecks};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use rustix::process::Signal;

use crate::claude_led::{self, FollowedLead};
use crate::context::{Context, several_teams};
use crate::error::{ErrorKind, HostError, Trouble};
use crate::host::{Host, is_led_remotely};
use crate::origin::{self, FolderTeam};
use crate::process::send_signal;
use crate::progress::{Ended, Progress, ReportProgress};
use crate::shutdown::{self, StopOptions, TeamAfterwards};
use crate::worktree::IgnoredFiles;
use crate::{signals, state, stopped, suggest, team_file, team_lock, variables};

/// Options for stopping members that have finished their work. The members get only 15 seconds to agree, because
/// stopping them loses no work.
pub const STOP_AFTER_WORK: StopOptions<'static> = StopOptions {
    ask: Some(Duration::from_secs(15)),
    reason: None,
    may_refuse: false,
    ignored_files: IgnoredFiles::Keep,
};

/// The result of taking a team down.
#[derive(Debug)]
pub struct DownResult {
    /// The stopped team.
    pub team: TeamName,
    /// The team's members on this host, and how the shutdown of each ended.
    pub members: Vec<(MemberName, Ended)>,
    /// The number of unfinished tasks that were deleted with the team.
    pub lost_tasks: usize,
    /// Whether the team still exists because its lead or some of its members may run on other hosts.
    pub stays_elsewhere: bool,
    /// Whether Claude Code still leads the team. Only the members that brigade ran were stopped.
    pub led_by_claude_code: bool,
}

/// The result of stopping a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// The member runs on this host. The value says how its shutdown ended.
    Here(Ended),
    /// The member does not run on this host. It was asked by mail to stop.
    Asked,
}

/// Returns the team whose member a command stops. The team may be that of an ended Claude Code session: its members wait.
pub async fn team_of_stopped(context: &Context) -> Result<TeamName, HostError> {
    if let Some(team) = context.named_team()
        && !context.host()?.claude_led().registry.members(team)?.is_empty()
    {
        return Ok(team.clone());
    }
    context.team_or_ended().await
}

/// Acts as the lead, and stops a member that runs on this host.
pub async fn stop(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Result<Ended, HostError> {
    let team = &lead.team;
    let host = context.host()?.of_member(team, name)?;
    context.refuse_to_lead(team, "ask a member to stop")?;
    let is_here = host.registry.member_or_stopping(team, name)?.is_some();
    if !is_here && host.member_process(team, name)?.is_none() {
        // The process that removed the member may have been killed.
        host.registry.sweep_members(team);
        shutdown::clear_leftovers(lead).await;
        if is_run_by_claude(&host, lead, name).await? {
            let (name, team) = (name.to_string(), team.to_string());
            let error = Trouble::ClaudeRuns { name, team, what: "stop it" };
            return Err(HostError::failed(error).hint("ask Claude Code to stop it"));
        }
        return Err(not_here(context, &host, team, name));
    }
    let names = std::slice::from_ref(name);
    let ended = match host.is_claude_led {
        true => stop_claude_started(context, &host, lead, names, manner, report).await?,
        false => {
            let stays = TeamAfterwards::Stays;
            shutdown::members(&host, lead, names, manner, stays, report).await?
        }
    };
    Ok(ended.into_iter().next().map_or(Ended::WasGone, |(_, ended)| ended))
}

/// Acts as the lead, and stops members that run on this host, all at the same time. Returns the result for each of them.
pub async fn stop_all(
    context: &Context,
    lead: &Seat,
    names: &[MemberName],
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Vec<(MemberName, Result<Ended, HostError>)> {
    let stops = names
        .iter()
        .map(|name| async move { (name.clone(), stop(context, lead, name, manner, report).await) });
    futures_util::future::join_all(stops).await
}

/// Returns all members of a team that brigade runs on this host.
pub fn members_here(context: &Context, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
    let host = context.host()?;
    let mut here = host.registry.members(team)?;
    here.extend(claude_started(&host, team)?);
    if here.is_empty() {
        let error = HostError::new(ErrorKind::Nothing, Trouble::NotUp { team: team.to_string() });
        return Err(error.hint("`brigade status` shows the teams of this host"));
    }
    Ok(here)
}

/// Returns the error for a member that does not run on this host: when it was stopped, or else which members run here.
pub(crate) fn not_here(
    context: &Context,
    host: &Host,
    team: &TeamName,
    name: &MemberName,
) -> HostError {
    if let Ok(Some(error)) = stopped::stopped_error(context, team, name) {
        return error;
    }
    let error = Trouble::NotHere { name: name.to_string(), team: team.to_string() };
    let error = HostError::failed(error);
    let mut here = host.registry.members(team).unwrap_or_default();
    here.extend(claude_started(host, team).unwrap_or_default());
    let here: Vec<String> = here.iter().map(ToString::to_string).collect();
    match here.as_slice() {
        [] => error.hint("no member of this team runs on this host"),
        here => {
            let question = suggest::question(name.as_str(), here);
            error.hint(format!("{question}members on this host: {}", here.join(", ")))
        }
    }
}

/// Returns the members of a team that Claude Code started and that brigade runs on this host.
fn claude_started(host: &Host, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
    if host.is_shared { Ok(Vec::new()) } else { host.claude_led().registry.members(team) }
}

/// Stops members that Claude Code started. Fails if an agent or Claude Code runs the command. `host` is this host for such
/// members.
async fn stop_claude_started(
    context: &Context,
    host: &Host,
    lead: &Seat,
    names: &[MemberName],
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Result<Vec<(MemberName, Ended)>, HostError> {
    let lead = &context.person_seat(lead)?;
    let team = &lead.team;
    let (mut waiting, mut active) = (Vec::new(), Vec::new());
    for name in names {
        let waits = FollowedLead::stored(host, team, name)?.is_some_and(|record| record.waits);
        if waits { waiting.push(name.clone()) } else { active.push(name.clone()) }
    }
    // The agent of a waiting member does not run, so it cannot agree.
    shutdown::kill(host, team, &waiting, report).await?;
    for name in &waiting {
        host.registry.add_gone(team, name)?;
        claude_led::remove_member(host, team, name)?;
    }
    let mut ended: Vec<_> = waiting.into_iter().map(|name| (name, Ended::Forced)).collect();
    let stays = TeamAfterwards::Stays;
    ended.extend(shutdown::members(host, lead, &active, manner, stays, report).await?);
    Ok(ended)
}

/// Returns whether Claude Code itself runs a member: Claude Code leads the team, the member is on the roster, and brigade does
/// not drive the member's agent.
async fn is_run_by_claude(host: &Host, lead: &Seat, name: &MemberName) -> Result<bool, HostError> {
    let Some(config) = lead.find_config().await?.filter(|_| !host.is_shared) else {
        return Ok(false);
    };
    if lead.store.is_ours(&lead.team).await? || is_led_remotely(lead).await? {
        return Ok(false);
    }
    let roster = lead.read(&config)?;
    let agent = roster.member(name.as_str()).map(|member| member.agent_type().unwrap_or_default());
    Ok(agent.is_some_and(|agent| !claude_led::is_driven(&agent)))
}

/// Stops a member. If the member runs on another host, asks it by mail to stop.
pub async fn stop_or_ask(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Result<StopResult, HostError> {
    let host = context.host()?.of_member(&seat.team, name)?;
    if host.registry.member_or_stopping(&seat.team, name)?.is_none()
        && !is_run_by_claude(&host, seat, name).await?
    {
        handshake::request_shutdown(seat, name.as_str(), manner.reason).await?;
        return Ok(StopResult::Asked);
    }
    let lead = seat.for_member(MemberName::lead());
    stop(context, &lead, name, manner, report).await.map(StopResult::Here)
}

/// Chooses a team, stops its members that Claude Code started, and calls [`take_down`] for it if it is up.
pub async fn down(
    context: &Context,
    named: Option<&TeamName>,
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Result<DownResult, HostError> {
    let host = context.host()?;
    let team = choose_team_with_members(context, &host, named).await?;
    context.refuse_to_lead(&team, "take the team down")?;
    let lead = context.seat_of(team.clone(), MemberName::lead());
    let unfinished = unfinished_tasks(&lead).await;
    let mut members = Vec::new();
    let claude_started = claude_started(&host, &team)?;
    if !claude_started.is_empty() {
        let host = host.claude_led();
        let stopping = stop_claude_started(context, &host, &lead, &claude_started, manner, report);
        members.extend(stopping.await?);
    }
    if host.registry.team(&team)?.is_some() {
        members.extend(take_down(&host, &lead, manner, report).await?);
    }
    let is_deleted = !context.team_exists(&team).await?;
    let is_led_remotely = is_led_remotely(&lead).await?;
    let elsewhere = host.is_shared || is_led_remotely;
    let is_ours = is_deleted || lead.store.is_ours(&team).await?;
    Ok(DownResult {
        led_by_claude_code: !is_ours && !elsewhere,
        team,
        members,
        lost_tasks: if is_deleted { unfinished } else { 0 },
        stays_elsewhere: elsewhere && !is_deleted,
    })
}

/// Kills the members of a team on this host. Use this only if the NATS server cannot be reached: the team stays
/// in the store. Without a named team, kills the members of the team of the `brigade.toml` for `cwd` or, if there is
/// no such file, of the only team that is up. Returns `None` if there is no such team.
pub async fn kill_without_store(
    host: &Host,
    named: Option<&TeamName>,
    cwd: &Path,
    report: ReportProgress<'_>,
) -> Result<Option<(TeamName, Vec<MemberName>)>, HostError> {
    let up = host.registry.teams()?;
    let folder = if named.is_some() { None } else { origin::folder_team(cwd)? };
    if let Some(FolderTeam { file, team }) = &folder
        && (!up.contains(team)
            || origin::other_owner_on_host(&host.registry, team, file)?.is_some())
    {
        return Ok(None);
    }
    let named = named.or(folder.as_ref().map(|folder| &folder.team));
    let [team] = named.map_or(up.as_slice(), std::slice::from_ref) else { return Ok(None) };
    let names = host.registry.members(team)?;
    shutdown::kill(host, team, &names, report).await?;
    if up.iter().all(|up| up == team)
        && let Some(supervisor) = host.supervisor()?
    {
        send_signal(&supervisor, Signal::TERM);
    }
    Ok(Some((team.clone(), names)))
}

/// Returns the number of unfinished tasks, or 0 if the board cannot be read.
async fn unfinished_tasks(lead: &Seat) -> usize {
    let Ok((tasks, graph)) = board::list(lead).await else { return 0 };
    // A damaged task is not in the graph.
    let is_open = |id: TaskId| graph.state(id) != Some(TaskState::Done);
    tasks.iter().filter(|(id, _)| is_open(*id)).count()
}

/// Returns the named team, the team of the `brigade.toml` for the current folder or, if there is no such file, the
/// only team that is up, or the person's default team if there are several.
pub async fn choose_team(
    context: &Context,
    host: &Host,
    named: Option<&TeamName>,
) -> Result<TeamName, HostError> {
    let up = host.registry.teams()?;
    let names: Vec<String> = up.iter().map(ToString::to_string).collect();
    if let Some(team) = named.or(context.named_team()) {
        if up.contains(team) {
            return Ok(team.clone());
        }
        let error = HostError::failed(Trouble::NotUp { team: team.to_string() });
        if host.registry.elsewhere().contains(team) {
            return Err(error.hint(other_store_hint(team.as_str())));
        }
        let stored = context.teams().await.unwrap_or_default();
        let ended = context.ended_sessions().await.unwrap_or_default();
        let ended: Vec<&str> = ended.iter().map(|session| session.team.as_str()).collect();
        return Err(match names.as_slice() {
            _ if stored.contains(team) && is_led_by_claude(context, host, team).await? => error
                .hint("Claude Code leads the team, and brigade runs none of its members on this host"),
            _ if stored.contains(team) => error.hint(format!(
                "the team was not started on this host; `brigade ui --team {team}` shows it, `brigade up` starts \
                 the team of a brigade.toml, `brigade team delete {team}` deletes it"
            )),
            [] if !ended.is_empty() => {
                error.hint(format!("teams of ended Claude Code sessions: {}", ended.join(", ")))
            }
            [] => error.hint("no team is running; `brigade up` starts one"),
            names => error.hint(format!("running teams: {}", names.join(", "))),
        });
    }
    if up.is_empty() {
        let error = HostError::new(ErrorKind::Nothing, Trouble::NoneUp);
        return Err(error.hint(no_team_hint(context, host)));
    }
    match (origin::folder_team(&context.cwd)?, up.as_slice()) {
        (Some(folder), up) if up.contains(&folder.team) => {
            let team = context.check_folder_team(folder).await?;
            if up.len() > 1 {
                context.announce_folder_team(&team);
            }
            Ok(team)
        }
        (Some(FolderTeam { team, .. }), _) => {
            let error = Trouble::NotUp { team: team.to_string() };
            let error = HostError::new(ErrorKind::Nothing, error);
            Err(error.hint(no_team_hint(context, host)).hint(format!(
                "other teams run on this host ({}); {}",
                names.join(", "),
                origin::choose_hint()
            )))
        }
        (None, up) => context.choose_running(up),
    }
}

/// Like [`choose_team`], but also finds a team of a Claude Code session in which only Claude Code started members that brigade
/// runs: the named team or, if no team is up, the only such team.
pub async fn choose_team_with_members(
    context: &Context,
    host: &Host,
    named: Option<&TeamName>,
) -> Result<TeamName, HostError> {
    if let Some(team) = named.or(context.named_team()) {
        return match claude_started(host, team)?.is_empty() {
            true => choose_team(context, host, Some(team)).await,
            false => Ok(team.clone()),
        };
    }
    if host.is_shared
        || !host.registry.teams()?.is_empty()
        || origin::folder_team(&context.cwd)?.is_some()
    {
        return choose_team(context, host, None).await;
    }
    match host.claude_led().registry.teams()?.as_slice() {
        [] => choose_team(context, host, None).await,
        [team] => Ok(team.clone()),
        teams => Err(several_teams(teams.iter().map(ToString::to_string).collect())),
    }
}

/// Returns the teams that a command shows: the named team; in a folder with a `brigade.toml` the team of that file;
/// elsewhere all teams that are up on this host or that Claude Code leads.
pub async fn teams_to_show(context: &Context, host: &Host) -> Result<Vec<TeamName>, HostError> {
    let folder = origin::folder_team(&context.cwd)?;
    // A team in a NATS store may run only on other hosts.
    if host.is_shared && (context.named_team().is_some() || folder.is_some()) {
        return Ok(vec![context.team().await?]);
    }
    let up = host.registry.teams()?;
    if let Some(team) = context.named_team() {
        return Ok(vec![
            match up.contains(team) || !is_led_by_claude(context, host, team).await? {
                true => choose_team(context, host, None).await?,
                false => team.clone(),
            },
        ]);
    }
    match folder {
        None => teams_of_host(context, host).await,
        Some(folder) if up.contains(&folder.team) => {
            Ok(vec![context.check_folder_team(folder).await?])
        }
        Some(_) => Ok(Vec::new()),
    }
}

/// Returns all teams that are up on this host or that Claude Code leads.
pub async fn teams_of_host(context: &Context, host: &Host) -> Result<Vec<TeamName>, HostError> {
    let mut up = host.registry.teams()?;
    for team in context.teams().await? {
        if !up.contains(&team) && is_led_by_claude(context, host, &team).await? {
            up.push(team);
        }
    }
    if !host.is_shared {
        // The members of an ended Claude Code session wait for their lead.
        let waiting = host.claude_led().registry.teams()?;
        up.extend(waiting.into_iter().filter(|team| !up.contains(team)).collect::<Vec<_>>());
    }
    Ok(up)
}

/// Returns whether Claude Code leads a team in the files of this host, or led a team whose members wait for it.
async fn is_led_by_claude(
    context: &Context,
    host: &Host,
    team: &TeamName,
) -> Result<bool, HostError> {
    if host.is_shared {
        return Ok(false);
    }
    Ok(match context.team_exists(team).await? {
        true => !context.store.is_ours(team).await?,
        false => !host.claude_led().registry.members(team)?.is_empty(),
    })
}

/// Returns a hint for the error that no team is up on this host.
pub fn no_team_hint(context: &Context, host: &Host) -> String {
    let elsewhere: Vec<String> =
        host.registry.elsewhere().iter().map(ToString::to_string).collect();
    if !elsewhere.is_empty() {
        return other_store_hint(&elsewhere.join(", "));
    }
    match team_file::find_short(&context.cwd) {
        Ok(file) => format!("`brigade up` starts the team in {}", file.display()),
        Err(_) => "`brigade new` writes a brigade.toml, `brigade up` starts its team".to_owned(),
    }
}

fn other_store_hint(teams: &str) -> String {
    format!(
        "{teams} runs here but lives in another store; choose it with `--store`, {} or {}",
        variables::STORE,
        variables::CLAUDE_CONFIG_DIR
    )
}

/// Stops the team's members on this host. Then deletes the team if brigade leads the team and no other host runs
/// any of its members.
pub async fn take_down(
    host: &Host,
    lead: &Seat,
    manner: StopOptions<'_>,
    report: ReportProgress<'_>,
) -> Result<Vec<(MemberName, Ended)>, HostError> {
    let _alone = team_lock::acquire(&host.registry, &lead.team, report).await?;
    let mut names = host.registry.members(&lead.team)?;
    // Another process may have died while it stopped these members.
    names.extend(host.registry.withdrawn_members(&lead.team)?);
    // In a shared store, other hosts may run members.
    let is_deleted = !host.is_shared && may_delete(host, lead).await?;
    let afterwards = if is_deleted { TeamAfterwards::Deleted } else { TeamAfterwards::Stays };
    let ended = shutdown::members(host, lead, &names, manner, afterwards, report).await?;
    let elsewhere = members_elsewhere(host, lead).await?;
    for (name, other) in &elsewhere {
        report(Progress::StaysElsewhere(name.clone(), other.clone(), lead.team.clone()));
    }
    // Do not delete a team with members on other hosts.
    if elsewhere.is_empty() && may_delete(host, lead).await? {
        delete_if_exists(lead).await?;
    } else {
        complete_deletion(host, lead).await?;
    }
    host.registry.remove_team(&lead.team)?;
    // The supervisor exits on its own when no team is up. Wait for that, so that no process is left behind.
    host.until_supervisor_ends().await?;
    Ok(ended)
}

/// Returns whether brigade leads the team on this host. A team that Claude Code leads must not be deleted.
async fn may_delete(host: &Host, lead: &Seat) -> Result<bool, HostError> {
    Ok(host.leads(lead).await? && !is_led_remotely(lead).await?)
}

/// If a process died while it deleted the team, completes the deletion. Does nothing if the team exists.
pub(crate) async fn complete_deletion(host: &Host, lead: &Seat) -> Result<(), HostError> {
    if host.may_lead && lead.find_config().await?.is_none() {
        delete_if_exists(lead).await?;
    }
    Ok(())
}

async fn delete_if_exists(lead: &Seat) -> Result<(), HostError> {
    match roster::delete(lead, SkipChecks::Yes).await {
        Ok(()) | Err(RosterError::Store(StoreError::NoTeam { .. })) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes a team down after a signal interrupted a command that stops the team when it ends. The next signal kills the
/// members, and a further one gives up. Returns whether the team is down.
pub async fn take_down_interrupted(
    host: &Host,
    lead: &Seat,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    report(Progress::StoppingInterrupted(lead.team.clone()));
    let stopping = take_down(host, lead, STOP_AFTER_WORK, report);
    if signals::until_stop_signal(stopping).await?.is_some() {
        return Ok(true);
    }
    report(Progress::KillingInterrupted(lead.team.clone()));
    let kill = StopOptions { ask: None, ..STOP_AFTER_WORK };
    let killing = take_down(host, lead, kill, report);
    Ok(signals::until_stop_signal(killing).await?.is_some())
}

/// Returns the members that run on other hosts, each with the name of its host.
async fn members_elsewhere(
    host: &Host,
    lead: &Seat,
) -> Result<Vec<(MemberName, String)>, HostError> {
    if !host.is_shared {
        return Ok(Vec::new());
    }
    let Some(config) = lead.find_config().await? else { return Ok(Vec::new()) };
    let roster = lead.read(&config)?;
    let mut elsewhere = Vec::new();
    for member in roster.members() {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if let Some(other) = state::remote_host(host, lead, &name).await? {
            elsewhere.push((name, other));
        }
    }
    Ok(elsewhere)
}
