//! The names of the environment variables brigade uses. A front end reads them; this crate only hands some
//! of them on to the programs it starts.

/// Which team, where `--team` does not say.
pub const TEAM: &str = "BRIGADE_TEAM";
/// Who I am, where `--as` does not say.
pub const AS: &str = "BRIGADE_AS";
/// The key by which I know my lead, as Claude Code gives it to its teammates.
pub const LEAD_KEY: &str = "BRIGADE_LEAD_KEY";
/// Set where the member's mail comes to it as turns, so that it is not offered it twice.
pub const DELIVERED: &str = "BRIGADE_DELIVERED";
/// Set where an agent acts: who answers plans and requests for leave, `person` or `lead`.
pub const ANSWERS: &str = "BRIGADE_ANSWERS";
/// What an acknowledged message survives, where `--durability` does not say.
pub const DURABILITY: &str = "BRIGADE_DURABILITY";
/// Where the teams live, where `--store` does not say.
pub const STORE: &str = "BRIGADE_STORE";
/// The file with the seat's credentials in an engine, where `--creds` does not say.
pub const CREDS: &str = "BRIGADE_CREDS";
/// The file with the certificate authority of an engine, where `--ca` does not say.
pub const CA: &str = "BRIGADE_CA";
/// The file with this client's certificate, where `--cert` does not say.
pub const CERT: &str = "BRIGADE_CERT";
/// The file with its key, where `--key` does not say.
pub const KEY: &str = "BRIGADE_KEY";
/// The name of this host, where the system's own is no good.
pub const HOST: &str = "BRIGADE_HOST";
/// Where Claude Code's own program is, if it is not the `claude` on the path.
pub const CLAUDE: &str = "BRIGADE_CLAUDE";
/// What to log, as in `debug` or `brigade_core=trace,warn`. Unset, nothing is logged.
pub const LOG: &str = "BRIGADE_LOG";
/// Where to log; standard error if unset.
pub const LOG_FILE: &str = "BRIGADE_LOG_FILE";
/// Claude Code's own variable for its folder.
pub const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Where programs keep their state.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Claude Code's own variable that switches its teams on.
pub const CLAUDE_TEAMS: &str = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";
/// Codex's own variable for its folder.
pub const CODEX_HOME: &str = "CODEX_HOME";
/// Gemini CLI's own variable for the home its folder is in.
pub const GEMINI_CLI_HOME: &str = "GEMINI_CLI_HOME";
/// The person's own shell.
pub const SHELL: &str = "SHELL";
/// Set where somebody sits in tmux.
pub const TMUX: &str = "TMUX";
/// Set where somebody sits at another machine.
pub const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Set where nobody wants colours.
pub const NO_COLOR: &str = "NO_COLOR";
/// Where programs are looked for.
pub const PATH: &str = "PATH";
/// The home directory.
pub const HOME: &str = "HOME";
/// What kind of terminal this is.
pub const TERM: &str = "TERM";
/// What a member inherits though its `env` does not name it: what no program can do without.
pub const ALWAYS: &[&str] = &[
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
