//! The environment variables that brigade reads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use brigade_agents::driver::AGENTS;
use brigade_host::installed::Programs;
pub(crate) use brigade_host::variables::*;

// `NO_COLOR` is read by `anstream` as well, which every character of ours goes through but those of `ui`.

/// Reads a variable. An empty value counts as unset, so that `BRIGADE_TEAM= brigade` unsets it.
pub(crate) fn read(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Claude Code's folder.
pub(crate) fn claude_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".claude"));
    read(CLAUDE_CONFIG_DIR).map(PathBuf::from).or_else(home)
}

/// Brigade's own folder. The XDG rules ignore a relative path.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let xdg = read(XDG_STATE_HOME).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(read(HOME)?).join(".local/state"));
    Some(xdg.or_else(home)?.join("brigade"))
}

/// Codex's folder.
pub(crate) fn codex_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".codex"));
    read(CODEX_HOME).map(PathBuf::from).or_else(home)
}

/// Gemini CLI's folder.
pub(crate) fn gemini_dir() -> Option<PathBuf> {
    Some(PathBuf::from(read(GEMINI_CLI_HOME).or_else(|| read(HOME))?).join(".gemini"))
}

/// The program of an agent, where it is not the one on the path: `BRIGADE_CODEX` for one.
pub(crate) fn agent_program(agent: &str) -> Option<OsString> {
    read(&format!("BRIGADE_{}", agent.to_uppercase()))
}

/// Extra arguments for an agent's program, separated by spaces, for example from `BRIGADE_CODEX_ARGS`.
pub(crate) fn agent_arguments(agent: &str) -> Vec<String> {
    let args = read(&format!("BRIGADE_{}_ARGS", agent.to_uppercase()));
    let args = args.and_then(|args| args.into_string().ok()).unwrap_or_default();
    args.split_whitespace().map(str::to_owned).collect()
}

/// The search path and the programs that the environment names.
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

/// The name of this host.
pub(crate) fn host_name() -> String {
    let named = read(HOST).map(|name| name.to_string_lossy().into_owned());
    named.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}
