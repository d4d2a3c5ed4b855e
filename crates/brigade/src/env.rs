//! The environment variables that brigade reads.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// The team, if `--team` is not given.
pub(crate) const TEAM: &str = "BRIGADE_TEAM";
/// The member to act as, if `--as` is not given.
pub(crate) const AS: &str = "BRIGADE_AS";
/// The public key of the team's lead, which Claude Code passes to its teammates.
pub(crate) const LEAD_KEY: &str = "BRIGADE_LEAD_KEY";
/// Set if the member's mail is delivered as turns, so that the MCP server does not offer it a second time.
pub(crate) const DELIVERED: &str = "BRIGADE_DELIVERED";
/// Set in an agent's environment: who answers plans and permission requests, `person` or `lead`.
pub(crate) const ANSWERS: &str = "BRIGADE_ANSWERS";
/// Durability of acknowledged messages, if `--durability` is not given.
pub(crate) const DURABILITY: &str = "BRIGADE_DURABILITY";
/// Where the teams are stored, if `--store` is not given.
pub(crate) const STORE: &str = "BRIGADE_STORE";
/// The credentials file for the NATS server, if `--creds` is not given.
pub(crate) const CREDS: &str = "BRIGADE_CREDS";
/// The CA certificate file for TLS, if `--ca` is not given.
pub(crate) const CA: &str = "BRIGADE_CA";
/// The client certificate file for TLS, if `--cert` is not given.
pub(crate) const CERT: &str = "BRIGADE_CERT";
/// The private key file of the client certificate, if `--key` is not given.
pub(crate) const KEY: &str = "BRIGADE_KEY";
/// The name of this host, if the system's own is unsuitable.
pub(crate) const HOST: &str = "BRIGADE_HOST";
/// The path of Claude Code's program, if it is not the `claude` on the PATH.
pub(crate) const CLAUDE: &str = "BRIGADE_CLAUDE";
/// The log filter, such as `debug` or `brigade_core=trace,warn`. Without it, nothing is logged.
pub(crate) const LOG: &str = "BRIGADE_LOG";
/// The log file; standard error if unset.
pub(crate) const LOG_FILE: &str = "BRIGADE_LOG_FILE";
/// Claude Code's variable for its configuration folder.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The base folder for program state.
pub(crate) const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Claude Code's variable that enables agent teams.
pub(crate) const CLAUDE_TEAMS: &str = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";
/// Codex's variable for its configuration folder.
pub(crate) const CODEX_HOME: &str = "CODEX_HOME";
/// Gemini CLI's variable for the folder that contains its configuration folder.
pub(crate) const GEMINI_CLI_HOME: &str = "GEMINI_CLI_HOME";
/// The user's shell.
pub(crate) const SHELL: &str = "SHELL";
/// Set inside tmux.
pub(crate) const TMUX: &str = "TMUX";
/// Set in an SSH session.
pub(crate) const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Set to disable colours.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// The search path for programs.
const PATH: &str = "PATH";
/// The home directory.
pub(crate) const HOME: &str = "HOME";
/// The terminal type.
pub(crate) const TERM: &str = "TERM";
/// Variables that a member always inherits, even if its `env` does not list them.
pub(crate) const ALWAYS: &[&str] = &[
    PATH,
    HOME,
    "USER",
    "LOGNAME",
    SHELL,
    TERM,
    "COLORTERM",
    "LANG",
    "TZ",
    "TMPDIR",
    NO_COLOR,
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    XDG_STATE_HOME,
    CLAUDE_CONFIG_DIR,
    CODEX_HOME,
    GEMINI_CLI_HOME,
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
// `anstream` reads `NO_COLOR` as well. All output except that of `ui` goes through it.

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

/// Every program of this name on the PATH, in search order.
pub(crate) fn on_path(program: &OsStr) -> impl Iterator<Item = PathBuf> {
    let dirs: Vec<PathBuf> =
        read(PATH).map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let program = program.to_owned();
    let paths = dirs.into_iter().map(move |dir| dir.join(&program));
    paths.filter(|path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// Whether `PATH` is set.
pub(crate) fn has_path() -> bool {
    read(PATH).is_some()
}

/// The program of an agent, if its variable is set, for example `BRIGADE_CODEX`.
pub(crate) fn agent_program(agent: &str) -> Option<OsString> {
    read(&format!("BRIGADE_{}", agent.to_uppercase()))
}

/// Extra arguments for an agent's program, separated by spaces, for example from `BRIGADE_CODEX_ARGS`.
pub(crate) fn agent_arguments(agent: &str) -> Vec<String> {
    let args = read(&format!("BRIGADE_{}_ARGS", agent.to_uppercase()));
    let args = args.and_then(|args| args.into_string().ok()).unwrap_or_default();
    args.split_whitespace().map(str::to_owned).collect()
}
