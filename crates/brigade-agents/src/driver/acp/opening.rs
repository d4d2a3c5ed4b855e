//! The requests that open a session.

use serde_json::{Value, json};

use super::super::text::text;
use super::super::{LaunchOptions, TOOL_SERVER_NAME, ToolServer};

/// The server for the team's tools, in the protocol's format.
pub(super) fn server(tools: &ToolServer) -> Value {
    let env = tools.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
    json!({
        "name": TOOL_SERVER_NAME,
        "command": tools.command,
        "args": tools.args,
        "env": env.collect::<Vec<_>>(),
    })
}

/// The request that sets the model. Newer agents have a session option for it, older ones a method.
pub(super) fn model(session: Option<&str>, result: &Value, model: &str) -> (&'static str, Value) {
    match option(result, "model") {
        Some(_) => {
            let params = json!({ "sessionId": session, "configId": "model", "value": model });
            ("session/set_config_option", params)
        }
        None => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
    }
}

/// The mode of a newly opened session.
pub(super) fn mode(result: &Value) -> Option<&str> {
    match result.pointer("/modes/currentModeId") {
        Some(mode) => mode.as_str(),
        None => option(result, "mode")?.get("currentValue")?.as_str(),
    }
}

/// The text before the first prompt of a session that describes the agent's role on the team. The
/// protocol has no other field for it.
pub(super) fn introduction(launch: &LaunchOptions) -> String {
    format!("{}\n\n", launch.instructions)
}

/// One of the session options of newer agents.
fn option<'a>(result: &'a Value, id: &str) -> Option<&'a Value> {
    let options = result.get("configOptions")?.as_array()?;
    options.iter().find(|option| text(option, "/id") == id)
}
