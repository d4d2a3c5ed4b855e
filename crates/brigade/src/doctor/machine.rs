//! Checks of installed programs and settings on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use brigade_agents::driver::{self, AGENTS, LoginState};
use brigade_host::login::MemberLogin;
use brigade_host::personal_policy::PersonalPolicy;
use brigade_host::trust::TrustState;
use brigade_wire::name::MemberName;
use brigade_wire::settings::{SettingPath as SettingPlace, SettingsFile};

use super::Findings;
use super::snapshot::DoctorSnapshot;
use super::wording::member_place;
use brigade_host::installed;

use crate::context::trust;
use crate::env;
use brigade_host::spec::{MemberPlace, MemberSpec};
use brigade_host::team_file::{self, OutsidePaths, TeamFile, TeamFileError};

pub(super) fn outdated(_: &DoctorSnapshot, found: &mut Findings) {
    for agent in AGENTS {
        let Some(path) = env::programs().program(agent) else { continue };
        let Some(version) = installed::outdated(&env::programs(), agent) else { continue };
        let (title, tested) = (agent.title, agent.tested);
        let what = format!("{title} {version}; brigade is tested with {tested} and later");
        let advice = format!("npm install -g {}@latest", agent.package);
        found.advise(path.as_path(), what, advice);
    }
}

pub(super) fn logged_out(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let is_out = |login: &&MemberLogin| login.state == LoginState::LoggedOut;
    for login in snapshot.logins.iter().filter(is_out) {
        let members: Vec<&str> = login.members.iter().map(MemberName::as_str).collect();
        let what = format!("{} is logged out", login.agent.title);
        found.advise(members.join(", "), what, login.agent.login);
    }
}

/// Returns the members of running teams, and those of the team file for the current folder if the user trusts it.
pub(crate) fn members_to_ask(snapshot: &DoctorSnapshot) -> Vec<MemberSpec> {
    let is_trusted = |file: &TeamFile| {
        trust().and_then(|trust| trust.state(file)).is_ok_and(|state| state == TrustState::Trusted)
    };
    let file = read_team_file().and_then(|(_, file)| file.ok()).filter(is_trusted);
    let in_file =
        file.into_iter().flat_map(|file| file.spec.members.into_iter().chain(file.spec.lead));
    let hosted = snapshot.hosted.iter().flat_map(|hosted| &hosted.members);
    let mut members: Vec<MemberSpec> = hosted.filter_map(|member| member.spec.clone()).collect();
    for spec in in_file {
        if !members.iter().any(|known| known.name == spec.name && known.agent == spec.agent) {
            members.push(spec);
        }
    }
    members
}

/// Returns every member that should run on this host, each with the place where it is defined.
fn expected_members(snapshot: &DoctorSnapshot) -> Vec<(String, MemberSpec)> {
    let mut expected = Vec::new();
    for hosted in &snapshot.hosted {
        let members = hosted.members.iter().filter_map(|member| member.spec.clone());
        for spec in members {
            expected.push((member_place(&spec.name, &hosted.team), spec));
        }
    }
    if let Some(Ok(team)) = read_team_file().map(|(_, file)| file) {
        for spec in team.spec.members.into_iter().chain(team.spec.lead) {
            let place = format!("{} in {}", spec.name, team_file::NAME);
            if !expected
                .iter()
                .any(|(_, known)| known.name == spec.name && known.agent == spec.agent)
            {
                expected.push((place, spec));
            }
        }
    }
    expected
}

/// Reads the team file for the current folder. The user may not trust it, so nothing outside its folder is read.
fn read_team_file() -> Option<(PathBuf, Result<TeamFile, TeamFileError>)> {
    let path = team_file::find(&std::env::current_dir().ok()?).ok()?;
    let file = team_file::read(&path, OutsidePaths::Skip);
    Some((path, file))
}

pub(super) fn policy_file(_: &DoctorSnapshot, found: &mut Findings) {
    let Some(path) = env::config_dir().map(|dir| PersonalPolicy::path_in(&dir)) else { return };
    if let Err(error) = PersonalPolicy::read(&path) {
        let advice = error.hints.first().cloned();
        let advice = advice.unwrap_or_else(|| "make the file readable".to_owned());
        found.advise(path.as_path(), error.to_string(), advice);
    }
}

pub(super) fn missing(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for (place, spec) in expected_members(snapshot) {
        let Some(choice) = driver::agent(&spec.agent) else {
            let what = format!("unknown agent {:?}", spec.agent);
            found.advise(place, what, "`brigade agents` lists the supported agents");
            continue;
        };
        let is_named = AGENTS.iter().find(|agent| agent.name == spec.agent);
        let (program, advice) = match is_named {
            Some(agent) => {
                (env::programs().program(agent), format!("npm install -g {}", agent.package))
            }
            None => (
                env::programs().find(choice.program.as_ref()),
                "install it, or fix its path".to_owned(),
            ),
        };
        if program.is_none() {
            let what = format!("its agent {} is not installed", choice.program);
            found.advise(place, what, advice);
        }
    }
}

pub(super) fn no_tmux(snapshot: &DoctorSnapshot, found: &mut Findings) {
    if env::programs().find("tmux".as_ref()).is_some() {
        return;
    }
    let install = "install tmux with your package manager";
    for (place, _) in expected_members(snapshot)
        .into_iter()
        .filter(|(_, spec)| spec.place != MemberPlace::Headless)
    {
        found.advise(place, "it should run in tmux, which is not installed", install);
    }
    if let Some((path, Ok(settings))) =
        read_settings(snapshot).as_ref().map(|(path, bytes)| (path, SettingsFile::read(bytes)))
        && setting(&settings, None, "teammateMode").as_deref() == Some("tmux")
    {
        found.advise(
            path.as_path(),
            "teammates should run in tmux, which is not installed",
            install,
        );
    }
}

pub(super) fn team_file(_: &DoctorSnapshot, found: &mut Findings) {
    let Some((path, file)) = read_team_file() else { return };
    match file {
        Err(TeamFileError::Mistakes { mistakes, .. }) => {
            let what = format!("it has mistakes: {}", mistakes.len());
            found.advise(path.as_path(), what, "`brigade up --check` shows them");
        }
        Err(error) => {
            found.advise(path.as_path(), error.to_string(), "fix it, or move it away");
        }
        Ok(_) => {}
    }
}

/// Reads Claude Code's settings file, if it exists. Returns its path and content.
fn read_settings(snapshot: &DoctorSnapshot) -> Option<(PathBuf, Vec<u8>)> {
    let path = snapshot.claude_dir.join("settings.json");
    let bytes = fs::read(&path).ok()?;
    Some((path, bytes))
}

/// Returns the value of a setting, if it is a string.
fn setting(settings: &SettingsFile<'_>, section: Option<&str>, key: &str) -> Option<String> {
    settings.get(SettingPlace { section, key })?.as_str().map(str::to_owned)
}

pub(super) fn settings(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let Some((path, bytes)) = read_settings(snapshot) else { return };
    let Ok(settings) = SettingsFile::read(&bytes) else {
        let advice = "fix it by hand; JSON does not allow comments";
        found.advise(path.as_path(), "Claude Code's settings cannot be read", advice);
        return;
    };
    let variable = |name| setting(&settings, Some("env"), name);
    let init = "`brigade init` fixes it";
    if let Some(claude) = variable(env::CLAUDE).filter(|claude| !Path::new(claude).exists()) {
        let what = format!("{} points to {claude}, which does not exist", env::CLAUDE);
        found.advise(path.as_path(), what, init);
    }
    // Without this setting, Claude Code is not set up for brigade, and the other settings do not matter.
    let Some(command) = variable("CLAUDE_CODE_TEAMMATE_COMMAND") else { return };
    if env::programs().find(command.as_ref()).is_none() {
        let what =
            format!("CLAUDE_CODE_TEAMMATE_COMMAND points to {command}, which does not exist");
        found.advise(path.as_path(), what, init);
    }
    let teams = variable("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if !matches!(teams.as_deref(), Some("1" | "true")) {
        let what = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS is not 1, so agent teams are disabled";
        found.advise(path.as_path(), what, init);
    }
    match setting(&settings, None, "teammateMode") {
        Some(mode) if mode == "tmux" => {}
        mode => {
            let mode = mode.unwrap_or_else(|| "not set".to_owned());
            let what = format!(
                "teammateMode is {mode}, not tmux: teammates may run inside the lead's process"
            );
            found.advise(path.as_path(), what, init);
        }
    }
}
