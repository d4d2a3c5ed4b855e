//! The papers and the program say the same.
//!
//! What the guide tells of commands, options, tools, agents, keys and `brigade.toml` is made from the tables
//! the program itself goes by. Here it is compared; with `BRIGADE_PAPERS=write` (`just docs`) it is written
//! anew. What the papers show as an example is read as the program would read it, and every link leads
//! somewhere.

mod examples;
mod links;
mod markdown;
mod reference;
mod wire;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use crate::{team_file, ui};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A whole page that is made here.
fn page(path: &str, made: &str) {
    keep(path, &fs::read_to_string(root().join(path)).unwrap_or_default(), made);
}

/// The part of a page between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
fn part(path: &str, name: &str, made: &str) {
    let text = read(path);
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let found = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}{made}{end}{after}"))
    });
    keep(path, &text, &found.unwrap_or_else(|| panic!("{path} has no part {name}")));
}

fn keep(path: &str, is: &str, made: &str) {
    if is == made {
        return;
    }
    if std::env::var_os("BRIGADE_PAPERS").is_some_and(|word| word == "write") {
        let path = root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
        return;
    }
    let differs = is.lines().zip(made.lines()).position(|(is, made)| is != made);
    let at = differs.unwrap_or_else(|| is.lines().count().min(made.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
    panic!(
        "{path} is not what the program says; `just docs` writes it anew\nline {}: {}\nshould be: {}",
        at + 1,
        line(is),
        line(made)
    );
}

#[test]
fn every_command() {
    page("docs/reference/cli.md", &reference::commands());
}

#[test]
fn every_tool() {
    page("docs/reference/mcp.md", &reference::tools());
}

#[test]
fn every_key_of_the_team_file() {
    let schema = team_file::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    page("docs/brigade.schema.json", &text);
    part("docs/brigade-toml.md", "keys", &reference::team_file(&schema));
}

#[test]
fn every_key_of_the_dashboard() {
    part("docs/ui.md", "keys", &ui::key_table());
}

#[test]
fn what_each_agent_can_do() {
    let table = reference::agents(&read("e2e/common.sh"));
    part("docs/agents.md", "agents", &table);
    if read("README.md").contains("<!-- agents:begin -->") {
        part("README.md", "agents", &table);
    }
}
