//! Differences between the agents that speak ACP.

use serde_json::{Value, json};

use super::super::text::text;
use super::super::{TOOL_SERVER_NAME, ToolServer};
pub(crate) use super::usage::UsageAt;

/// The peculiarities of one agent.
#[derive(Debug)]
pub(crate) struct Quirks {
    /// The arguments that make it speak ACP.
    pub(crate) args: &'static [&'static str],
    /// How the session to load is passed on the command line, if the agent needs that.
    pub(crate) resume: Option<ResumeFlag>,
    /// Environment variables it needs.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// How it is configured with the team's tools.
    pub(crate) servers: Servers,
    /// Its modes for each level of access, if it has them.
    pub(crate) modes: Modes,
    /// When the replay of a loaded session is complete.
    pub(crate) replay_end: ReplayEnd,
    /// Where it reports its usage.
    pub(crate) usage: UsageAt,
    /// Whether a turn whose model failed looks successful, except that it reports no usage.
    pub(crate) hides_failure: bool,
    /// Whether a call it asks permission for uses one of the team's tools, judged by the request and
    /// the call's first title. A later title alone proves nothing: for a shell command it is the
    /// command itself.
    pub(crate) is_team_tool: fn(&Value, &str) -> bool,
}

/// How the session to load is passed when the agent starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResumeFlag {
    /// The argument before the session's id.
    pub(crate) flag: &'static str,
    /// The exit code for an unknown session.
    pub(crate) unknown_session_code: i32,
}

/// How an agent is configured with the team's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Servers {
    /// In the request that opens a session.
    ByProtocol,
    /// By a command-line argument, because the agent refuses the protocol's own way.
    ByFlag {
        /// The argument's name.
        flag: &'static str,
        /// Its value.
        config: fn(&ToolServer) -> Value,
    },
}

/// The ids of an agent's modes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modes {
    /// It only reads and plans.
    pub(crate) read_only: Option<&'static str>,
    /// It asks for permission.
    pub(crate) ask: Option<&'static str>,
    /// It asks nothing. If there is no such mode, the driver approves every request.
    pub(crate) full: Option<&'static str>,
}

/// When the replay of a loaded session is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayEnd {
    /// Before the response to the load request, as the protocol specifies.
    BeforeAnswer,
    /// After the response, when the list of commands arrives.
    UntilCommands,
}

const NO_MODES: Modes = Modes { read_only: None, ask: None, full: None };

/// An unknown agent that speaks ACP.
pub(crate) const GENERIC: Quirks = Quirks {
    args: &[],
    resume: None,
    env: &[],
    servers: Servers::ByProtocol,
    modes: NO_MODES,
    replay_end: ReplayEnd::BeforeAnswer,
    usage: UsageAt::Prompt,
    hides_failure: false,
    is_team_tool: |_, _| false,
};

/// Gemini CLI 0.61.0. We do not request authentication: that would change the login method its user
/// chose and delete the credentials of the other methods.
pub(crate) const GEMINI: Quirks = Quirks {
    args: &["--acp"],
    // Each load leaves an empty record behind. At its start, Gemini deletes all records of a session
    // that has an empty one, except for the session named on its command line.
    resume: Some(ResumeFlag { flag: "--resume", unknown_session_code: 42 }),
    // A relaunched child process would outlive it, and in an untrusted folder it has no tools.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
    modes: Modes { read_only: Some("plan"), ask: Some("default"), full: Some("yolo") },
    replay_end: ReplayEnd::UntilCommands,
    usage: UsageAt::Quota,
    // The id begins with the tool name the model used. The title ends with the server's name.
    is_team_tool: |call, _| {
        text(call, "/toolCallId").starts_with(&format!("mcp_{TOOL_SERVER_NAME}_"))
            && text(call, "/title").ends_with(&format!("({TOOL_SERVER_NAME} MCP Server)"))
    },
    ..GENERIC
};

/// opencode 1.18.33.
pub(crate) const OPENCODE: Quirks = Quirks {
    args: &["acp"],
    modes: Modes { read_only: Some("plan"), ask: Some("build"), full: None },
    // The first title of a call is the name of its tool. Calls whose title the model writes have
    // another kind.
    is_team_tool: |call, name| {
        text(call, "/kind") == "other" && name.starts_with(&format!("{TOOL_SERVER_NAME}_"))
    },
    ..GENERIC
};

/// GitHub Copilot CLI 1.0.102. It accepts no MCP servers from a client, so ours is configured and
/// allowed on its command line.
pub(crate) const COPILOT: Quirks = Quirks {
    args: &["--acp", "--allow-tool", TOOL_SERVER_NAME],
    servers: Servers::ByFlag {
        flag: "--additional-mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOL_SERVER_NAME: {
                "type": "local",
                "command": tools.command,
                "args": tools.args,
                "env": variables(tools),
                "tools": ["*"],
            } } })
        },
    },
    modes: Modes {
        read_only: Some("https://agentclientprotocol.com/protocol/session-modes#plan"),
        ask: Some("https://agentclientprotocol.com/protocol/session-modes#agent"),
        full: None,
    },
    usage: UsageAt::Session,
    hides_failure: true,
    ..GENERIC
};

// ANCHOR: qwen
/// Qwen Code 0.24.4. It hides the tools of a client's servers behind a search. Its own argument can
/// mark a server as trusted and its tools as always visible.
pub(crate) const QWEN: Quirks = Quirks {
    args: &["--acp"],
    // Without this its first turn starts before the servers are connected, and has no team tools.
    env: &[("QWEN_CODE_LEGACY_MCP_BLOCKING", "1")],
    servers: Servers::ByFlag {
        flag: "--mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOL_SERVER_NAME: {
                "command": tools.command,
                "args": tools.args,
                "env": variables(tools),
                "trust": true,
                "alwaysLoadTools": true,
            } } })
        },
    },
    modes: Modes { read_only: Some("plan"), ask: Some("default"), full: Some("yolo") },
    usage: UsageAt::Nowhere,
    ..GENERIC
};
// ANCHOR_END: qwen

/// The environment variables of a server, as an object.
fn variables(tools: &ToolServer) -> Value {
    tools.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}
