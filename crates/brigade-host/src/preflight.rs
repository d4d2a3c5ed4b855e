//! Runs before any member starts. Checks that the programs of the members' agents are installed. Also checks for
//! tmux if a member needs a window, and for git and a commit if a member needs a worktree.

use brigade_agents::driver::{self, AGENTS};

use crate::error::{HostError, Trouble};
use crate::installed::Programs;
use crate::spec::{MemberPlace, MemberSpec};
use crate::{suggest, worktree};

/// A program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    /// The name of the program.
    pub what: String,
    /// How to install the program.
    pub remedy: String,
}

/// Returns the programs that these members need and that are not installed, without duplicates.
pub fn missing_programs<'m>(
    programs: &Programs,
    members: impl IntoIterator<Item = &'m MemberSpec>,
) -> Vec<MissingProgram> {
    let mut missing: Vec<MissingProgram> = Vec::new();
    for member in members {
        let needs_window = matches!(member.place, MemberPlace::Tmux | MemberPlace::Native);
        let window = needs_window.then_some("tmux");
        let branch = member.worktree.then_some("git");
        let tools =
            window.into_iter().chain(branch).filter(|tool| !programs.has(tool)).map(|tool| {
                MissingProgram {
                    what: tool.to_owned(),
                    remedy: format!("install {tool} with your package manager"),
                }
            });
        for program in missing_agent(programs, member).into_iter().chain(tools) {
            if !missing.contains(&program) {
                missing.push(program);
            }
        }
    }
    missing
}

/// Fails if a member cannot run on this host, because a program or a commit is missing.
pub fn check<'m>(
    programs: &Programs,
    members: impl IntoIterator<Item = &'m MemberSpec> + Clone,
) -> Result<(), HostError> {
    let missing = missing_programs(programs, members.clone());
    if !missing.is_empty() {
        let names = missing.iter().map(|program| program.what.clone()).collect();
        let error = HostError::failed(Trouble::NotInstalled { names });
        return Err(missing.into_iter().fold(error, |error, program| error.hint(program.remedy)));
    }
    check_worktrees(programs, members)
}

/// Fails if a member cannot get a worktree, because its folder is not in a git repository with a commit. Checks
/// nothing if git is not installed.
pub fn check_worktrees<'m>(
    programs: &Programs,
    members: impl IntoIterator<Item = &'m MemberSpec>,
) -> Result<(), HostError> {
    let mut members = members.into_iter().filter(|member| member.worktree && programs.has("git"));
    members.try_for_each(|member| worktree::check_can_branch(&member.cwd))
}

/// Returns why an agent cannot run in this place: only Claude Code can be native.
pub(crate) fn why_not_native(agent: &str, place: MemberPlace) -> Option<String> {
    let is_native = |agent: &str| driver::agent(agent).is_some_and(|choice| choice.agent.native);
    if place != MemberPlace::Native || is_native(agent) {
        return None;
    }
    let natives = AGENTS.iter().filter(|agent| agent.native).map(|agent| agent.name);
    let natives = suggest::list(&natives.collect::<Vec<_>>());
    Some(format!("{agent:?} cannot be native; only {natives} can"))
}

/// Fails if a team on a NATS server has native members, because Claude Code needs the team in files on this host.
/// `is_shared` says that the team is on a NATS server.
pub(crate) fn refuse_native<'m>(
    is_shared: bool,
    members: impl IntoIterator<Item = &'m MemberSpec>,
) -> Result<(), HostError> {
    let natives = members.into_iter().filter(|member| member.place == MemberPlace::Native);
    let names: Vec<String> = natives.map(|member| member.name.to_string()).collect();
    if !is_shared || names.is_empty() {
        return Ok(());
    }
    let error = HostError::failed(Trouble::NativeInEngine { names });
    Err(error
        .hint(
            "start these members with `--store files`, and connect both stores with `brigade link`",
        )
        .hint("or set place = \"headless\" or \"tmux\", so that brigade runs Claude Code"))
}

/// Returns the program of the member's agent if that program is not installed.
fn missing_agent(programs: &Programs, member: &MemberSpec) -> Option<MissingProgram> {
    if let Some(program) = &member.program {
        let what = program.display().to_string();
        let remedy = format!("fix the `program` of {}", member.name);
        return programs
            .find(program.as_os_str())
            .is_none()
            .then_some(MissingProgram { what, remedy });
    }
    let named = AGENTS.iter().find(|agent| agent.name == member.agent);
    let (is_installed, remedy) = match named {
        Some(agent) => (programs.program(agent).is_some(), install(agent.package)),
        None => {
            let choice = driver::agent(&member.agent)?;
            (programs.has(&choice.program), "install it, or fix its path".to_owned())
        }
    };
    (!is_installed).then(|| MissingProgram { what: member.agent.clone(), remedy })
}

/// Returns the hint on how to install an agent.
pub fn install(package: &str) -> String {
    format!("`npm install -g {package}`; `brigade agents` lists the installed agents")
}
