//! What Codex is told, in its `config.toml`: the team's tools, and to offer them to every model.

use brigade_agents::driver::{TOOLS, ToolServer};
use toml::{Table, Value};

use super::edit::{self, Advice, Edit};
use super::record::Touched;

/// Where Codex's own models would have to look for the tools if they were not kept out of there: in
/// code they write, or in a search.
const HIDDEN_BEHIND: [&str; 2] = ["code_mode", "deferred"];

/// What is to be put behind what the file says now.
pub(crate) fn advise(now: Option<&str>, known: Option<&Touched>, server: &ToolServer) -> Advice {
    let now = now.unwrap_or_default();
    let unreadable =
        |error: &toml::de::Error| Advice::leave(format!("not TOML: {}", error.message()));
    let table = match now.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return unreadable(&error),
    };
    let wanted = server_table(server);
    if server_in(&table) == Some(&wanted) {
        return Advice::default();
    }
    // From here on without what we put there before.
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
        return Advice::leave(format!("it has a server `{TOOLS}` that brigade did not put there"));
    }
    // A blank line before it, and none at the top of a file.
    let gap = match before.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let piece = format!("{gap}{}", server_text(server));
    let text = before + &piece;
    // Tables can be spelled in ways that nothing can be added to from below.
    let whole = text.parse::<Table>();
    if !whole.is_ok_and(|table| server_in(&table) == Some(&wanted)) {
        return Advice::leave(format!("no server `{TOOLS}` can be added to the way it is written"));
    }
    Advice { edit: Some(Edit::Pieces(vec![piece])), left: None }
}

/// Whether a text still means what one of these pieces says, in whatever words.
pub(crate) fn still_says(text: &str, pieces: &[String]) -> bool {
    let Ok(table) = text.parse::<Table>() else { return false };
    let said = |piece: &String| piece.parse::<Table>().is_ok_and(|piece| is_within(&piece, &table));
    pieces.iter().any(said)
}

fn is_within(part: &Table, whole: &Table) -> bool {
    part.iter().all(|(key, value)| match (value, whole.get(key)) {
        (Value::Table(part), Some(Value::Table(whole))) => is_within(part, whole),
        (value, found) => found == Some(value),
    })
}

fn server_in(table: &Table) -> Option<&Value> {
    lookup(table, &["mcp_servers", TOOLS])
}

fn lookup<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

fn server_table(server: &ToolServer) -> Value {
    let mut table = Table::new();
    table.insert("command".to_owned(), Value::from(server.command.as_str()));
    table.insert("args".to_owned(), Value::from(server.args.clone()));
    table.insert("omit_tools_from".to_owned(), Value::from(HIDDEN_BEHIND.to_vec()));
    if !server.env.is_empty() {
        let env = server.env.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        table.insert("env".to_owned(), Value::Table(env.collect()));
    }
    Value::Table(table)
}

/// In the form in which Codex itself writes it, so that it stays as it is when Codex writes another.
fn server_text(server: &ToolServer) -> String {
    let args: Vec<String> = server.args.iter().map(|arg| quoted(arg)).collect();
    let mut text = format!(
        "[mcp_servers.{TOOLS}]\ncommand = {}\nargs = [{}]\nomit_tools_from = [{}]\n",
        quoted(&server.command),
        args.join(", "),
        HIDDEN_BEHIND.map(quoted).join(", ")
    );
    if !server.env.is_empty() {
        text += &format!("\n[mcp_servers.{TOOLS}.env]\n");
        for (key, value) in &server.env {
            text += &format!("{key} = {}\n", quoted(value));
        }
    }
    text
}

/// A string of TOML: what JSON escapes means the same there, but for DEL, which must be escaped.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007F")
}
