//! `brigade up --check`: checks a team file and previews the team without starting anything.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brigade_agents::driver::{self, AGENTS, Agent, LoginState};
use brigade_core::text;
use serde_json::json;

use super::differences;
use crate::cli::GlobalArgs;
use crate::context::{current_dir, host_alone, trust};
use crate::error::CliError;
use crate::graph::{self, TaskTree};
use crate::location::{TeamFileSource, location, named_store};
use crate::output::{self, Cell, FAINT, READY, STRONG, Table};
use crate::{env, exit, login};
use brigade_host::installed;
use brigade_host::location::StoreAddress;
use brigade_host::login::{MemberLogin, state_key};
use brigade_host::preflight;
use brigade_host::spec::{AccessLevel, MemberPlace, MemberSpec, TeamSpec};
use brigade_host::team_file::{self, OutsidePaths, PathKey, TeamFile, TeamFileError};
use brigade_host::trust::TrustState;
use brigade_host::up::{self, UpPreview};
use brigade_wire::name::MemberName;

/// Maximum number of tasks to draw. A larger graph would be unreadable.
const MAX_DRAWN: usize = 200;

/// Reads the given team file, or the one for the current folder, and prints the team that the file defines.
pub(crate) async fn check(global: &GlobalArgs, file: Option<&Path>) -> Result<u8, CliError> {
    let json = global.json;
    let path = file.map_or_else(found, |file| Ok(file.to_owned()))?;
    let read = match team_file::read(&path, OutsidePaths::Skip) {
        // Only a trusted file may make brigade look at paths outside its folder.
        Ok(file) if !file.outside.is_empty() && trust()?.state(&file)? == TrustState::Trusted => {
            team_file::read(&path, OutsidePaths::Use)
        }
        read => read,
    };
    let file = match read {
        Err(TeamFileError::Mistakes { path, mistakes }) if json => {
            output::print_json(&json!({ "valid": false, "file": path, "mistakes": mistakes }))?;
            return Ok(exit::FAILED);
        }
        read => read?,
    };
    let (state, team) = (trust()?.state(&file)?, &file.spec);
    if let Err(error) = check_worktrees(global, &file, state) {
        if json {
            let problems = [error.to_one_line()];
            output::print_json(&json!({ "valid": false, "file": path, "problems": problems }))?;
            return Ok(exit::FAILED);
        }
        return Err(error);
    }
    // A file that the user does not trust starts no program, not even to ask.
    let logins = match state {
        TrustState::Trusted => login::check_members(all_members(team)).await,
        TrustState::Changed | TrustState::Unknown => Vec::new(),
    };
    let UpPreview { differences: found, starts } = preview(global, &path, &file, state)?;
    if json {
        output::print_json(&json!({
            "valid": true,
            "file": path,
            "trust": state,
            "team": team,
            "changes": found,
            "starts": starts.as_ref().map(|starts| starts_document(team, starts)),
            "missing_agents": missing(team),
            "logins": logins.iter().map(login_document).collect::<Vec<_>>(),
        }))?;
        return Ok(exit::DONE);
    }
    output::print(&text(&path, team, starts.as_deref()))?;
    if state != TrustState::Trusted {
        for outside in &file.outside {
            output::note(&format!("not checked, outside this folder: {}", outside.path.display()));
        }
        output::note(
            "you have not trusted this content of the file; `brigade trust` shows what it would do, and \
             `brigade up` asks",
        );
    }
    if let Some(found) = found {
        differences::note(&found);
    }
    for missing in preflight::missing_programs(&env::programs(), all_members(team)) {
        output::note(&format!("not installed: {}; {}", missing.what, missing.remedy));
    }
    for (title, version, tested) in outdated_agents(team) {
        output::note(&format!(
            "{title} {version} is older than {tested}, with which brigade is tested"
        ));
    }
    for member in all_members(team).filter(|member| member.plan) {
        if let Some(note) = driver::plan_mode_note(&member.agent) {
            output::note(&format!("{}: {note}", member.name));
        }
    }
    login::warn_logged_out(&logins);
    for login in logins.iter().filter(|login| login.state == LoginState::Unknown) {
        let title = login.agent.title;
        output::note(&format!(
            "{title} does not say whether you are logged in; {}",
            login.agent.login
        ));
    }
    Ok(exit::DONE)
}

fn login_document(login: &MemberLogin) -> serde_json::Value {
    let (agent, state) = (login.agent.name, state_key(login.state));
    json!({ "agent": agent, "members": login.members, "login": state, "log_in": login.agent.login })
}

/// Returns the title, the version and the tested version of each agent of the team that is older than the tested version.
fn outdated_agents(team: &TeamSpec) -> Vec<(&'static str, String, &'static str)> {
    let is_used = |agent: &&Agent| all_members(team).any(|member| member.agent == agent.name);
    let used = AGENTS.iter().filter(is_used);
    let outdated = used.filter_map(|agent| {
        let version = installed::outdated(&env::programs(), agent)?;
        Some((agent.title, version, agent.tested))
    });
    outdated.collect()
}

/// Fails if `up` would fail because a member cannot get a worktree. Like `up`, does not check a team on a NATS
/// server, whose members may be meant for other hosts. Runs git only in folders that the file may use.
fn check_worktrees(
    global: &GlobalArgs,
    file: &TeamFile,
    state: TrustState,
) -> Result<(), CliError> {
    if uses_nats(global, file)? {
        return Ok(());
    }
    let is_outside = |member: &MemberSpec| {
        let mut dirs = file.outside.iter().filter(|outside| outside.key == PathKey::Dir);
        dirs.any(|outside| outside.members.contains(&member.name))
    };
    let may_use = |member: &&MemberSpec| state == TrustState::Trusted || !is_outside(member);
    preflight::check_worktrees(&env::programs(), all_members(&file.spec).filter(may_use))
}

/// Returns what `up` would do. Without trust, brigade uses neither the store of the file nor the files outside its folder, so
/// it cannot compare everything.
fn preview(
    global: &GlobalArgs,
    path: &Path,
    file: &TeamFile,
    state: TrustState,
) -> Result<UpPreview, CliError> {
    let needs_trust = !file.outside.is_empty() || file.store.is_some();
    if state != TrustState::Trusted && needs_trust {
        return Ok(UpPreview::default());
    }
    let home = location(global, TeamFileSource::File(path))?;
    up::preview(&host_alone(&GlobalArgs { home, ..global.clone() })?, file)
}

/// Describes the members that `up` would start.
fn starts_document(team: &TeamSpec, starts: &[MemberName]) -> Vec<serde_json::Value> {
    let starting = all_members(team).filter(|member| starts.contains(&member.name));
    let describe = |member: &MemberSpec| {
        let MemberSpec { name, agent, model, cwd, worktree, access, plan, .. } = member;
        json!({
            "name": name, "agent": agent, "model": model, "cwd": cwd, "worktree": worktree, "access": access,
            "plan": plan,
        })
    };
    starting.map(describe).collect()
}

/// Returns whether `up` would store the team on a NATS server.
fn uses_nats(global: &GlobalArgs, file: &TeamFile) -> Result<bool, CliError> {
    let is_named = named_store(global)? != (None, None);
    match &file.store {
        Some(store) if !is_named => Ok(matches!(store, StoreAddress::Servers(_))),
        _ => Ok(location(global, TeamFileSource::WithoutStore)?.nats().is_some()),
    }
}

/// Returns the short path of the team file for the current folder.
pub(crate) fn found() -> Result<PathBuf, CliError> {
    Ok(team_file::find_short(&current_dir())?)
}

/// Returns the team's agents that are not installed, without duplicates.
fn missing(team: &TeamSpec) -> BTreeSet<String> {
    let agents = all_members(team).map(|member| &member.agent);
    let is_missing = |agent: &&String| {
        driver::agent(agent).is_none_or(|choice| match agent.starts_with("acp:") {
            true => env::programs().find(choice.program.as_ref()).is_none(),
            false => env::programs().program(&choice.agent).is_none(),
        })
    };
    agents.filter(is_missing).cloned().collect()
}

fn all_members(team: &TeamSpec) -> impl Iterator<Item = &MemberSpec> {
    team.lead.iter().chain(&team.members)
}

/// Describes the team. `starts` are the members that `up` would start; `None` if that is unknown.
fn text(path: &Path, team: &TeamSpec, starts: Option<&[MemberName]>) -> String {
    let path = text::one_line(&path.to_string_lossy());
    let mut text = format!(
        "{path} is valid; nothing was started or changed\n\nTeam {STRONG}{}{STRONG:#}",
        team.team
    );
    if !team.description.trim().is_empty() {
        text.push_str(": ");
        text.push_str(&text::one_line(&team.description));
    }
    if team.lead.is_none() {
        text.push_str("\nYou lead it.");
    }
    text.push_str("\n\n");
    let mut headings = vec!["MEMBER", "AGENT", "MODEL", "PLACE", "ACCESS", "RULES", "FOLDER"];
    if starts.is_some() {
        headings.insert(1, "UP");
    }
    let mut table = Table::new(&headings);
    for member in all_members(team) {
        let mut cells = Vec::from(row(member, team));
        if let Some(starts) = starts {
            let cell = match starts.contains(&member.name) {
                true => Cell::new(READY, "starts"),
                false => Cell::new(FAINT, "runs"),
            };
            cells.insert(1, cell);
        }
        table.row(cells);
    }
    if all_members(team).next().is_some() {
        text.push_str(&table.render("", output::width()));
    } else {
        text.push_str("No members.\n");
    }
    match team.tasks.len() {
        0 => {}
        1..=MAX_DRAWN => {
            let graph = team_file::graph(&team.tasks);
            text.push('\n');
            text.push_str(&graph::text(&TaskTree::new(&graph), output::width()));
        }
        many => {
            let _infallible = writeln!(text, "\n{many} tasks, too many to draw.");
        }
    }
    text
}

fn row(member: &MemberSpec, team: &TeamSpec) -> [Cell; 7] {
    let place = match member.place {
        MemberPlace::Headless => "headless",
        MemberPlace::Tmux => "tmux",
        MemberPlace::Native => "native",
        MemberPlace::Pane => "a pane of Claude Code",
    };
    let access = match (member.access, member.plan) {
        (AccessLevel::Ask, false) => "ask",
        (AccessLevel::Ask, true) => "plan, then ask",
        (AccessLevel::Full, false) => "everything",
        (AccessLevel::Full, true) => "plan, then everything",
    };
    let dir = member.cwd.strip_prefix(&team.root).unwrap_or(&member.cwd);
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let worktree = if member.worktree { " (worktree)" } else { "" };
    let model = match &member.model {
        Some(model) => model.as_str().into(),
        None => Cell::new(FAINT, "default"),
    };
    [
        Cell::new(STRONG, member.name.as_str()),
        member.agent.as_str().into(),
        model,
        place.into(),
        access.into(),
        member.rules.len().to_string().into(),
        format!("{}{worktree}", dir.display()).into(),
    ]
}
