//! Builds a permission request in a form that Claude Code shows to the lead's user.

use brigade_wire::name::MemberName;
use brigade_wire::permission::{Json, Original, PermissionRequest};
use serde_json::{Value, json};

/// Every request names this Claude Code tool, whatever tool the agent wants to use. Older versions of Claude Code
/// ignore a request for an unknown tool, and newer versions do not show the input of an unknown tool.
const SHELL: &str = "Bash";

/// A teammate's request for permission to use a tool.
#[derive(Clone, Debug)]
pub struct PermissionAsk<'l> {
    /// The name that the agent uses for the tool.
    pub tool: &'l str,
    /// The agent's id for this tool call.
    pub tool_use_id: &'l str,
    /// One line that says what the agent would use the tool for.
    pub description: &'l str,
    /// The input that the tool would get.
    pub input: &'l Value,
    /// The agent's working directory.
    pub cwd: &'l str,
}

impl PermissionAsk<'_> {
    pub(super) fn request(&self, id: &str, from: &MemberName) -> PermissionRequest {
        let description = visible(self.description);
        let input = json!({ "command": visible(&self.command()), "description": description });
        PermissionRequest {
            request_id: id.to_owned(),
            agent_id: from.to_string(),
            tool_name: SHELL.to_owned(),
            tool_use_id: self.tool_use_id.to_owned(),
            description,
            input: Json::from(&input),
            permission_suggestions: Vec::new(),
            brigade: Some(Original {
                tool: self.tool.to_owned(),
                input: Json::from(self.input),
                cwd: self.cwd.to_owned(),
            }),
        }
    }

    /// Returns the command to show to the user. A shell command is shown unchanged; for any other tool, the
    /// command is a shell comment with the tool's name and input. The lead never runs the command.
    fn command(&self) -> String {
        match self.input.get("command") {
            Some(Value::String(command)) if !command.trim().is_empty() => command.clone(),
            _ => {
                let input = serde_json::to_string_pretty(self.input).unwrap_or_default();
                let text = format!("{} {input}", self.tool);
                let lines: Vec<String> = text.lines().map(|line| format!("# {line}")).collect();
                lines.join("\n")
            }
        }
    }
}

/// Escapes control characters, which could replace text on the user's screen.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for sign in text.chars() {
        match sign {
            '\n' | '\t' => shown.push(sign),
            _ if sign.is_control() => shown.extend(sign.escape_default()),
            _ => shown.push(sign),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(tool: &str, input: &Value) -> String {
        let leave =
            PermissionAsk { tool, tool_use_id: "t", description: "why", input, cwd: "/work" };
        let request = leave.request("perm-1", &"bob".parse().unwrap());
        let original = request.brigade.unwrap();
        assert_eq!((original.tool.as_str(), original.cwd.as_str()), (tool, "/work"));
        assert_eq!(original.input.as_str(), input.to_string());
        assert_eq!((request.tool_name.as_str(), request.description.as_str()), ("Bash", "why"));
        let input: Value = serde_json::from_str(request.input.as_str()).unwrap();
        input["command"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_user_sees_the_command_or_the_tool_input() {
        assert_eq!(
            command("commandExecution", &json!({"command": "rm -r /", "cwd": "/"})),
            "rm -r /"
        );
        assert_eq!(
            command("fileChange", &json!({"path": "/etc/passwd"})),
            "# fileChange {\n#   \"path\": \"/etc/passwd\"\n# }"
        );
        assert_eq!(command("x", &Value::Null), "# x null");
        assert_eq!(
            command("x", &json!({"command": "\u{1b}[2Jls\u{7f}\nid"})),
            "\\u{1b}[2Jls\\u{7f}\nid"
        );
    }
}
