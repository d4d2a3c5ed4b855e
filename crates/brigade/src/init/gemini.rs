//! The settings for Gemini CLI in its `settings.json`: the team's MCP tools.

use brigade_agents::driver::{TOOL_SERVER_NAME, ToolServer};
use brigade_wire::settings::{SettingPath, SettingsFile};
use serde_json::{Value, json};

use super::edit::{EditDecision, FileEdit, WantedSetting};
use super::record::{ChangedFile, OurContent};

const SECTION: &str = "mcpServers";

/// Decides what to add to `settings.json`.
pub(crate) fn decide(
    now: Option<&str>,
    known: Option<&ChangedFile>,
    server: &ToolServer,
) -> EditDecision {
    let wanted = server_object(server);
    let place = SettingPath { section: Some(SECTION), key: TOOL_SERVER_NAME };
    let present = match now.map(|now| SettingsFile::read(now.as_bytes())) {
        None => None,
        Some(Ok(settings)) => settings.get(place),
        // Gemini CLI accepts comments; brigade's parser does not.
        Some(Err(damage)) => return EditDecision::leave_alone(damage.to_string()),
    };
    match present {
        Some(theirs) if theirs == wanted => EditDecision::default(),
        Some(theirs) if !is_ours(known, &theirs) => EditDecision::leave_alone(format!(
            "it already has another server named `{TOOL_SERVER_NAME}`"
        )),
        _ => {
            let setting =
                WantedSetting { section: Some(SECTION), key: TOOL_SERVER_NAME, value: wanted };
            EditDecision { edit: Some(FileEdit::Settings(vec![setting])), left: None }
        }
    }
}

fn is_ours(known: Option<&ChangedFile>, value: &Value) -> bool {
    let Some(OurContent::Settings { settings, .. }) = known.map(|known| &known.put) else {
        return false;
    };
    settings.iter().any(|ours| ours.key == TOOL_SERVER_NAME && ours.is == *value)
}

fn server_object(server: &ToolServer) -> Value {
    // Without `trust`, Gemini CLI asks the user before each call, and does not offer the tools when run
    // non-interactively.
    let fields =
        [("command", json!(server.command)), ("args", json!(server.args)), ("trust", json!(true))];
    let env = server.env.iter().map(|(key, value)| (key.clone(), json!(value)));
    let env = (!server.env.is_empty()).then(|| ("env", Value::Object(env.collect())));
    Value::Object(
        fields.into_iter().chain(env).map(|(key, value)| (key.to_owned(), value)).collect(),
    )
}
