//! A request for leave, in the form in which a lead's user can decide on it.

use brigade_wire::name::MemberName;
use brigade_wire::permission::{Json, Original, PermissionRequest};
use serde_json::{Value, json};

/// The tool of Claude Code's own that every request is put as. Its old generation ignores a request
/// for a tool it does not know, and its new one shows nothing of what such a tool would be given.
const SHELL: &str = "Bash";

/// What a teammate asks leave for.
#[derive(Clone, Debug)]
pub struct Leave<'l> {
    /// The tool, as its agent names it.
    pub tool: &'l str,
    /// The agent's own id for this use of it.
    pub tool_use_id: &'l str,
    /// What it is for, in a line.
    pub description: &'l str,
    /// What the tool would be given.
    pub input: &'l Value,
    /// Where its agent works.
    pub cwd: &'l str,
}

impl Leave<'_> {
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

    /// What the user reads: a command as it is, another tool and what it is given as a comment. It is
    /// never run.
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

/// The text without signs that could rewrite the screen it is shown on.
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
        let leave = Leave { tool, tool_use_id: "t", description: "why", input, cwd: "/work" };
        let request = leave.request("perm-1", &"bob".parse().unwrap());
        let original = request.brigade.unwrap();
        assert_eq!((original.tool.as_str(), original.cwd.as_str()), (tool, "/work"));
        assert_eq!(original.input.as_str(), input.to_string());
        assert_eq!((request.tool_name.as_str(), request.description.as_str()), ("Bash", "why"));
        let input: Value = serde_json::from_str(request.input.as_str()).unwrap();
        input["command"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_user_sees_what_would_be_done() {
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
