//! How Claude Code is started.

use serde_json::{Value, json};

use super::super::{Access, Launch, TOOLS};

/// The arguments for a session of this id, begun or gone on with.
pub(super) fn args(launch: &Launch, session: &str) -> Vec<String> {
    let tools = &launch.tools;
    let env: Value = tools.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let server = json!({ "command": tools.command, "args": tools.args, "env": env });
    let config = json!({ "mcpServers": { TOOLS: server } }).to_string();
    let own = format!("mcp__{TOOLS}");
    let mode = match launch.access {
        Access::ReadOnly => "plan",
        Access::Ask | Access::Full => "manual",
    };
    let mut args = launch.arguments.clone();
    let mut say = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    say(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    say(&["--replay-user-messages", "--permission-prompt-tool", "stdio"]);
    say(&["--permission-mode", mode, "--allowedTools", &own]);
    // A member has nobody at its terminal to choose from a list.
    say(&["--disallowedTools", "AskUserQuestion"]);
    say(&["--mcp-config", &config, "--strict-mcp-config"]);
    say(&["--append-system-prompt", &launch.instructions]);
    if let Some(model) = &launch.model {
        say(&["--model", model]);
    }
    let which = if launch.resume.is_some() { "--resume" } else { "--session-id" };
    say(&[which, session]);
    args
}

/// Its mode for an access, as it is called once it runs. For full access the driver says yes itself: the
/// mode in which it would not ask has to be allowed on the machine, and is not for root.
pub(super) fn mode(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "plan",
        Access::Ask | Access::Full => "default",
    }
}
