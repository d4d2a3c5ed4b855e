//! What Codex asks leave for, and how it is told yes and no.

use serde_json::{Value, json};

use super::super::TOOLS;
use super::super::words::{brief, text};
use super::item::{self, Items};

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct Approval {
    request: Value,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// To run a command or change files.
    Decision,
    /// To use the tool of an MCP server, which comes in the clothes of an elicitation.
    Elicitation,
    /// To have these permissions for the rest of the turn.
    Permissions(Value),
}

/// What is asked, in Codex's words.
#[derive(Debug)]
pub(super) struct About {
    pub(super) tool: String,
    pub(super) tool_use_id: String,
    pub(super) description: String,
    pub(super) input: Value,
}

impl Approval {
    /// The request, if yes or no is an answer to it.
    pub(super) fn new(request: Value, method: &str, params: &Value) -> Option<Self> {
        let kind = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                Kind::Decision
            }
            "mcpServer/elicitation/request"
                if text(params, "/_meta/codex_approval_kind") == "mcp_tool_call" =>
            {
                Kind::Elicitation
            }
            "item/permissions/requestApproval" => {
                Kind::Permissions(granted(params.get("permissions")))
            }
            _ => return None,
        };
        Some(Self { request, kind })
    }

    /// By which it is answered.
    pub(super) fn request(&self) -> &Value {
        &self.request
    }

    /// Whether it is for a tool of the team's, which needs no leave.
    pub(super) fn is_for_team(&self, params: &Value) -> bool {
        matches!(self.kind, Kind::Elicitation) && text(params, "/serverName") == TOOLS
    }

    pub(super) fn allow(&self) -> Value {
        match &self.kind {
            Kind::Decision => json!({ "decision": "accept" }),
            Kind::Elicitation => json!({ "action": "accept", "content": {}, "_meta": null }),
            Kind::Permissions(wanted) => json!({ "permissions": wanted, "scope": "turn" }),
        }
    }

    /// The turn goes on after a no: to cancel would end it.
    pub(super) fn deny(&self) -> Value {
        match &self.kind {
            Kind::Decision => json!({ "decision": "decline" }),
            Kind::Elicitation => json!({ "action": "decline", "content": null, "_meta": null }),
            Kind::Permissions(_) => json!({ "permissions": {}, "scope": "turn" }),
        }
    }
}

/// Permissions are asked for with null for what is not wanted, and granted without.
fn granted(wanted: Option<&Value>) -> Value {
    let fields = wanted.and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What a request asks. The item it belongs to often knows more than the request.
pub(super) fn about(method: &str, params: &Value, items: &Items) -> About {
    let item = match method {
        "mcpServer/elicitation/request" => {
            let arguments = params.pointer("/_meta/tool_params").unwrap_or(&Value::Null);
            items.tool_of(text(params, "/serverName"), arguments)
        }
        _ => items.tool(text(params, "/itemId")),
    };
    let (kind, input) = match method {
        "item/commandExecution/requestApproval" => {
            let input = json!({ "command": params.get("command"), "cwd": params.get("cwd") });
            ("commandExecution", input)
        }
        "item/permissions/requestApproval" => {
            ("permissions", params.get("permissions").cloned().unwrap_or_default())
        }
        "mcpServer/elicitation/request" => {
            let input = params.pointer("/_meta/tool_params").cloned();
            (text(params, "/serverName"), input.unwrap_or_default())
        }
        _ => ("fileChange", item.map(item::input).unwrap_or_default()),
    };
    let doing = item.map(item::about).unwrap_or_default();
    let words =
        [text(params, "/reason"), text(params, "/message"), &doing, text(params, "/command")];
    About {
        tool: item.and_then(item::tool).unwrap_or_else(|| kind.to_owned()),
        tool_use_id: match item {
            Some(item) => text(item, "/id").to_owned(),
            None => text(params, "/itemId").to_owned(),
        },
        description: brief(words.into_iter().find(|words| !words.is_empty()).unwrap_or(kind)),
        input,
    }
}
