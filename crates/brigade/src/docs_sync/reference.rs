//! Generates reference pages and tables from the program.

use std::fmt::Write as _;

use brigade_agents::driver::{self, AGENTS, ResumeTiming};
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use serde_json::{Map, Value};

use crate::cli::Cli;
use crate::{commands, exit};

const GENERATED: &str = "<!-- Generated from the program by `just docs`. -->\n";

/// Escapes a text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Generates the reference page of all commands and options.
pub(super) fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = format!(
        "# Commands\n\n{GENERATED}\n\
         All commands and options, as shown by `brigade --help`. For the output of `--json`, exit codes and \
         environment variables, see [Output, exit codes, variables](../cli.md).\n\n"
    );
    let global: Vec<&Arg> =
        root.get_arguments().filter(|argument| argument.is_global_set()).collect();
    text.push_str("## Global options\n\n");
    text.push_str(&options(&global));
    let _infallible = write!(text, "```text\n{}\n```\n\n", exit::HELP);
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(command, &mut text);
    }
    text.trim_end().to_owned() + "\n"
}

/// Generates the reference page of the HTTP API.
pub(super) fn api() -> String {
    let api = brigade_web::openapi::document();
    let mut text = format!(
        "# HTTP API\n\n{GENERATED}\n\
         All calls of the server that [`brigade web`](../web.md) starts. Contents are JSON. The server describes \
         the types of all contents at `/api/v1/openapi.json`.\n\n"
    );
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, call) in methods.as_object().unwrap() {
            let word = |name: &str| call[name].as_str().unwrap_or_default();
            let _infallible = write!(
                text,
                "## `{} {path}`\n\n{} {}\n\n",
                method.to_uppercase(),
                word("summary"),
                word("description")
            );
            let fields =
                call["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            let fields =
                fields.and_then(|reference| api.pointer(reference.trim_start_matches('#')));
            let content = fields.map(schema_table).unwrap_or_default();
            if !content.is_empty() {
                let _infallible = write!(text, "Content:\n\n{content}\n");
            }
            let query = parameter_table(&call["parameters"]);
            if !query.is_empty() {
                let _infallible = write!(text, "Parameters:\n\n{query}\n");
            }
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns a table of the fields of a content.
fn schema_table(schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        return String::new();
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = "| field | | |\n|---|---|---|\n".to_owned();
    for (name, field) in fields {
        let needed = if required.contains(&name.as_str()) { "needed" } else { "" };
        let about = field["description"].as_str().unwrap_or_default();
        let _infallible = writeln!(text, "| `{name}` | {needed} | {} |", cell(about));
    }
    text
}

/// Returns a table of the parameters of the query.
fn parameter_table(parameters: &Value) -> String {
    let query = parameters.as_array().into_iter().flatten();
    let rows = query.filter(|parameter| parameter["in"] == "query").map(|parameter| {
        let about = parameter["description"].as_str().unwrap_or_default();
        format!("| `{}` | {} |\n", parameter["name"].as_str().unwrap_or_default(), cell(about))
    });
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { format!("| parameter | |\n|---|---|\n{rows}") }
}

/// Appends the description of a command and its subcommands to `text`.
fn describe(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap();
    let _infallible = write!(text, "## `{name}`\n\n");
    let about = command.get_long_about().or(command.get_about()).unwrap().to_string();
    text.push_str(&sentences(&about));
    if command.has_subcommands() {
        for below in command.get_subcommands() {
            let about = below.get_about().unwrap();
            let _infallible = writeln!(text, "- `{}`: {about}", below.get_bin_name().unwrap());
        }
        text.push('\n');
    } else {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").trim();
        let _infallible = write!(text, "```text\n{usage}\n```\n\n");
    }
    let own = |argument: &&Arg| !argument.is_global_set() && !is_help(argument);
    text.push_str(&options(&command.get_arguments().filter(own).collect::<Vec<_>>()));
    if let Some(examples) = command.get_after_help() {
        let _infallible = write!(text, "```text\n{}\n```\n\n", examples.to_string().trim_end());
    }
    command.get_subcommands().for_each(|below| describe(below, text));
}

fn is_help(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong)
}

/// Converts help text to paragraphs that end with a full stop.
fn sentences(about: &str) -> String {
    let mut text = String::new();
    for paragraph in about.split("\n\n") {
        let stop = if paragraph.ends_with(['.', '`']) { "" } else { "." };
        let _infallible = write!(text, "{}{stop}\n\n", paragraph.replace('\n', " "));
    }
    text
}

/// Generates a table of arguments.
fn options(arguments: &[&Arg]) -> String {
    let shown = arguments.iter().filter(|argument| !argument.is_hide_set());
    let rows: String = shown.map(|argument| row(argument)).collect();
    if rows.is_empty() { rows } else { format!("| | |\n|---|---|\n{rows}\n") }
}

fn row(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let names =
        argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let value = if takes_value { names.collect::<Vec<_>>().join(" ") } else { String::new() };
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let name = match flags.as_slice() {
        [] => value,
        flags => format!("{} {value}", flags.join(", ")),
    };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let mut help = sentences(&help.unwrap_or_default()).trim_end().replace("\n\n", " ");
    let values: Vec<String> = if takes_value {
        let describe_value = |value: &clap::builder::PossibleValue| {
            let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
            format!("`{}`{help}", value.get_name())
        };
        argument.get_possible_values().iter().map(describe_value).collect()
    } else {
        Vec::new()
    };
    if !values.is_empty() {
        let _infallible = write!(help, " One of {}.", values.join("; "));
    }
    let default: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !default.is_empty() && !argument.is_hide_default_value_set() {
        let _infallible = write!(help, " Default: `{}`.", default.join(","));
    }
    format!("| `{}` | {} |\n", cell(name.trim()), cell(&help))
}

/// Generates the reference page of all tools of `brigade mcp`.
pub(super) fn tools() -> String {
    let mut text = format!(
        "# Tools\n\n{GENERATED}\n\
         All tools of `brigade mcp` as a model sees them: who can use a tool, its description and its arguments. \
         For the results, the permissions and a comparison with Claude Code's own tools, see \
         [The MCP server](../mcp.md).\n"
    );
    for tool in brigade_mcp::tool_docs() {
        let _infallible = write!(text, "\n## `{}`\n\nFor {}. ", tool.name, tool.offered);
        let _infallible = writeln!(text, "{}", tool.description);
        let none = Map::new();
        let properties = tool.input.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required = tool.input.get("required").and_then(Value::as_array);
        if !properties.is_empty() {
            text.push_str("\n| argument | takes | |\n|---|---|---|\n");
        }
        for (name, schema) in properties {
            let must = required.is_some_and(|required| required.iter().any(|other| other == name));
            let must = if must { ", required" } else { "" };
            let help = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let _infallible =
                writeln!(text, "| `{name}` | {}{must} | {} |", takes(schema), cell(help));
        }
    }
    text
}

/// Describes the type of a value in words.
fn takes(schema: &Value) -> String {
    let variants = |schema: &Value| {
        let names = schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        names.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect::<Vec<_>>()
    };
    let named = variants(schema);
    if !named.is_empty() {
        return named.join(", ");
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().map(takes).collect::<Vec<_>>().join(", ");
    }
    if schema
        .get("pattern")
        .and_then(Value::as_str)
        .is_some_and(|pattern| pattern.starts_with("^acp:"))
    {
        return "`acp:COMMAND`".into();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => match schema.pointer("/items/type").and_then(Value::as_str) {
            Some("object") => "a list of tables".into(),
            _ => "a list of strings".into(),
        },
        Some("boolean") => "`true`, `false`".into(),
        Some("integer" | "number") => "a number".into(),
        Some("object") => "a table".into(),
        _ => "a string".into(),
    }
}

/// Generates the tables of all keys in `brigade.toml`, from its schema.
pub(super) fn team_file(schema: &Value) -> String {
    let table = |path: &str| {
        let found = schema.pointer(path).unwrap_or_else(|| panic!("{path}"));
        found.as_object().unwrap().clone()
    };
    let file = table("/properties");
    let mut text = "### The team\n\n".to_owned();
    text.push_str(&keys(&file, schema.get("required")));
    text.push_str("\n### The lead, the defaults, a member\n\n");
    text.push_str("| key | in | takes | |\n|---|---|---|---|\n");
    let places = [
        ("members", table("/properties/members/additionalProperties/properties")),
        ("defaults", table("/properties/defaults/properties")),
        ("lead", table("/properties/lead/properties")),
    ];
    let mut names: Vec<&String> = places.iter().flat_map(|(_, keys)| keys.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let within: Vec<_> = places.iter().filter(|(_, keys)| keys.contains_key(name)).collect();
        let (_, keys) = within.first().unwrap();
        let places = match within.len() {
            3 => "all".to_owned(),
            _ => {
                within.iter().map(|(place, _)| format!("`{place}`")).collect::<Vec<_>>().join(", ")
            }
        };
        let schema = &keys[name];
        let _infallible =
            writeln!(text, "| `{name}` | {places} | {} | {} |", takes(schema), description(schema));
    }
    text.push_str("\n### A rule\n\n");
    let rule = "/properties/defaults/properties/rules/items";
    text.push_str(&keys(
        &table(&format!("{rule}/properties")),
        schema.pointer(&format!("{rule}/required")),
    ));
    text.push_str("\n### A task\n\n");
    let task = "/properties/tasks/additionalProperties";
    text.push_str(&keys(
        &table(&format!("{task}/properties")),
        schema.pointer(&format!("{task}/required")),
    ));
    text
}

fn keys(table: &Map<String, Value>, required: Option<&Value>) -> String {
    let mut text = "| key | takes | |\n|---|---|---|\n".to_owned();
    let required = required.and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, schema) in table {
        let must = if required.iter().any(|other| other == name) { " Required." } else { "" };
        let _infallible =
            writeln!(text, "| `{name}` | {} | {}{must} |", takes(schema), description(schema));
    }
    text
}

fn description(schema: &Value) -> String {
    cell(schema.get("description").and_then(Value::as_str).unwrap_or_default())
}

/// Generates the table of agents: their capabilities, and the versions that the end-to-end tests run.
pub(super) fn agents(common_sh: &str) -> String {
    let headings = "| agent | name | tested | new messages | plan mode enforced by | reports usage | resumes |";
    let mut text = format!("{headings}\n|---|---|---|---|---|---|---|\n");
    let other = driver::agent("acp:COMMAND").unwrap().agent;
    for agent in AGENTS.iter().chain([&other]) {
        let (title, name, seen) = match agent.package {
            "" => (
                "any other agent that supports ACP".to_owned(),
                "acp:COMMAND",
                "a scripted agent".to_owned(),
            ),
            package => {
                // The last version is the tested one. The tests may also install an older version as a lead.
                let seen = versions(common_sh, package);
                assert_eq!(seen.last().map(String::as_str), Some(agent.tested), "{package}");
                (agent.title.to_owned(), agent.name, agent.tested.to_owned())
            }
        };
        let (mail, read_only, usage) = commands::agent_capability_text(agent.can);
        let resumes = match agent.can.resumes {
            ResumeTiming::AtOnce => "immediately",
            ResumeTiming::NextMinute => "within a minute",
        };
        let can = [mail, read_only, usage, resumes].join(" | ");
        let _infallible = writeln!(text, "| {title} | `{name}` | {seen} | {can} |");
    }
    text
}

/// Returns the versions of a package that the end-to-end tests install.
fn versions(common_sh: &str, package: &str) -> Vec<String> {
    let line = |line: &str| {
        let (_, rest) = line.split_once(&format!(" {package} "))?;
        Some(rest.split_whitespace().next()?.to_owned())
    };
    let found: Vec<String> = common_sh.lines().filter_map(line).collect();
    assert!(!found.is_empty(), "no end-to-end test installs {package}");
    found
}
