//! Builds the command line of Claude Code.

use serde_json::json;

use super::super::{Access, LaunchOptions, TOOL_SERVER_NAME};

/// Returns the arguments that start or resume the session with this id.
pub(super) fn args(launch: &LaunchOptions, session: &str) -> Vec<String> {
    let tools = &launch.tools;
    let server = json!({ "command": tools.command, "args": tools.args, "env": tools.env_object() });
    let config = json!({ "mcpServers": { TOOL_SERVER_NAME: server } }).to_string();
    let team_tools = format!("mcp__{TOOL_SERVER_NAME}");
    let mode = mode(launch.access);
    let mut args = launch.arguments.clone();
    let mut add = |new: &[&str]| args.extend(new.iter().map(|arg| (*arg).to_owned()));
    add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    add(&["--replay-user-messages", "--permission-prompt-tool", "stdio"]);
    add(&["--permission-mode", mode, "--allowedTools", &team_tools]);
    // No person sits at a member's terminal to answer the questions that this tool asks.
    add(&["--disallowedTools", "AskUserQuestion"]);
    add(&["--mcp-config", &config, "--strict-mcp-config"]);
    add(&["--append-system-prompt", &launch.instructions]);
    if let Some(model) = &launch.model {
        add(&["--model", model]);
    }
    let session_flag = if launch.resume.is_some() { "--resume" } else { "--session-id" };
    add(&[session_flag, session]);
    args
}

/// Returns Claude Code's permission mode for an access level. Versions before 2.1.197 do not know `manual`, the newer
/// name of `default`, and later versions accept both. For full access
/// the driver approves every request itself, because Claude Code's own mode for full access must first be enabled
/// on the machine and is not available to root.
pub(super) fn mode(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "plan",
        Access::Ask | Access::Full => "default",
    }
}
