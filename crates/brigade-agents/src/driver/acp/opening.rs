//! What is said when a session is opened.

use serde_json::{Value, json};

use super::super::words::text;
use super::super::{Launch, TOOLS, ToolServer};

/// The server of the team's tools in the protocol's own form.
pub(super) fn server(tools: &ToolServer) -> Value {
    let env = tools.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
    json!({
        "name": TOOLS,
        "command": tools.command,
        "args": tools.args,
        "env": env.collect::<Vec<_>>(),
    })
}

/// The request that sets the model. It is one of the session's options in newer agents, and has a method
/// of its own in older ones.
pub(super) fn model(session: Option<&str>, result: &Value, model: &str) -> (&'static str, Value) {
    match option(result, "model") {
        Some(_) => {
            let params = json!({ "sessionId": session, "configId": "model", "value": model });
            ("session/set_config_option", params)
        }
        None => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
    }
}

/// The mode a session is in when it is opened.
pub(super) fn mode(result: &Value) -> Option<&str> {
    match result.pointer("/modes/currentModeId") {
        Some(mode) => mode.as_str(),
        None => option(result, "mode")?.get("currentValue")?.as_str(),
    }
}

/// What an agent is told of its place on the team, before the first prompt of a session: the protocol
/// has no other place for it.
pub(super) fn introduction(launch: &Launch) -> String {
    format!("{}\n\n", launch.instructions)
}

/// One of the options that newer agents have for a session.
fn option<'a>(result: &'a Value, id: &str) -> Option<&'a Value> {
    let options = result.get("configOptions")?.as_array()?;
    options.iter().find(|option| text(option, "/id") == id)
}
