//! Builds a permission request in a form that Claude Code shows to the lead's user, and reads the input in the answer.

use brigade_wire::name::MemberName;
use brigade_wire::permission::{Grant, Json, Original, PermissionRequest};
use serde_json::{Value, json};

use crate::action::AgentAction;
use crate::text;

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
    /// The fields of the agent's request outside the tool's input, as an object; null if there are none.
    pub request: &'l Value,
    /// The agent's working directory.
    pub cwd: &'l str,
}

impl PermissionAsk<'_> {
    pub(super) fn request(&self, id: &str, from: &MemberName) -> PermissionRequest {
        let description = text::one_line(self.description);
        let action = AgentAction::new(self.tool, self.input, self.request, Some(self.cwd));
        let dialog = action.dialog(&description);
        let input = json!({ "command": dialog.command, "description": dialog.description });
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
                request: (!action.request.is_null()).then(|| Json::from(&action.request)),
            }),
        }
    }
}

/// The input that a granted permission is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedInput {
    /// The input in the request.
    AsAsked,
    /// The input in the request with another command, which the lead wrote.
    Edited(Value),
    /// The lead changed something that cannot be applied to the agent's input.
    Unclear,
}

/// Returns the input that the lead granted. Claude Code's dialog lets the user edit the command that it shows.
pub fn granted_input(asked: &PermissionRequest, grant: &Grant) -> GrantedInput {
    let Some(updated) = &grant.updated_input else { return GrantedInput::AsAsked };
    let parse = |json: &Json| serde_json::from_str::<Value>(json.as_str()).ok();
    let (Some(Value::Object(shown)), Some(Value::Object(mut updated))) =
        (parse(&asked.input), parse(updated))
    else {
        return match updated == &asked.input {
            true => GrantedInput::AsAsked,
            false => GrantedInput::Unclear,
        };
    };
    let command = updated.remove("command");
    // An answer may leave a field out, but it may not add or change one.
    if updated.iter().any(|(name, value)| shown.get(name) != Some(value)) {
        return GrantedInput::Unclear;
    }
    match (shown.get("command"), command) {
        (shown, command) if shown == command.as_ref() => GrantedInput::AsAsked,
        (Some(Value::String(shown)), Some(Value::String(command))) => {
            let input = asked.brigade.as_ref().and_then(|original| parse(&original.input));
            input
                .and_then(|input| with_command(input, shown, &command))
                .map_or(GrantedInput::Unclear, GrantedInput::Edited)
        }
        _ => GrantedInput::Unclear,
    }
}

/// Replaces the command in an agent's input. Returns `None` if the dialog did not show the command unchanged, or if
/// the lead changed the comments below the command.
fn with_command(mut input: Value, shown: &str, edited: &str) -> Option<Value> {
    let command = input.get_mut("command")?;
    let comments = shown.strip_prefix(command.as_str()?)?;
    if !comments.is_empty() && !comments.starts_with("\n# ") {
        return None;
    }
    let edited = edited.strip_suffix(comments)?;
    if edited.trim().is_empty() {
        return None;
    }
    *command = Value::String(edited.to_owned());
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tool: &str, input: &Value, request: &Value) -> PermissionRequest {
        let ask = PermissionAsk {
            tool,
            tool_use_id: "t",
            description: "why",
            input,
            request,
            cwd: "/project",
        };
        let request = ask.request("perm-1", &"bob".parse().unwrap());
        let original = request.brigade.as_ref().unwrap();
        assert_eq!((original.tool.as_str(), original.cwd.as_str()), (tool, "/project"));
        assert_eq!(original.input.as_str(), input.to_string());
        assert_eq!((request.tool_name.as_str(), request.description.as_str()), ("Bash", "why"));
        request
    }

    fn check(tool: &str, input: &Value, other: &Value, command: &str, description: &str) {
        let request = request(tool, input, other);
        let shown: Value = serde_json::from_str(request.input.as_str()).unwrap();
        assert_eq!(shown["command"], command);
        assert_eq!(shown["description"], description);
    }

    #[test]
    fn finding_15_the_dialog_shows_the_whole_request() {
        let none = &Value::Null;
        check("execute", &json!({"command": "ls"}), none, "ls", "execute in /project: why");
        check(
            "Bash",
            &json!({"command": "ls", "description": "why", "dangerouslyDisableSandbox": true}),
            none,
            "ls\n# dangerouslyDisableSandbox: true",
            "Bash in /project: why",
        );
        check(
            "commandExecution",
            &json!({"command": "rm -r /", "cwd": "/"}),
            &json!({"additionalPermissions": {"network": {"enabled": true}}}),
            "rm -r /\n# cwd: \"/\"\n# with the request:\n#   additionalPermissions.network.enabled: true",
            "commandExecution in /: why",
        );
        check(
            "fileChange",
            &json!({"path": "/etc/passwd"}),
            none,
            "# fileChange: edit files\n# working directory: /project\n# path: \"/etc/passwd\"",
            "fileChange in /project: why",
        );
        check(
            "x y",
            none,
            none,
            "# x y: use this tool\n# working directory: /project\n# (the whole input): null",
            "\"x y\" in /project: why",
        );
    }

    #[test]
    fn finding_15_a_command_cannot_hide_or_imitate_a_field_of_the_dialog() {
        let none = &Value::Null;
        let check = |command: &str, shown: &str| {
            check("Bash", &json!({ "command": command }), none, shown, "Bash in /project: why");
        };
        check("\u{1b}[2Jls\u{7f}\nid", "\\u{1b}[2Jls\\u{7f}\nid");
        check("ls\u{202e}\u{200b}", "ls\\u{202e}\\u{200b}");
        let title = "# Bash: run a command\n# working directory: /project\n# command:\n";
        check("ls\n# sandbox: true", &format!("{title}#   $ ls\n#   $ # sandbox: true"));
        check("# only a comment", &format!("{title}#   $ # only a comment"));
        check("", &format!("{title}#   $"));
    }

    #[test]
    fn finding_15_an_edited_command_is_recognized() {
        let input = json!({ "command": "rm a", "timeout": 5 });
        let plain = request("Bash", &json!({ "command": "rm a" }), &Value::Null);
        let more = request("Bash", &input, &Value::Null);
        let hidden = request("Bash", &json!({ "command": "rm\u{200b}" }), &Value::Null);
        let grant = |updated: Option<Value>| Grant {
            updated_input: updated.map(|updated| Json::from(&updated)),
            permission_updates: None,
        };
        let shown = |request: &PermissionRequest| {
            serde_json::from_str::<Value>(request.input.as_str()).unwrap()
        };
        for (request, updated, expected) in [
            (&plain, None, GrantedInput::AsAsked),
            (&plain, Some(shown(&plain)), GrantedInput::AsAsked),
            (&plain, Some(json!({ "command": "rm a" })), GrantedInput::AsAsked),
            (
                &plain,
                Some(json!({ "command": "rm b" })),
                GrantedInput::Edited(json!({ "command": "rm b" })),
            ),
            (&plain, Some(json!({ "command": "rm a", "timeout": 1 })), GrantedInput::Unclear),
            (&plain, Some(json!({ "command": " " })), GrantedInput::Unclear),
            (&plain, Some(json!({})), GrantedInput::Unclear),
            (&plain, Some(json!("rm b")), GrantedInput::Unclear),
            (
                &more,
                Some(json!({ "command": "rm b\n# timeout: 5" })),
                GrantedInput::Edited(json!({ "command": "rm b", "timeout": 5 })),
            ),
            (&more, Some(json!({ "command": "rm b\n# timeout: 6" })), GrantedInput::Unclear),
            (&more, Some(json!({ "command": "rm b" })), GrantedInput::Unclear),
            (&hidden, Some(json!({ "command": "rm b" })), GrantedInput::Unclear),
        ] {
            assert_eq!(granted_input(request, &grant(updated.clone())), expected, "{updated:?}");
        }
    }
}
