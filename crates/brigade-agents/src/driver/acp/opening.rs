//! Builds the requests that open a session and set its model, and reads the responses.

use serde_json::{Value, json};

use super::super::text::text;
use super::super::{TOOL_SERVER_NAME, ToolServer};

/// Describes the MCP server for the team's tools in ACP's format.
pub(super) fn server(tools: &ToolServer) -> Value {
    let env = tools.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
    json!({
        "name": TOOL_SERVER_NAME,
        "command": tools.command,
        "args": tools.args,
        "env": env.collect::<Vec<_>>(),
    })
}

/// Returns the request that sets the model. Newer agents have a session option for the model, and older agents
/// have a method for it.
pub(super) fn model(session: Option<&str>, result: &Value, model: &str) -> (&'static str, Value) {
    match option(result, "model") {
        Some(_) => {
            let params = json!({ "sessionId": session, "configId": "model", "value": model });
            ("session/set_config_option", params)
        }
        None => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
    }
}

/// Returns the current mode of a newly opened session.
pub(super) fn mode(result: &Value) -> Option<&str> {
    match result.pointer("/modes/currentModeId") {
        Some(mode) => mode.as_str(),
        None => option(result, "mode")?.get("currentValue")?.as_str(),
    }
}

/// Finds a session option by id. Only newer agents have session options.
fn option<'a>(result: &'a Value, id: &str) -> Option<&'a Value> {
    let options = result.get("configOptions")?.as_array()?;
    options.iter().find(|option| text(option, "/id") == id)
}
