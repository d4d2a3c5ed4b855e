//! What is installed and set on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use brigade_agents::driver::{self, AGENTS};
use brigade_wire::settings::{Place as At, Settings};

use super::Found;
use super::snapshot::House;
use crate::env;
use brigade_host::installed;
use brigade_host::spec::{MemberSpec, Place};
use brigade_host::team_file::{self, FileError};

pub(super) fn outdated(_: &House, found: &mut Found) {
    for agent in AGENTS {
        let Some(path) = env::programs().program(agent) else { continue };
        let tested = agent.tested;
        let Some(version) = installed::version(&path, agent.package) else { continue };
        if numbers(&version) < numbers(tested) {
            let what =
                format!("{} {version}; tested as a member with {tested} and later", agent.title);
            let advice = format!("npm install -g {}@latest", agent.package);
            found.advise(path.as_path(), what, advice);
        }
    }
}

/// A version as numbers, which compare as versions do.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

/// Every member that is to run here, and where that is said.
fn wanted(house: &House) -> Vec<(String, MemberSpec)> {
    let mut wanted = Vec::new();
    for hosted in &house.hosted {
        let members = hosted.members.iter().filter_map(|member| member.spec.clone());
        for spec in members {
            wanted.push((format!("{} of team {}", spec.name, hosted.team), spec));
        }
    }
    if let Some(Ok(team)) = file().map(|path| team_file::read(&path)) {
        for spec in team.members.into_iter().chain(team.lead) {
            let place = format!("{} in {}", spec.name, team_file::NAME);
            if !wanted.iter().any(|(_, its)| its.name == spec.name && its.agent == spec.agent) {
                wanted.push((place, spec));
            }
        }
    }
    wanted
}

/// The team's file of the folder one stands in.
fn file() -> Option<PathBuf> {
    team_file::find(&std::env::current_dir().ok()?).ok()
}

pub(super) fn missing(house: &House, found: &mut Found) {
    for (place, spec) in wanted(house) {
        let Some(choice) = driver::agent(&spec.agent) else {
            let what = format!("brigade has no driver for its agent {:?}", spec.agent);
            found.advise(place, what, "`brigade agents` lists those it has");
            continue;
        };
        let is_named = AGENTS.iter().find(|agent| agent.name == spec.agent);
        let (there, advice) = match is_named {
            Some(agent) => {
                (env::programs().program(agent), format!("npm install -g {}", agent.package))
            }
            None => (
                env::programs().find(choice.program.as_ref()),
                "install it, or fix its path".to_owned(),
            ),
        };
        if there.is_none() {
            let what = format!("its agent {} is not installed", choice.program);
            found.advise(place, what, advice);
        }
    }
}

fn has_tmux() -> bool {
    env::programs().find("tmux".as_ref()).is_some()
}

pub(super) fn no_tmux(house: &House, found: &mut Found) {
    if has_tmux() {
        return;
    }
    let install = "install tmux with your package manager";
    for (place, _) in wanted(house).into_iter().filter(|(_, spec)| spec.place != Place::Headless) {
        found.advise(place, "it is to run in tmux, which is not installed", install);
    }
    if let Some((path, Ok(settings))) =
        read(house).as_ref().map(|(path, bytes)| (path, Settings::read(bytes)))
        && set(&settings, None, "teammateMode").as_deref() == Some("tmux")
    {
        found.advise(
            path.as_path(),
            "teammates are to run in tmux, which is not installed",
            install,
        );
    }
}

pub(super) fn team_file(_: &House, found: &mut Found) {
    let Some(path) = file() else { return };
    match team_file::read(&path) {
        Err(FileError::Mistakes { mistakes, .. }) => {
            let what = format!("it has mistakes: {}", mistakes.len());
            found.advise(path.as_path(), what, "`brigade up --check` shows them");
        }
        Err(error) => found.advise(path.as_path(), error.to_string(), "mend it, or move it away"),
        Ok(_) => {}
    }
}

/// Claude Code's settings, if there are any.
fn read(house: &House) -> Option<(PathBuf, Vec<u8>)> {
    let path = house.claude_dir.join("settings.json");
    let bytes = fs::read(&path).ok()?;
    Some((path, bytes))
}

/// A setting that is a text.
fn set(settings: &Settings<'_>, section: Option<&str>, key: &str) -> Option<String> {
    settings.get(At { section, key })?.as_str().map(str::to_owned)
}

pub(super) fn settings(house: &House, found: &mut Found) {
    let Some((path, bytes)) = read(house) else { return };
    let Ok(settings) = Settings::read(&bytes) else {
        let advice = "mend it by hand; comments are not JSON";
        found.advise(path.as_path(), "Claude Code's settings cannot be read", advice);
        return;
    };
    let variable = |name| set(&settings, Some("env"), name);
    let init = "`brigade init` sets it right";
    if let Some(claude) = variable(env::CLAUDE).filter(|claude| !Path::new(claude).exists()) {
        let what = format!("{} names {claude}, which is not there", env::CLAUDE);
        found.advise(path.as_path(), what, init);
    }
    // Whoever did not ask for brigade has nothing to set.
    let Some(command) = variable("CLAUDE_CODE_TEAMMATE_COMMAND") else { return };
    if env::programs().find(command.as_ref()).is_none() {
        let what = format!("CLAUDE_CODE_TEAMMATE_COMMAND names {command}, which is not there");
        found.advise(path.as_path(), what, init);
    }
    let teams = variable("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if !matches!(teams.as_deref(), Some("1" | "true")) {
        let what = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS is not 1, so there are no teams";
        found.advise(path.as_path(), what, init);
    }
    match set(&settings, None, "teammateMode") {
        Some(mode) if mode == "tmux" => {}
        mode => {
            let mode = mode.unwrap_or_else(|| "not set".to_owned());
            let what =
                format!("teammateMode is {mode}, not tmux: teammates may run inside the lead");
            found.advise(path.as_path(), what, init);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        for (older, newer) in [
            ("0.61.0", "0.166.0"),
            ("2.1.50", "2.1.325"),
            ("1.0.102-beta.1", "1.0.103"),
            ("1.18.33", "2.0.0"),
        ] {
            assert!(numbers(older) < numbers(newer), "{older} {newer}");
        }
        assert_eq!(numbers("1.2.3"), numbers("1.2.3+build"));
    }
}
