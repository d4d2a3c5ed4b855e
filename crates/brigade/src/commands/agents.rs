//! `brigade agents`: which agents there are, and which of them are on this machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use brigade_agents::driver::{AGENTS, Agent, Can, MidTurn, ReadOnly, Told};
use brigade_core::text;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use brigade_host::installed;

use crate::error::CliError;
use crate::output::{self, Cell, FAINT, READY, STRONG, Table};
use crate::{env, exit};

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much a program may say about it.
const ENOUGH: u64 = 4096;

/// An agent, and what of it is here.
struct Sight {
    agent: Agent,
    path: Option<PathBuf>,
    /// `None` if it did not say in time.
    version: Option<String>,
}

pub(crate) async fn run(json: bool) -> Result<u8, CliError> {
    let sights = look(AGENTS).await;
    if json {
        output::print_json(&sights.iter().map(document).collect::<Vec<_>>())?;
        return Ok(exit::DONE);
    }
    let headings = ["AGENT", "VERSION", "MAIL IN A TURN", "READ-ONLY BY", "TELLS", "PROGRAM"];
    let mut table = Table::new(&headings);
    for sight in &sights {
        let (mail, read_only, usage) = words(sight.agent.can);
        let (version, program) = match &sight.path {
            Some(path) => {
                let version = sight.version.as_deref().unwrap_or("does not say");
                (Cell::new(READY, version), path.to_string_lossy().into_owned().into())
            }
            None => (Cell::new(FAINT, "not here"), Cell::new(FAINT, &install(sight.agent))),
        };
        let name = Cell::new(STRONG, sight.agent.name);
        table.row([name, version, mail.into(), read_only.into(), usage.into(), program]);
    }
    output::print(&table.render("", output::width()))?;
    Ok(exit::DONE)
}

/// Looks for all of them at once, and keeps their order.
async fn look(agents: &[Agent]) -> Vec<Sight> {
    let mut asked = JoinSet::new();
    let mut sights = Vec::new();
    for (at, &agent) in agents.iter().enumerate() {
        let path = env::programs().program(&agent);
        if let Some(path) = path.clone() {
            // Some take seconds to say what their package says.
            match installed::version(&path, agent.package) {
                None => {
                    asked.spawn(async move { (at, version(&path).await) });
                }
                known => {
                    sights.push(Sight { agent, path: Some(path), version: known });
                    continue;
                }
            }
        }
        sights.push(Sight { agent, path, version: None });
    }
    while let Some(answer) = asked.join_next().await {
        if let Ok((at, version)) = answer
            && let Some(sight) = sights.get_mut(at)
        {
            sight.version = version;
        }
    }
    sights
}

/// What a program says its version is. One that does not end is ended, with all it started.
async fn version(path: &Path) -> Option<String> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).kill_on_drop(true).spawn().ok()?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut out = BufReader::new(child.stdout.take()?.take(ENOUGH));
    let mut said = Vec::new();
    let ended = timeout(PATIENCE, async {
        // A child of its own may keep the pipe open; what counts is that the program ends.
        tokio::select! {
            _all = out.read_to_end(&mut said) => child.wait().await,
            status = child.wait() => status,
        }
    });
    if ended.await.is_err()
        && let Some(group) = group
    {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    // What was said just before the end may still be in the pipe.
    let _rest = timeout(Duration::from_millis(50), out.read_to_end(&mut said)).await;
    number(&String::from_utf8_lossy(&said))
}

/// The version in a text such as `codex-cli 1.2.3`; the first line, if nothing looks like one.
fn number(text: &str) -> Option<String> {
    let digits = |word: &&str| {
        word.contains('.') && word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
    };
    let word = text.split_whitespace().find(digits).map(|word| word.trim_start_matches('v'));
    let line = || text.lines().map(str::trim).find(|line| !line.is_empty());
    word.or_else(line).map(|found| text::cut(found, 40))
}

fn install(agent: Agent) -> String {
    format!("npm install -g {}", agent.package)
}

/// What an agent can do, for people.
pub(crate) fn words(can: Can) -> (&'static str, &'static str, &'static str) {
    let mail = match can.mid_turn {
        MidTurn::Steered => "joins it",
        MidTurn::Held => "waits",
    };
    let read_only = match can.read_only {
        ReadOnly::Sandbox => "the kernel",
        ReadOnly::PlanMode => "its plan mode",
        ReadOnly::Asking => "asking",
    };
    let usage = match can.usage {
        Told::Tokens => "tokens",
        Told::TokensAndCost => "tokens, cost",
        Told::Nothing => "nothing",
    };
    (mail, read_only, usage)
}

/// The same for programs.
fn document(sight: &Sight) -> serde_json::Value {
    let Sight { agent, path, version } = sight;
    let mid_turn = match agent.can.mid_turn {
        MidTurn::Steered => "steered",
        MidTurn::Held => "held",
    };
    let read_only = match agent.can.read_only {
        ReadOnly::Sandbox => "sandbox",
        ReadOnly::PlanMode => "plan_mode",
        ReadOnly::Asking => "asking",
    };
    let usage = match agent.can.usage {
        Told::Tokens => "tokens",
        Told::TokensAndCost => "tokens_and_cost",
        Told::Nothing => "nothing",
    };
    json!({
        "name": agent.name,
        "title": agent.title,
        "installed": path.is_some(),
        "path": path,
        "version": version,
        "can": { "mid_turn": mid_turn, "read_only": read_only, "usage": usage },
        "install": install(*agent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        for (said, version) in [
            ("codex-cli 0.166.0\n", "0.166.0"),
            ("2.1.325 (Claude Code)\n", "2.1.325"),
            ("\nv1.18.33", "1.18.33"),
            ("Copilot CLI\nCommit: ab12cd\nVersion 1.0.102", "1.0.102"),
            ("\n  unreleased \n", "unreleased"),
        ] {
            assert_eq!(number(said).as_deref(), Some(version), "{said:?}");
        }
        assert_eq!(number(" \n"), None);
    }
}
