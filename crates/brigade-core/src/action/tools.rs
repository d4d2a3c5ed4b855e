//! The tools that brigade knows, by vendor, and the names of their fields.

use serde_json::{Map, Value};

use super::{ActionKind, CommandLine, Fields};
use crate::policy;
use crate::vendor_tools::{FILE_FIELDS, ToolShape, shape};

/// Codex's name for a request that asks only for more permissions.
pub(super) const CODEX_PERMISSIONS: &str = "permissions";

const SANDBOX_FIELDS: &[&str] =
    &["dangerouslyDisableSandbox", "sandbox", "sandbox_permissions", "with_escalated_permissions"];
const NETWORK_FIELDS: &[&str] = &["network", "networkAccess", "network_access"];
const ENVIRONMENT_FIELDS: &[&str] = &["env", "environment"];
const CHANGE_FIELDS: &[&str] =
    &["changes", "content", "diff", "edits", "new_source", "new_string", "old_string"];

/// Sorts the input of a tool. An input that does not fit the tool is kept unchanged.
pub(super) fn kind(tool: &str, input: &Value) -> ActionKind {
    let kind = match (shape(tool), input) {
        (Some(shape), Value::Object(fields)) => known(shape, fields.clone()),
        _ => None,
    };
    kind.or_else(|| mcp_call(tool, input))
        .unwrap_or_else(|| ActionKind::Other { input: input.clone() })
}

fn known(shape: ToolShape, mut fields: Fields) -> Option<ActionKind> {
    Some(match shape {
        ToolShape::Command => {
            let command = command(&fields.remove("command")?)?;
            let directory = take(&mut fields, policy::FOLDER_FIELDS);
            let sandbox = take(&mut fields, SANDBOX_FIELDS);
            let network = take(&mut fields, NETWORK_FIELDS);
            let environment = take(&mut fields, ENVIRONMENT_FIELDS);
            ActionKind::RunCommand {
                command,
                directory,
                sandbox,
                network,
                environment,
                other: fields,
            }
        }
        ToolShape::Edit => {
            let files = take(&mut fields, FILE_FIELDS);
            let changes = take(&mut fields, CHANGE_FIELDS);
            ActionKind::EditFiles { files, changes, other: fields }
        }
        ToolShape::Fetch => {
            let url = fields.remove("url").filter(Value::is_string)?;
            ActionKind::Fetch { url, other: fields }
        }
    })
}

fn command(value: &Value) -> Option<CommandLine> {
    match value {
        Value::String(line) => Some(CommandLine::Shell(line.clone())),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            let words = words?.into_iter().map(str::to_owned).collect();
            Some(CommandLine::Arguments(words))
        }
        _ => None,
    }
}

/// Recognizes a tool of an MCP server by its name: `mcp__SERVER__TOOL` in Claude Code, `SERVER/TOOL` in Codex.
fn mcp_call(tool: &str, input: &Value) -> Option<ActionKind> {
    let claude = tool.strip_prefix("mcp__").and_then(|name| name.split_once("__"));
    let (server, tool) = claude.or_else(|| tool.split_once('/'))?;
    let (server, tool) = (server.to_owned(), tool.to_owned());
    Some(ActionKind::McpCall { server, tool, arguments: input.clone() })
}

/// Removes the named fields and returns them.
fn take(fields: &mut Fields, names: &[&str]) -> Fields {
    names.iter().filter_map(|name| fields.remove_entry(*name)).collect::<Map<_, _>>()
}
