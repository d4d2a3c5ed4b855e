//! What Gemini CLI is told, in its `settings.json`: the team's tools.

use brigade_agents::driver::{TOOLS, ToolServer};
use brigade_wire::settings::{Place, Settings};
use serde_json::{Value, json};

use super::edit::{Advice, Edit, Put, Wish};
use super::record::Touched;

const SECTION: &str = "mcpServers";

/// What is to be set beside what the file says now.
pub(crate) fn advise(now: Option<&str>, known: Option<&Touched>, server: &ToolServer) -> Advice {
    let wanted = server_object(server);
    let place = Place { section: Some(SECTION), key: TOOLS };
    let present = match now.map(|now| Settings::read(now.as_bytes())) {
        None => None,
        Some(Ok(settings)) => settings.get(place),
        // Gemini CLI reads comments, and we do not.
        Some(Err(damage)) => return Advice::leave(damage.to_string()),
    };
    match present {
        Some(theirs) if theirs == wanted => Advice::default(),
        Some(theirs) if !is_ours(known, &theirs) => {
            Advice::leave(format!("it has a server `{TOOLS}` that brigade did not put there"))
        }
        _ => {
            let wish = Wish { section: Some(SECTION), key: TOOLS, value: wanted };
            Advice { edit: Some(Edit::Settings(vec![wish])), left: None }
        }
    }
}

fn is_ours(known: Option<&Touched>, value: &Value) -> bool {
    let Some(Put::Settings { settings, .. }) = known.map(|known| &known.put) else { return false };
    settings.iter().any(|ours| ours.key == TOOLS && ours.is == *value)
}

fn server_object(server: &ToolServer) -> Value {
    // Without trust it asks before each call, and a run without a person is not offered the tools.
    let fields =
        [("command", json!(server.command)), ("args", json!(server.args)), ("trust", json!(true))];
    let env = server.env.iter().map(|(key, value)| (key.clone(), json!(value)));
    let env = (!server.env.is_empty()).then(|| ("env", Value::Object(env.collect())));
    Value::Object(fields.into_iter().chain(env).map(|(key, its)| (key.to_owned(), its)).collect())
}
