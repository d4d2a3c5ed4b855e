//! Differences between the agents that speak ACP.

use serde_json::{Value, json};

use super::super::text::text;
use super::super::{TOOL_SERVER_NAME, ToolServer};
pub(crate) use super::usage::UsageAt;

/// The peculiarities of one agent.
#[derive(Debug)]
pub(crate) struct Quirks {
    /// The arguments that make the agent speak ACP.
    pub(crate) args: &'static [&'static str],
    /// The command-line argument that names the session to load, if the agent needs this argument.
    pub(crate) resume: Option<ResumeFlag>,
    /// Environment variables that the agent needs.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// How to configure the MCP server for the team's tools.
    pub(crate) servers: Servers,
    /// The agent's mode for each level of access.
    pub(crate) modes: Modes,
    /// When the replay of a loaded session is complete.
    pub(crate) replay_end: ReplayEnd,
    /// Where the agent reports its model usage.
    pub(crate) usage: UsageAt,
    /// Whether the agent reports success even if the model failed. If so, a turn without reported usage counts as
    /// failed.
    pub(crate) hides_failure: bool,
    /// Whether the agent removes the prompt of an interrupted turn from its session. If so, the driver repeats the prompt's
    /// text before the next prompt.
    pub(crate) forgets_interrupted: bool,
    /// Returns whether a permission request is for one of the team's tools. The arguments are the tool call
    /// in the request and the call's first title. A later title cannot be trusted: the title of a shell
    /// command is the command itself, which the model chooses.
    pub(crate) is_team_tool: fn(&Value, &str) -> bool,
    /// Returns the name that the agent's program gives the tool of a call without a kind, if the request contains one
    /// that the model cannot choose. The arguments are those of `is_team_tool`.
    pub(crate) tool_name: for<'c> fn(&'c Value, &'c str) -> Option<&'c str>,
    /// Returns whether the title of a call without `rawInput` is a shell command.
    pub(crate) title_is_command: fn(&Value) -> bool,
}

/// The command-line argument that names the session to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResumeFlag {
    /// The argument before the session's id.
    pub(crate) flag: &'static str,
    /// The exit code with which the agent reports an unknown session.
    pub(crate) unknown_session_code: i32,
}

/// How an agent learns of the MCP server for the team's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Servers {
    /// The request that opens a session contains the MCP server's configuration.
    ByProtocol,
    /// A command-line argument contains the MCP server's configuration, because the agent ignores servers in the request that opens a
    /// session, or hides the tools of these servers from its model.
    ByFlag {
        /// The argument's name.
        flag: &'static str,
        /// Returns the argument's value.
        config: fn(&ToolServer) -> Value,
    },
}

/// The ids of an agent's modes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modes {
    /// The mode in which the agent only reads and plans.
    pub(crate) read_only: Option<&'static str>,
    /// The mode in which the agent asks for permission.
    pub(crate) ask: Option<&'static str>,
    /// The mode in which the agent never asks. If the agent has no such mode, the driver approves every request.
    pub(crate) full: Option<&'static str>,
}

/// When the replay of a loaded session is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayEnd {
    /// The replay is complete when the agent responds to the load request, as ACP specifies.
    BeforeAnswer,
    /// The replay comes after the response to the load request. The replay is complete when the agent sends its
    /// list of commands.
    UntilCommands,
}

const NO_MODES: Modes = Modes { read_only: None, ask: None, full: None };

/// Any other agent that speaks ACP.
pub(crate) const GENERIC: Quirks = Quirks {
    args: &[],
    resume: None,
    env: &[],
    servers: Servers::ByProtocol,
    modes: NO_MODES,
    replay_end: ReplayEnd::BeforeAnswer,
    usage: UsageAt::Prompt,
    hides_failure: false,
    forgets_interrupted: false,
    is_team_tool: |_, _| false,
    // The ACP adapter of Claude Code adds the tool's name to each call.
    tool_name: |call, _| call.get("name").and_then(Value::as_str),
    title_is_command: |_| false,
};

/// Gemini CLI 0.61.0. The driver sends no authentication request, because that would change the login method
/// that the user chose and delete the credentials of the other methods.
pub(crate) const GEMINI: Quirks = Quirks {
    args: &["--acp"],
    // Each time Gemini loads a session, it creates an empty file for that session. When Gemini starts, it deletes
    // every session that has an empty file, except the session that is named on its command line.
    resume: Some(ResumeFlag { flag: "--resume", unknown_session_code: 42 }),
    // The first variable keeps Gemini from relaunching itself as a child process, which would outlive Gemini. The
    // second makes Gemini trust the folder. In an untrusted folder, Gemini has no tools.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
    modes: Modes { read_only: Some("plan"), ask: Some("default"), full: Some("yolo") },
    replay_end: ReplayEnd::UntilCommands,
    usage: UsageAt::Quota,
    forgets_interrupted: true,
    // For a team tool, the call's id begins with the tool's name, and its title ends with the server's name.
    is_team_tool: |call, _| {
        text(call, "/toolCallId").starts_with(&format!("mcp_{TOOL_SERVER_NAME}_"))
            && text(call, "/title").ends_with(&format!("({TOOL_SERVER_NAME} MCP Server)"))
    },
    // A call's id begins with the tool's name. Gemini's requests have no `rawInput`: the title of a shell command is
    // the whole command.
    tool_name: |call, _| text(call, "/toolCallId").rsplit_once("__").map(|(name, _)| name),
    title_is_command: |call| {
        text(call, "/kind") == "execute"
            && text(call, "/toolCallId").starts_with("run_shell_command__")
    },
    ..GENERIC
};

/// opencode 1.18.33.
pub(crate) const OPENCODE: Quirks = Quirks {
    args: &["acp"],
    modes: Modes { read_only: Some("plan"), ask: Some("build"), full: None },
    // The first title of a call with the kind `other` is the tool's name. Calls whose title the model can
    // choose have another kind.
    is_team_tool: |call, name| {
        text(call, "/kind") == "other" && name.starts_with(&format!("{TOOL_SERVER_NAME}_"))
    },
    tool_name: |_, name| Some(name),
    ..GENERIC
};

/// GitHub Copilot CLI 1.0.102. Copilot accepts no MCP servers through ACP, so its command line configures
/// and allows our server.
pub(crate) const COPILOT: Quirks = Quirks {
    args: &["--acp", "--allow-tool", TOOL_SERVER_NAME],
    servers: Servers::ByFlag {
        flag: "--additional-mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOL_SERVER_NAME: {
                "type": "local",
                "command": tools.command,
                "args": tools.args,
                "env": tools.env_object(),
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
    // As with opencode. The server's name precedes the tool's: `github-create_issue`.
    tool_name: |_, name| Some(name),
    ..GENERIC
};

// ANCHOR: qwen
/// Qwen Code 0.24.4. If an MCP server is configured through ACP, Qwen's model must search for the server's
/// tools. The command-line argument can mark the server as trusted and its tools as always visible.
pub(crate) const QWEN: Quirks = Quirks {
    args: &["--acp"],
    // Without this variable, the MCP server connects too late, and the first turn has no team tools.
    env: &[("QWEN_CODE_LEGACY_MCP_BLOCKING", "1")],
    servers: Servers::ByFlag {
        flag: "--mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOL_SERVER_NAME: {
                "command": tools.command,
                "args": tools.args,
                "env": tools.env_object(),
                "trust": true,
                "alwaysLoadTools": true,
            } } })
        },
    },
    modes: Modes { read_only: Some("plan"), ask: Some("default"), full: Some("yolo") },
    usage: UsageAt::Nowhere,
    tool_name: |call, _| call.pointer("/_meta/toolName").and_then(Value::as_str),
    ..GENERIC
};
// ANCHOR_END: qwen
