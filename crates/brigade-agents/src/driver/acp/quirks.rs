//! In what the agents that speak ACP differ.

use serde_json::{Value, json};

use super::super::words::text;
use super::super::{TOOLS, ToolServer};
pub(crate) use super::usage::UsageAt;

/// In what one agent differs from the others.
#[derive(Debug)]
pub(crate) struct Quirks {
    /// The arguments that make it speak ACP.
    pub(crate) args: &'static [&'static str],
    /// How it is told already when it starts which session will be loaded, if it has to be.
    pub(crate) resume: Option<Resume>,
    /// What it needs in its environment.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// How it learns of the team's tools.
    pub(crate) servers: Servers,
    /// Its modes for what it may do; none where it has none of the kind.
    pub(crate) modes: Modes,
    /// When a loaded session has been replayed.
    pub(crate) replay: Replay,
    /// Where it tells what it used.
    pub(crate) usage: UsageAt,
    /// Whether a turn whose model failed ends like any other, and only tells no use of the model.
    pub(crate) fails_unsaid: bool,
    /// Whether a call it asks leave for is one of the team's tools: by the request, and by the name under
    /// which the call was first told of. A title alone proves nothing: that of a command is the command.
    pub(crate) ours: fn(&Value, &str) -> bool,
}

/// How an agent is told when it starts which session will be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resume {
    /// The argument before the session's id.
    pub(crate) flag: &'static str,
    /// The code with which it ends if it has no such session.
    pub(crate) none: i32,
}

/// How an agent learns of the team's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Servers {
    /// In the request for a session.
    ByProtocol,
    /// By an argument; the protocol's own way is refused.
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
    /// It looks and plans.
    pub(crate) read_only: Option<&'static str>,
    /// It asks.
    pub(crate) ask: Option<&'static str>,
    /// It asks nothing. Without it the driver says yes to everything itself.
    pub(crate) full: Option<&'static str>,
}

/// When a loaded session has been replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// Before the request to load it is answered, as the protocol has it.
    BeforeAnswer,
    /// After the answer, up to the list of commands.
    UntilCommands,
}

const NO_MODES: Modes = Modes { read_only: None, ask: None, full: None };

/// An agent of which nothing is known but that it speaks ACP.
pub(crate) const GENERIC: Quirks = Quirks {
    args: &[],
    resume: None,
    env: &[],
    servers: Servers::ByProtocol,
    modes: NO_MODES,
    replay: Replay::BeforeAnswer,
    usage: UsageAt::Prompt,
    fails_unsaid: false,
    ours: |_, _| false,
};

/// Gemini CLI 0.61.0. It is not told to authenticate: that would change the login its user chose, and
/// delete the credentials of any other. What its user chose holds.
pub(crate) const GEMINI: Quirks = Quirks {
    args: &["--acp"],
    // Each load leaves an empty record behind. When it starts, it deletes all records of a session that has
    // an empty one, unless the session is its own.
    resume: Some(Resume { flag: "--resume", none: 42 }),
    // Its relaunched child would outlive it; a folder nobody trusts has no tools.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
    modes: Modes { read_only: Some("plan"), ask: Some("default"), full: Some("yolo") },
    replay: Replay::UntilCommands,
    usage: UsageAt::Quota,
    // The id begins with the name by which the model called the tool, the title ends with the server's.
    ours: |call, _| {
        text(call, "/toolCallId").starts_with(&format!("mcp_{TOOLS}_"))
            && text(call, "/title").ends_with(&format!("({TOOLS} MCP Server)"))
    },
    ..GENERIC
};

/// opencode 1.18.33.
pub(crate) const OPENCODE: Quirks = Quirks {
    args: &["acp"],
    modes: Modes { read_only: Some("plan"), ask: Some("build"), full: None },
    // A call is first told of by the name of its tool. What has a title of the model's is of another kind.
    ours: |call, name| text(call, "/kind") == "other" && name.starts_with(&format!("{TOOLS}_")),
    ..GENERIC
};

/// GitHub Copilot CLI 1.0.102. It takes no servers from a client, and is told beforehand that ours needs
/// no leave.
pub(crate) const COPILOT: Quirks = Quirks {
    args: &["--acp", "--allow-tool", TOOLS],
    servers: Servers::ByFlag {
        flag: "--additional-mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOLS: {
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
    fails_unsaid: true,
    ..GENERIC
};

// ANCHOR: qwen
/// Qwen Code 0.24.4. It hides the tools of a client's servers behind a search; by its own argument a server
/// can be said to be trusted, and its tools to be always there.
pub(crate) const QWEN: Quirks = Quirks {
    args: &["--acp"],
    // Otherwise its first turn begins before the servers are there, and does without their tools.
    env: &[("QWEN_CODE_LEGACY_MCP_BLOCKING", "1")],
    servers: Servers::ByFlag {
        flag: "--mcp-config",
        config: |tools| {
            json!({ "mcpServers": { TOOLS: {
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

/// The variables of a server as an object.
fn variables(tools: &ToolServer) -> Value {
    tools.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}
