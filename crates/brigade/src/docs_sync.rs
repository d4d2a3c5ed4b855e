//! Tests that the documentation matches the program.
//!
//! The reference pages for commands, options, tools, agents, keys and `brigade.toml` are generated from the
//! program's own tables. These tests compare the pages with the program; with `BRIGADE_DOCS=write` (`just docs`)
//! they write the pages instead. They also parse the examples in the documentation as the program would, and
//! check every link.

mod examples;
mod links;
mod markdown;
mod reference;
mod shell_words;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Checks a page whose whole text is generated.
fn check_page(path: &str, generated: &str) {
    check(path, &fs::read_to_string(root().join(path)).unwrap_or_default(), generated);
}

/// Checks the part of a page between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
fn check_part(path: &str, name: &str, generated: &str) {
    let text = read(path);
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let found = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}{generated}{end}{after}"))
    });
    check(path, &text, &found.unwrap_or_else(|| panic!("{path} has no part {name}")));
}

/// Compares a page with the generated text. With `BRIGADE_DOCS=write`, writes the generated text to the page.
fn check(path: &str, current: &str, generated: &str) {
    if current == generated {
        return;
    }
    if std::env::var_os("BRIGADE_DOCS").is_some_and(|mode| mode == "write") {
        let path = root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, generated).unwrap();
        return;
    }
    let differs = current.lines().zip(generated.lines()).position(|(old, new)| old != new);
    let at = differs.unwrap_or_else(|| current.lines().count().min(generated.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
    panic!(
        "{path} is out of date; run `just docs`\nline {}: {}\nshould be: {}",
        at + 1,
        line(current),
        line(generated)
    );
}

#[test]
fn command_reference_is_current() {
    check_page("docs/reference/cli.md", &reference::commands());
}

#[test]
fn api_reference_is_current() {
    check_page("docs/reference/api.md", &reference::api());
}

#[test]
fn tool_reference_is_current() {
    check_page("docs/reference/mcp.md", &reference::tools());
}

#[test]
fn team_file_reference_and_schema_are_current() {
    let schema = brigade_host::team_file::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    check_page("docs/brigade.schema.json", &text);
    check_part("docs/brigade-toml.md", "keys", &reference::team_file(&schema));
}

#[test]
fn dashboard_key_table_is_current() {
    check_part("docs/ui.md", "keys", &brigade_tui::key_table());
    check_part("docs/steer.md", "attach-keys", &brigade_tui::attached_key_table());
}

#[test]
fn agent_table_is_current() {
    let table = reference::agents(&read("e2e/common.sh"));
    check_part("docs/agents.md", "agents", &table);
    if read("README.md").contains("<!-- agents:begin -->") {
        check_part("README.md", "agents", &table);
    }
}
