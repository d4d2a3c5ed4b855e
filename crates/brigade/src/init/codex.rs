//! The settings for Codex in its `config.toml`: the team's MCP tools, offered to every model.

use brigade_agents::driver::{TOOL_SERVER_NAME, ToolServer};
use toml::{Table, Value};

use super::edit::{self, EditDecision, FileEdit};
use super::record::{ChangedFile, OurContent};

/// Codex must not offer the team's tools in these ways. Otherwise Codex's own models could call the tools only
/// from code that they write, or only after a tool search.
const OMIT_FROM: [&str; 2] = ["code_mode", "deferred"];

/// Decides what to append to `config.toml`.
pub(crate) fn decide(
    now: Option<&str>,
    known: Option<&ChangedFile>,
    server: &ToolServer,
) -> EditDecision {
    let now = now.unwrap_or_default();
    let unreadable = |error: &toml::de::Error| {
        EditDecision::leave_alone(format!("not TOML: {}", error.message()))
    };
    let table = match now.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return unreadable(&error),
    };
    let wanted = server_table(server);
    if server_in(&table) == Some(&wanted) {
        return EditDecision::default();
    }
    if let Some(OurContent::Pieces(pieces)) = known.map(|known| &known.put)
        && let moved = moved_keys(now, pieces)
        && !moved.is_empty()
    {
        return EditDecision::leave_alone(format!(
            "{} was added to brigade's table; move it to another table first",
            moved.join(", ")
        ));
    }
    // From here on, work on the text without the settings that brigade added earlier.
    let before = match known {
        Some(known) if known.is_as_left(now) => known.before.clone().unwrap_or_default(),
        Some(known) => edit::without(&known.put, now).unwrap_or_default().into_owned(),
        None => now.to_owned(),
    };
    let table = match before.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return unreadable(&error),
    };
    if server_in(&table).is_some() {
        return EditDecision::leave_alone(format!(
            "it already has another server named `{TOOL_SERVER_NAME}`"
        ));
    }
    // Separate the new table with a blank line, except at the start of the file.
    let gap = match before.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let piece = format!("{gap}{}", server_text(server));
    let text = before + &piece;
    // Some tables cannot be extended by appending text to the file, for example an inline table.
    let whole = text.parse::<Table>();
    if !whole.is_ok_and(|table| server_in(&table) == Some(&wanted)) {
        return EditDecision::leave_alone(format!(
            "the way it is written does not allow appending a server `{TOOL_SERVER_NAME}`"
        ));
    }
    EditDecision { edit: Some(FileEdit::Pieces(vec![piece])), left: None }
}

/// Returns the keys that would move into another table if the pieces were cut out of the text: a person added them
/// below brigade's table, so they belong to it.
pub(crate) fn moved_keys(now: &str, pieces: &[String]) -> Vec<String> {
    let Ok(mut expected) = now.parse::<Table>() else { return Vec::new() };
    let cut = edit::without_pieces(pieces, now);
    if cut == now {
        return Vec::new();
    }
    let mut keys = Vec::new();
    for piece in pieces.iter().filter_map(|piece| piece.parse::<Table>().ok()) {
        subtract(&mut expected, &piece);
        added_keys(&expected, &piece, "", &mut keys);
    }
    let Ok(mut after) = cut.parse::<Table>() else { return keys };
    prune(&mut after);
    prune(&mut expected);
    if after == expected { Vec::new() } else { keys }
}

/// Removes the values of `part` from `whole`.
fn subtract(whole: &mut Table, part: &Table) {
    for (key, value) in part {
        match (whole.get_mut(key), value) {
            (Some(Value::Table(whole)), Value::Table(part)) => subtract(whole, part),
            (Some(found), value) if found == value => drop(whole.remove(key)),
            _ => {}
        }
    }
}

/// Removes empty tables.
fn prune(table: &mut Table) {
    for (_, value) in table.iter_mut() {
        if let Value::Table(inner) = value {
            prune(inner);
        }
    }
    table.retain(|_, value| !matches!(value, Value::Table(inner) if inner.is_empty()));
}

/// Collects the keys of values in `rest` that are in a table which directly contains values of `part`.
fn added_keys(rest: &Table, part: &Table, prefix: &str, keys: &mut Vec<String>) {
    if part.values().any(|value| !value.is_table()) {
        let values = rest.iter().filter(|(_, value)| !value.is_table());
        keys.extend(values.map(|(key, _)| format!("{prefix}{key}")));
    }
    for (key, value) in part {
        if let (Value::Table(part), Some(Value::Table(rest))) = (value, rest.get(key)) {
            added_keys(rest, part, &format!("{prefix}{key}."), keys);
        }
    }
}

/// Returns whether a configuration still contains all settings of one of these pieces, possibly in another format.
pub(crate) fn still_contains(text: &str, pieces: &[String]) -> bool {
    let Ok(table) = text.parse::<Table>() else { return false };
    let is_contained =
        |piece: &String| piece.parse::<Table>().is_ok_and(|piece| is_within(&piece, &table));
    pieces.iter().any(is_contained)
}

fn is_within(part: &Table, whole: &Table) -> bool {
    part.iter().all(|(key, value)| match (value, whole.get(key)) {
        (Value::Table(part), Some(Value::Table(whole))) => is_within(part, whole),
        (value, found) => found == Some(value),
    })
}

fn server_in(table: &Table) -> Option<&Value> {
    lookup(table, &["mcp_servers", TOOL_SERVER_NAME])
}

fn lookup<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

fn server_table(server: &ToolServer) -> Value {
    let mut table = Table::new();
    table.insert("command".to_owned(), Value::from(server.command.as_str()));
    table.insert("args".to_owned(), Value::from(server.args.clone()));
    table.insert("omit_tools_from".to_owned(), Value::from(OMIT_FROM.to_vec()));
    if !server.env.is_empty() {
        let env = server.env.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        table.insert("env".to_owned(), Value::Table(env.collect()));
    }
    Value::Table(table)
}

/// Formats the server's settings as Codex itself would, so that the text stays unchanged when Codex adds another
/// server.
fn server_text(server: &ToolServer) -> String {
    let args: Vec<String> = server.args.iter().map(|arg| quoted(arg)).collect();
    let mut text = format!(
        "[mcp_servers.{TOOL_SERVER_NAME}]\ncommand = {}\nargs = [{}]\nomit_tools_from = [{}]\n",
        quoted(&server.command),
        args.join(", "),
        OMIT_FROM.map(quoted).join(", ")
    );
    if !server.env.is_empty() {
        text += &format!("\n[mcp_servers.{TOOL_SERVER_NAME}.env]\n");
        for (key, value) in &server.env {
            text += &format!("{key} = {}\n", quoted(value));
        }
    }
    text
}

/// Quotes a text as a TOML string. JSON escapes are valid in TOML; only DEL must be escaped in addition.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007F")
}
