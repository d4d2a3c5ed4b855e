//! What members need of this machine before anything is started: the program of their agent, tmux for a
//! window, git and a commit for a worktree.

use std::path::Path;

use brigade_core::driver::{self, AGENTS};

use super::spec::{MemberSpec, Place};
use super::worktree;
use crate::error::{CliError, Trouble};
use crate::{env, installed};

/// Something that is not here, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

/// The programs that these members need and this machine has not, each once.
pub(crate) fn lacks<'m>(members: impl IntoIterator<Item = &'m MemberSpec>) -> Vec<Lack> {
    let mut lacks: Vec<Lack> = Vec::new();
    for member in members {
        let window = (member.place != Place::Headless).then_some("tmux");
        let branch = member.worktree.then_some("git");
        let tools = window.into_iter().chain(branch).filter(|tool| !has(tool)).map(|tool| Lack {
            what: tool.to_owned(),
            remedy: format!("install {tool} with your package manager"),
        });
        for lack in agent(member).into_iter().chain(tools) {
            if !lacks.contains(&lack) {
                lacks.push(lack);
            }
        }
    }
    lacks
}

/// Refuses to start members that cannot run here.
pub(crate) fn refuse<'m>(
    members: impl IntoIterator<Item = &'m MemberSpec> + Clone,
) -> Result<(), CliError> {
    let lacks = lacks(members.clone());
    if !lacks.is_empty() {
        let names = lacks.iter().map(|lack| lack.what.clone()).collect();
        let error = CliError::failed(Trouble::NotInstalled { names });
        return Err(lacks.into_iter().fold(error, |error, lack| error.hint(lack.remedy)));
    }
    for member in members.into_iter().filter(|member| member.worktree) {
        worktree::can_branch(&member.cwd)?;
    }
    Ok(())
}

fn agent(member: &MemberSpec) -> Option<Lack> {
    if let Some(program) = &member.program {
        let what = program.display().to_string();
        let remedy = format!("mend the `program` of {}", member.name);
        return installed::find(program.as_os_str()).is_none().then_some(Lack { what, remedy });
    }
    let named = AGENTS.iter().find(|agent| agent.name == member.agent);
    let (there, remedy) = match named {
        Some(agent) => (installed::program(agent).is_some(), install(agent.package)),
        None => {
            let choice = driver::agent(&member.agent)?;
            (has(&choice.program), "install it, or mend its path".to_owned())
        }
    };
    (!there).then(|| Lack { what: member.agent.clone(), remedy })
}

/// How an agent is installed.
pub(crate) fn install(package: &str) -> String {
    format!("`npm install -g {package}`; `brigade agents` shows what is here")
}

fn has(program: &str) -> bool {
    // Without a path the system looks where it always does.
    let of_old = || ["/bin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).is_file());
    installed::find(program.as_ref()).is_some() || (!env::has_path() && of_old())
}
