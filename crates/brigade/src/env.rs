//! The environment variables that brigade reads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use brigade_agents::driver::{AGENTS, Agent};
use brigade_host::environment;
use brigade_host::installed::Programs;
pub(crate) use brigade_host::variables::*;
use brigade_wire::name::TeamName;

// This module does not read `NO_COLOR`: the library `anstream` does, and all output except the UI uses `anstream`.

/// Reads a variable. An empty value counts as unset, so that `BRIGADE_TEAM= brigade` runs without a team.
pub(crate) fn read(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns Claude Code's folder.
pub(crate) fn claude_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".claude"));
    read(CLAUDE_CONFIG_DIR).map(PathBuf::from).or_else(home)
}

/// Returns brigade's state folder. A relative `XDG_STATE_HOME` is ignored, as the XDG specification requires.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let xdg = read(XDG_STATE_HOME).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(read(HOME)?).join(".local/state"));
    Some(xdg.or_else(home)?.join("brigade"))
}

/// Returns the task list that Claude Code named for this process. A name that cannot be the name of a folder is ignored.
pub(crate) fn claude_task_list() -> Option<TeamName> {
    read(CLAUDE_TASK_LIST)?.to_str()?.parse().ok()
}

/// Returns the folder of brigade's configuration. A relative `XDG_CONFIG_HOME` is ignored, as the XDG specification
/// requires.
pub(crate) fn config_dir() -> Option<PathBuf> {
    let xdg = read(XDG_CONFIG_HOME).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(read(HOME)?).join(".config"));
    Some(xdg.or_else(home)?.join("brigade"))
}

/// Returns Codex's folder.
pub(crate) fn codex_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".codex"));
    read(CODEX_HOME).map(PathBuf::from).or_else(home)
}

/// Returns Gemini CLI's folder.
pub(crate) fn gemini_dir() -> Option<PathBuf> {
    Some(PathBuf::from(read(GEMINI_CLI_HOME).or_else(|| read(HOME))?).join(".gemini"))
}

/// Returns the program to start instead of the agent's usual one, for example from `BRIGADE_CODEX`.
pub(crate) fn agent_program(agent: &str) -> Option<OsString> {
    read(&format!("BRIGADE_{}", agent.to_uppercase()))
}

/// Returns extra arguments for an agent's program, for example from `BRIGADE_CODEX_ARGS`, split at spaces.
pub(crate) fn agent_arguments(agent: &str) -> Vec<String> {
    let args = read(&format!("BRIGADE_{}_ARGS", agent.to_uppercase()));
    let args = args.and_then(|args| args.into_string().ok()).unwrap_or_default();
    args.split_whitespace().map(str::to_owned).collect()
}

/// Returns whether the user lets Claude Code start teammates with this agent, `acp:COMMAND`.
pub(crate) fn allows_acp_command(agent: &str) -> bool {
    let commands = read(ACP_COMMANDS).and_then(|commands| commands.into_string().ok());
    let commands = commands.unwrap_or_default();
    agent.strip_prefix("acp:").is_some_and(|agent| {
        commands.lines().any(|command| !command.trim().is_empty() && command.trim() == agent.trim())
    })
}

/// Returns where to find programs: on the search path, or where variables such as `BRIGADE_CODEX` point.
pub(crate) fn programs() -> Programs {
    let named =
        AGENTS.iter().filter_map(|agent| Some((agent.name.to_owned(), agent_program(agent.name)?)));
    Programs {
        path: read(PATH),
        named: named.collect::<HashMap<String, OsString>>(),
        claude: read(CLAUDE).map(PathBuf::from),
        claude_dir: claude_dir(),
        running: std::env::current_exe().ok(),
        called: std::env::args_os().next(),
    }
}

/// Returns the environment variables that a member with this agent inherits. `listed` is the list of its team file.
pub(crate) fn inherited(agent: &Agent, listed: Option<&[String]>) -> Vec<(OsString, OsString)> {
    let more = read(AGENT_ENV).and_then(|names| names.into_string().ok()).unwrap_or_default();
    let more: Vec<&str> = more.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    environment::inherited(std::env::vars_os(), agent, listed, &more)
}

/// Returns the name of this host: `BRIGADE_HOST`, else the system's host name.
pub(crate) fn host_name() -> String {
    let named = read(HOST).map(|name| name.to_string_lossy().into_owned());
    named.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}
