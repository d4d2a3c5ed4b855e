//! `brigade agents`: lists the supported agents and whether they are installed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use brigade_agents::driver::{
    AGENTS, Agent, AgentCapabilities, LoginState, MidTurn, ReadOnly, UsageReporting,
};
use brigade_core::text;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use brigade_host::installed;
use brigade_host::login::state_key;

use crate::error::CliError;
use crate::output::{self, BUSY, Cell, FAINT, READY, STRONG, Table};
use crate::{env, exit, login};

/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes to read from a program's version output.
const MAX_VERSION_OUTPUT: u64 = 4096;

/// An agent, and where it is installed on this machine.
struct Installation {
    agent: Agent,
    path: Option<PathBuf>,
    /// The version; `None` if the program did not print it in time.
    version: Option<String>,
    /// Whether a person has logged in; `None` if the agent is not installed.
    login: Option<LoginState>,
}

pub(crate) async fn run(json: bool) -> Result<u8, CliError> {
    // Ask for the logins at the same time, because some programs take seconds to start.
    let (mut installations, logins) =
        tokio::join!(find_installed(AGENTS), login::check_agents(AGENTS));
    for (installation, login) in installations.iter_mut().zip(logins) {
        installation.login = login;
    }
    if json {
        output::print_json(&installations.iter().map(document).collect::<Vec<_>>())?;
        return Ok(exit::DONE);
    }
    let width = output::width();
    let wide = table(&installations, TableWidth::Wide);
    let table = match wide.fits("", width) {
        true => wide,
        // The command that installs an agent must not be cut.
        false => table(&installations, TableWidth::Narrow).wrapping_last(),
    };
    output::print(&table.render("", width))?;
    let is_out = |installation: &&Installation| installation.login == Some(LoginState::LoggedOut);
    for installation in installations.iter().filter(is_out) {
        output::hint(&format!("{}: {}", installation.agent.name, installation.agent.login));
    }
    Ok(exit::DONE)
}

/// How wide the table of the agents may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableWidth {
    /// With a column for each capability.
    Wide,
    /// With the capabilities below each agent.
    Narrow,
}

fn table(installations: &[Installation], width: TableWidth) -> Table {
    let mut headings = vec!["AGENT", "VERSION", "LOGIN"];
    if width == TableWidth::Wide {
        headings.extend(["NEW MESSAGES", "PLAN MODE ENFORCED BY", "REPORTS USAGE"]);
    }
    headings.push("PROGRAM");
    let mut table = Table::new(&headings);
    for installation in installations {
        let (mail, read_only, usage) = capability_text(installation.agent.can);
        let (version, program) = match &installation.path {
            Some(path) => {
                let version = installation.version.as_deref().unwrap_or("unknown");
                (Cell::new(READY, version), path.to_string_lossy().into_owned().into())
            }
            None => {
                (Cell::new(FAINT, "not installed"), Cell::new(FAINT, &install(installation.agent)))
            }
        };
        let name = Cell::new(STRONG, installation.agent.name);
        let login = match installation.login {
            Some(LoginState::LoggedOut) => Cell::new(BUSY, "logged out"),
            Some(LoginState::Present) => Cell::new(READY, "credentials present"),
            Some(LoginState::Unknown) => "unknown".into(),
            None => Cell::new(FAINT, "–"),
        };
        match width {
            TableWidth::Wide => {
                let cells = [name, version, login, mail.into(), read_only.into(), usage.into()];
                table.row(cells.into_iter().chain([program]));
            }
            TableWidth::Narrow => {
                table.row([name, version, login, program]);
                table.detail(&format!(
                    "new messages {mail}; plan mode enforced by {read_only}; reports usage: {usage}"
                ));
            }
        }
    }
    table
}

/// Finds the installed agents and their versions concurrently. The result has the order of `agents`.
async fn find_installed(agents: &[Agent]) -> Vec<Installation> {
    let mut queries = JoinSet::new();
    let mut installations = Vec::new();
    for (at, &agent) in agents.iter().enumerate() {
        let path = env::programs().program(&agent);
        if let Some(path) = path.clone() {
            // Prefer the version in the package's metadata: some programs take seconds to print theirs.
            match installed::version(&path, agent.package) {
                None => {
                    queries.spawn(async move { (at, version(&path).await) });
                }
                known => {
                    installations.push(Installation {
                        agent,
                        path: Some(path),
                        version: known,
                        login: None,
                    });
                    continue;
                }
            }
        }
        installations.push(Installation { agent, path, version: None, login: None });
    }
    while let Some(answer) = queries.join_next().await {
        if let Ok((at, version)) = answer
            && let Some(installation) = installations.get_mut(at)
        {
            installation.version = version;
        }
    }
    installations
}

/// Runs a program with `--version` and returns the version. On timeout, kills the program and its child processes.
async fn version(path: &Path) -> Option<String> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).kill_on_drop(true).spawn().ok()?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut out = BufReader::new(child.stdout.take()?.take(MAX_VERSION_OUTPUT));
    let mut output = Vec::new();
    let ended = timeout(VERSION_TIMEOUT, async {
        // A child of the program may keep the pipe open, so also stop reading when the program exits.
        tokio::select! {
            _all = out.read_to_end(&mut output) => child.wait().await,
            status = child.wait() => status,
        }
    });
    if ended.await.is_err()
        && let Some(group) = group
    {
        let _already_gone = kill_process_group(group, Signal::KILL);
    }
    // Output written just before the program exited may still be in the pipe.
    let _rest = timeout(Duration::from_millis(50), out.read_to_end(&mut output)).await;
    parse_version(&String::from_utf8_lossy(&output))
}

/// Finds the version in a text such as `codex-cli 1.2.3`. Returns the first line if nothing looks like a version.
fn parse_version(text: &str) -> Option<String> {
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

/// Describes an agent's capabilities: when it receives new messages, what enforces plan mode, and the usage it
/// reports.
pub(crate) fn capability_text(
    can: AgentCapabilities,
) -> (&'static str, &'static str, &'static str) {
    let mail = match can.mid_turn {
        MidTurn::Steered => "mid-turn",
        MidTurn::Held => "after the turn",
    };
    let read_only = match can.read_only {
        ReadOnly::Sandbox => "sandbox",
        ReadOnly::PlanMode => "its own plan mode",
        ReadOnly::Asking => "permission requests",
    };
    let usage = match can.usage {
        UsageReporting::Tokens => "tokens",
        UsageReporting::TokensAndCost => "tokens, cost",
        UsageReporting::Nothing => "no",
    };
    (mail, read_only, usage)
}

/// Returns an agent as JSON.
fn document(installation: &Installation) -> serde_json::Value {
    let Installation { agent, path, version, login } = installation;
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
        UsageReporting::Tokens => "tokens",
        UsageReporting::TokensAndCost => "tokens_and_cost",
        UsageReporting::Nothing => "nothing",
    };
    json!({
        "name": agent.name,
        "title": agent.title,
        "installed": path.is_some(),
        "path": path,
        "version": version,
        "login": login.map(state_key),
        "log_in": agent.login,
        "can": { "mid_turn": mid_turn, "read_only": read_only, "usage": usage },
        "install": install(*agent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_in_program_output() {
        for (said, version) in [
            ("codex-cli 0.166.0\n", "0.166.0"),
            ("2.1.325 (Claude Code)\n", "2.1.325"),
            ("\nv1.18.33", "1.18.33"),
            ("Copilot CLI\nCommit: ab12cd\nVersion 1.0.102", "1.0.102"),
            ("\n  unreleased \n", "unreleased"),
        ] {
            assert_eq!(parse_version(said).as_deref(), Some(version), "{said:?}");
        }
        assert_eq!(parse_version(" \n"), None);
    }
}
