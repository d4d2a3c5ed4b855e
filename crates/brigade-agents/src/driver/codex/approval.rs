//! Codex's permission requests, and the answers in Codex's format.

use serde_json::{Value, json};

use super::super::TOOL_SERVER_NAME;
use super::super::text::{one_line, other_fields, text};
use super::item::{self, Items};

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct CodexApproval {
    request: Value,
    kind: ApprovalKind,
}

#[derive(Debug)]
enum ApprovalKind {
    /// Asks to run a command or change files.
    Decision,
    /// Asks to use a tool of an MCP server. Codex sends this request as an MCP elicitation.
    Elicitation,
    /// Asks for these permissions for the rest of the turn.
    Permissions(Value),
}

/// A description of a request, for the lead who answers it.
#[derive(Debug)]
pub(super) struct ApprovalDetails {
    pub(super) tool: String,
    pub(super) tool_use_id: String,
    pub(super) description: String,
    pub(super) input: Value,
    /// The other fields of the request.
    pub(super) request: Value,
}

/// Fields that only identify a request, or repeat the command or the choices: brigade always answers with `accept` or
/// `decline`, so it never accepts a proposed rule or a permission for the whole session.
const IDENTIFYING_FIELDS: &[&str] = &[
    "threadId",
    "turnId",
    "itemId",
    "approvalId",
    "startedAtMs",
    "commandActions",
    "availableDecisions",
];

/// Fields of a request whose values are the input of the tool.
const INPUT_FIELDS: &[&str] = &["command", "cwd"];

impl CodexApproval {
    /// Parses a request. Returns `None` if the request is not a yes-or-no question.
    pub(super) fn new(request: Value, method: &str, params: &Value) -> Option<Self> {
        let kind = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                ApprovalKind::Decision
            }
            "mcpServer/elicitation/request"
                if text(params, "/_meta/codex_approval_kind") == "mcp_tool_call" =>
            {
                ApprovalKind::Elicitation
            }
            "item/permissions/requestApproval" => {
                // The response must omit the null fields, which stand for permissions that are not asked for.
                let asked = params.get("permissions").unwrap_or(&Value::Null);
                ApprovalKind::Permissions(match other_fields(asked, &[]) {
                    Value::Null => json!({}),
                    permissions => permissions,
                })
            }
            _ => return None,
        };
        Some(Self { request, kind })
    }

    /// Returns the JSON-RPC id that the response must carry.
    pub(super) fn request(&self) -> &Value {
        &self.request
    }

    /// Returns whether the request is for one of the team's tools, which need no permission.
    pub(super) fn is_for_team(&self, params: &Value) -> bool {
        matches!(self.kind, ApprovalKind::Elicitation)
            && text(params, "/serverName") == TOOL_SERVER_NAME
    }

    pub(super) fn allow(&self) -> Value {
        match &self.kind {
            ApprovalKind::Decision => json!({ "decision": "accept" }),
            ApprovalKind::Elicitation => {
                json!({ "action": "accept", "content": {}, "_meta": null })
            }
            ApprovalKind::Permissions(permissions) => {
                json!({ "permissions": permissions, "scope": "turn" })
            }
        }
    }

    /// Returns the response that declines the request. Cancelling it instead would end the turn.
    pub(super) fn deny(&self) -> Value {
        match &self.kind {
            ApprovalKind::Decision => json!({ "decision": "decline" }),
            ApprovalKind::Elicitation => {
                json!({ "action": "decline", "content": null, "_meta": null })
            }
            ApprovalKind::Permissions(_) => json!({ "permissions": {}, "scope": "turn" }),
        }
    }
}

/// Describes a request. The request often belongs to an item of the turn, and that item has more details.
pub(super) fn details(method: &str, params: &Value, items: &Items) -> ApprovalDetails {
    let item = match method {
        "mcpServer/elicitation/request" => {
            let arguments = params.pointer("/_meta/tool_params").unwrap_or(&Value::Null);
            items.tool_with(text(params, "/serverName"), arguments)
        }
        _ => items.tool(text(params, "/itemId")),
    };
    let request = |without: &[&str]| other_fields(params, &[IDENTIFYING_FIELDS, without].concat());
    let (kind, input, request) = match method {
        "item/commandExecution/requestApproval" => {
            let command = json!({ "command": params.get("command"), "cwd": params.get("cwd") });
            ("commandExecution", other_fields(&command, &[]), request(INPUT_FIELDS))
        }
        "item/permissions/requestApproval" => {
            let input = params.get("permissions").cloned().unwrap_or_default();
            ("permissions", input, request(&["permissions"]))
        }
        "mcpServer/elicitation/request" => {
            let input = params.pointer("/_meta/tool_params").cloned();
            // `_meta` repeats the input, and offers to remember the answer, which brigade never accepts.
            (text(params, "/serverName"), input.unwrap_or_default(), request(&["_meta"]))
        }
        _ => ("fileChange", item.map(item::input).unwrap_or_default(), request(&[])),
    };
    let tool = item.and_then(item::tool).unwrap_or_else(|| kind.to_owned());
    let item_text = item.map(item::about).unwrap_or_default();
    let texts =
        [text(params, "/reason"), text(params, "/message"), &item_text, text(params, "/command")];
    let description = one_line(texts.into_iter().find(|text| !text.is_empty()).unwrap_or(kind));
    let request = without_usual_fields(request, &tool, &description);
    ApprovalDetails {
        tool,
        tool_use_id: match item {
            Some(item) => text(item, "/id").to_owned(),
            None => text(params, "/itemId").to_owned(),
        },
        description,
        input,
        request,
    }
}

/// Removes the fields whose values are the usual ones, and those that are shown already.
fn without_usual_fields(mut request: Value, tool: &str, description: &str) -> Value {
    if let Value::Object(fields) = &mut request {
        fields.retain(|name, value| match name.as_str() {
            "kind" => value != "command",
            "environmentId" => value != "local",
            "mode" => value != "form",
            "reason" | "message" => value != description,
            "serverName" => !tool.split_once('/').is_some_and(|(server, _)| value == server),
            // A form without fields only asks for a yes or a no.
            "requestedSchema" => *value != json!({ "type": "object", "properties": {} }),
            _ => true,
        });
    }
    other_fields(&request, &[])
}
