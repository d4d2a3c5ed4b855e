//! The names of the environment variables that brigade uses. Front ends read these variables. This crate only sets
//! some of them for the programs it starts.

/// The team, if `--team` is absent.
pub const TEAM: &str = "BRIGADE_TEAM";
/// The member that runs the command, if `--as` is absent.
pub const AS: &str = "BRIGADE_AS";
/// The key that verifies the lead's messages. Claude Code passes it to its teammates in this variable.
pub const LEAD_KEY: &str = "BRIGADE_LEAD_KEY";
/// The task list of the team, if it has another name than the team. Set for members that Claude Code started.
pub const TASK_LIST: &str = "BRIGADE_TASK_LIST";
/// Set if brigade delivers the member's mail as turns. Then the MCP tools do not deliver the mail again.
pub const DELIVERED: &str = "BRIGADE_DELIVERED";
/// Determines who approves or rejects plans and permission requests: only a `person`, or also the `lead`. Set only
/// if an agent runs the command.
pub const ANSWERS: &str = "BRIGADE_ANSWERS";
/// The durability of acknowledged messages, if `--durability` is absent.
pub const DURABILITY: &str = "BRIGADE_DURABILITY";
/// Where teams are stored, if `--store` is absent.
pub const STORE: &str = "BRIGADE_STORE";
/// The credentials file for the NATS server, if `--creds` is absent.
pub const CREDS: &str = "BRIGADE_CREDS";
/// The CA certificate file for TLS, if `--ca` is absent.
pub const CA: &str = "BRIGADE_CA";
/// The client certificate file, if `--cert` is absent.
pub const CERT: &str = "BRIGADE_CERT";
/// The key file of the client certificate, if `--key` is absent.
pub const KEY: &str = "BRIGADE_KEY";
/// The command that shows long output in pages, if it differs from `PAGER`.
pub const BRIGADE_PAGER: &str = "BRIGADE_PAGER";
/// The command that shows long output in pages.
pub const PAGER: &str = "PAGER";
/// The options of the pager `less`.
pub const LESS: &str = "LESS";
/// `all` makes brigade use every team file without asking the user whether to trust it.
pub const TRUST: &str = "BRIGADE_TRUST";
/// The name of this host. The default is the system's host name.
pub const HOST: &str = "BRIGADE_HOST";
/// The Claude Code program, if it is not the `claude` on `PATH`.
pub const CLAUDE: &str = "BRIGADE_CLAUDE";
/// The commands that may be the agents of teammates that Claude Code starts, one per line.
pub const ACP_COMMANDS: &str = "BRIGADE_ACP_COMMANDS";
/// How many hours a teammate that Claude Code started waits for an ended session of its lead.
pub const WAIT_FOR_LEAD: &str = "BRIGADE_WAIT_FOR_LEAD";
/// Names of further variables that agents inherit.
pub const AGENT_ENV: &str = "BRIGADE_AGENT_ENV";
/// The log filter, for example `debug` or `brigade_core=trace,warn`. If this variable is not set, nothing is
/// logged.
pub const LOG: &str = "BRIGADE_LOG";
/// The log file. The default is standard error.
pub const LOG_FILE: &str = "BRIGADE_LOG_FILE";
/// Claude Code's own variable, with the path of Claude Code's folder.
pub const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The base folder in which programs store their state.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Claude Code's own variable, with the id of the session. Claude Code sets it for the commands that it runs.
pub const CLAUDE_SESSION: &str = "CLAUDE_CODE_SESSION_ID";
/// Claude Code's own variable, with the name of the task list that a session or a teammate uses.
pub const CLAUDE_TASK_LIST: &str = "CLAUDE_CODE_TASK_LIST_ID";
/// The base folder in which programs store their configuration.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Claude Code's own variable that enables teams.
pub const CLAUDE_TEAMS: &str = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";
/// Codex's own variable, with the path of Codex's folder.
pub const CODEX_HOME: &str = "CODEX_HOME";
/// Gemini CLI's own variable, with the path of the folder that contains Gemini CLI's folder.
pub const GEMINI_CLI_HOME: &str = "GEMINI_CLI_HOME";
/// The user's shell.
pub const SHELL: &str = "SHELL";
/// Set by tmux in its windows.
pub const TMUX: &str = "TMUX";
/// Set in an SSH session.
pub const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Set to disable colors.
pub const NO_COLOR: &str = "NO_COLOR";
/// The search path for programs.
pub const PATH: &str = "PATH";
/// The home directory.
pub const HOME: &str = "HOME";
/// The person's editor, for a terminal that can position the cursor. Preferred to `EDITOR`.
pub const VISUAL: &str = "VISUAL";
/// The person's editor.
pub const EDITOR: &str = "EDITOR";
/// The terminal type.
pub const TERM: &str = "TERM";
/// The variables that a member always inherits, even if its `env` setting does not name them.
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
    XDG_CONFIG_HOME,
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
