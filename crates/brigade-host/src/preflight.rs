//! What members need of this machine before anything is started: the program of their agent, tmux for a
//! window, git and a commit for a worktree.

use brigade_agents::driver::{self, AGENTS};

use crate::error::{HostError, Trouble};
use crate::installed::Programs;
use crate::spec::{MemberSpec, Place};
use crate::worktree;

/// Something that is not here, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    pub what: String,
    pub remedy: String,
}

/// The programs that these members need and this machine has not, each once.
pub fn lacks<'m>(
    programs: &Programs,
    members: impl IntoIterator<Item = &'m MemberSpec>,
) -> Vec<Lack> {
    let mut lacks: Vec<Lack> = Vec::new();
    for member in members {
        let window = (member.place != Place::Headless).then_some("tmux");
        let branch = member.worktree.then_some("git");
        let tools =
            window.into_iter().chain(branch).filter(|tool| !programs.has(tool)).map(|tool| Lack {
                what: tool.to_owned(),
                remedy: format!("install {tool} with your package manager"),
            });
        for lack in agent(programs, member).into_iter().chain(tools) {
            if !lacks.contains(&lack) {
                lacks.push(lack);
            }
        }
    }
    lacks
}

/// Refuses to start members that cannot run here.
pub fn refuse<'m>(
    programs: &Programs,
    members: impl IntoIterator<Item = &'m MemberSpec> + Clone,
) -> Result<(), HostError> {
    let lacks = lacks(programs, members.clone());
    if !lacks.is_empty() {
        let names = lacks.iter().map(|lack| lack.what.clone()).collect();
        let error = HostError::failed(Trouble::NotInstalled { names });
        return Err(lacks.into_iter().fold(error, |error, lack| error.hint(lack.remedy)));
    }
    for member in members.into_iter().filter(|member| member.worktree) {
        worktree::can_branch(&member.cwd)?;
    }
    Ok(())
}

fn agent(programs: &Programs, member: &MemberSpec) -> Option<Lack> {
    if let Some(program) = &member.program {
        let what = program.display().to_string();
        let remedy = format!("mend the `program` of {}", member.name);
        return programs.find(program.as_os_str()).is_none().then_some(Lack { what, remedy });
    }
    let named = AGENTS.iter().find(|agent| agent.name == member.agent);
    let (there, remedy) = match named {
        Some(agent) => (programs.program(agent).is_some(), install(agent.package)),
        None => {
            let choice = driver::agent(&member.agent)?;
            (programs.has(&choice.program), "install it, or mend its path".to_owned())
        }
    };
    (!there).then(|| Lack { what: member.agent.clone(), remedy })
}

/// How an agent is installed.
pub fn install(package: &str) -> String {
    format!("`npm install -g {package}`; `brigade agents` shows what is here")
}
