//! Every environment variable brigade reads, by name.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Which team, where `--team` does not say.
pub(crate) const TEAM: &str = "BRIGADE_TEAM";
/// Who I am, where `--as` does not say.
pub(crate) const AS: &str = "BRIGADE_AS";
/// The key by which I know my lead, as Claude Code gives it to its teammates.
pub(crate) const LEAD_KEY: &str = "BRIGADE_LEAD_KEY";
/// Set where the member's mail comes to it as turns, so that it is not offered it twice.
pub(crate) const DELIVERED: &str = "BRIGADE_DELIVERED";
/// Set where an agent acts: who answers plans and requests for leave, `person` or `lead`.
pub(crate) const ANSWERS: &str = "BRIGADE_ANSWERS";
/// What an acknowledged message survives, where `--durability` does not say.
pub(crate) const DURABILITY: &str = "BRIGADE_DURABILITY";
/// Where the teams live, where `--store` does not say.
pub(crate) const STORE: &str = "BRIGADE_STORE";
/// The file with the seat's credentials in an engine, where `--creds` does not say.
pub(crate) const CREDS: &str = "BRIGADE_CREDS";
/// The file with the certificate authority of an engine, where `--ca` does not say.
pub(crate) const CA: &str = "BRIGADE_CA";
/// The file with this client's certificate, where `--cert` does not say.
pub(crate) const CERT: &str = "BRIGADE_CERT";
/// The file with its key, where `--key` does not say.
pub(crate) const KEY: &str = "BRIGADE_KEY";
/// The name of this host, where the system's own is no good.
pub(crate) const HOST: &str = "BRIGADE_HOST";
/// Where Claude Code's own program is, if it is not the `claude` on the path.
pub(crate) const CLAUDE: &str = "BRIGADE_CLAUDE";
/// What to log, as in `debug` or `brigade_core=trace,warn`. Unset, nothing is logged.
pub(crate) const LOG: &str = "BRIGADE_LOG";
/// Where to log; standard error if unset.
pub(crate) const LOG_FILE: &str = "BRIGADE_LOG_FILE";
/// Claude Code's own variable for its folder.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Where programs keep their state.
pub(crate) const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Claude Code's own variable that switches its teams on.
pub(crate) const CLAUDE_TEAMS: &str = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";
/// Codex's own variable for its folder.
pub(crate) const CODEX_HOME: &str = "CODEX_HOME";
/// Gemini CLI's own variable for the home its folder is in.
pub(crate) const GEMINI_CLI_HOME: &str = "GEMINI_CLI_HOME";
/// The person's own shell.
pub(crate) const SHELL: &str = "SHELL";
/// Set where somebody sits in tmux.
pub(crate) const TMUX: &str = "TMUX";
/// Set where somebody sits at another machine.
pub(crate) const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Set where nobody wants colours.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// Where programs are looked for.
const PATH: &str = "PATH";
/// The home directory.
pub(crate) const HOME: &str = "HOME";
/// What kind of terminal this is.
pub(crate) const TERM: &str = "TERM";
/// What a member inherits though its `env` does not name it: what no program can do without.
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
// `NO_COLOR` is read by `anstream` as well, which every character of ours goes through but those of `ui`.

/// The value of a variable. An empty one counts as unset, so that `BRIGADE_TEAM= brigade` unsets it.
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

/// Codex's own folder.
pub(crate) fn codex_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".codex"));
    read(CODEX_HOME).map(PathBuf::from).or_else(home)
}

/// Gemini CLI's own folder.
pub(crate) fn gemini_dir() -> Option<PathBuf> {
    Some(PathBuf::from(read(GEMINI_CLI_HOME).or_else(|| read(HOME))?).join(".gemini"))
}

/// Every program of that name on the path, the first one first.
pub(crate) fn on_path(program: &OsStr) -> impl Iterator<Item = PathBuf> {
    let dirs: Vec<PathBuf> =
        read(PATH).map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let program = program.to_owned();
    let paths = dirs.into_iter().map(move |dir| dir.join(&program));
    paths.filter(|path| {
        path.metadata().is_ok_and(|its| its.is_file() && its.permissions().mode() & 0o111 != 0)
    })
}

/// Whether it is said where programs are looked for.
pub(crate) fn has_path() -> bool {
    read(PATH).is_some()
}

/// The program of an agent, where it is not the one on the path: `BRIGADE_CODEX` for one.
pub(crate) fn agent_program(agent: &str) -> Option<OsString> {
    read(&format!("BRIGADE_{}", agent.to_uppercase()))
}

/// More arguments for an agent's program, separated by spaces: `BRIGADE_CODEX_ARGS` for one.
pub(crate) fn agent_arguments(agent: &str) -> Vec<String> {
    let words = read(&format!("BRIGADE_{}_ARGS", agent.to_uppercase()));
    let words = words.and_then(|words| words.into_string().ok()).unwrap_or_default();
    words.split_whitespace().map(str::to_owned).collect()
}
