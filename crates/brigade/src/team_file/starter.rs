//! Generates a starter `brigade.toml` for a folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use brigade_core::driver::{AGENTS, Agent};
use brigade_wire::name::{MAX_NAME, TeamName};

use crate::installed;

/// Files that indicate a language or tool, and its usual commands.
const TRACES: &[(&str, &[&str])] = &[
    ("Cargo.toml", &["cargo build*", "cargo check*", "cargo clippy*", "cargo fmt*", "cargo test*"]),
    ("go.mod", &["go build*", "go test*", "go vet*"]),
    ("pom.xml", &["mvn test*"]),
    ("build.gradle", &["./gradlew test*"]),
    ("build.gradle.kts", &["./gradlew test*"]),
    ("mix.exs", &["mix test*"]),
    ("deno.json", &["deno test*", "deno lint*"]),
    ("Makefile", &["make test*"]),
    ("justfile", &["just test*"]),
];

/// Files that indicate Python, and the lock files that indicate its command runner.
const PYTHON: [&str; 3] = ["pyproject.toml", "setup.py", "requirements.txt"];
const PYTHON_RUNNERS: [(&str, &str); 2] = [("uv.lock", "uv run "), ("poetry.lock", "poetry run ")];

/// The programs that run the scripts of a `package.json`, by their lock file.
const NODE_RUNNERS: [(&str, &str); 4] =
    [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];

/// Common scripts that are safe to allow.
const NODE_SCRIPTS: [&str; 5] = ["build", "format", "lint", "test", "typecheck"];

/// The data that the starter file is generated from.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) team: String,
    /// The agents of its members.
    pub(crate) agents: Vec<&'static str>,
    /// Whether these agents are installed.
    pub(crate) is_staffed: bool,
    allow: Vec<String>,
}

impl Surroundings {
    /// Inspects a folder and this machine.
    pub(crate) fn of(dir: &Path) -> Self {
        let is_here = |agent: &&Agent| installed::program(agent).is_some();
        let mut agents: Vec<&str> =
            AGENTS.iter().filter(is_here).map(|agent| agent.name).take(2).collect();
        let is_staffed = !agents.is_empty();
        if !is_staffed {
            agents.push("claude");
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        Self { team: team(&name), agents, is_staffed, allow: allow(dir) }
    }
}

/// Converts any name to a valid team name.
fn team(name: &str) -> String {
    let letters = name.chars().map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    });
    let letters: String = letters.take(MAX_NAME).collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    match words.join("-").parse::<TeamName>() {
        Ok(team) => team.to_string(),
        Err(_) => "team".to_owned(),
    }
}

fn allow(dir: &Path) -> Vec<String> {
    let is_there = |file: &str| dir.join(file).is_file();
    let traces = TRACES.iter().filter(|(file, _)| is_there(file));
    let mut allow: Vec<String> =
        traces.flat_map(|(_, commands)| *commands).map(|&command| command.to_owned()).collect();
    if PYTHON.into_iter().any(is_there) {
        let runner = PYTHON_RUNNERS.into_iter().find(|(file, _)| is_there(file));
        let runner = runner.map_or("", |(_, runner)| runner);
        allow.extend(["pytest*", "ruff check*"].map(|command| format!("{runner}{command}")));
    }
    if let Ok(package) = fs::read(dir.join("package.json")) {
        let package: serde_json::Value = serde_json::from_slice(&package).unwrap_or_default();
        let has = |script: &&str| package.pointer(&format!("/scripts/{script}")).is_some();
        let runner = NODE_RUNNERS.into_iter().find(|(file, _)| is_there(file));
        let runner = runner.map_or("npm", |(_, runner)| runner);
        let scripts = NODE_SCRIPTS.into_iter().filter(has);
        allow.extend(scripts.map(|script| format!("{runner} run {script}*")));
    }
    allow.extend(["git diff*", "git log*", "git status*"].map(str::to_owned));
    allow.dedup();
    allow
}

/// The text of the file. A line that starts with `#` and no space is a disabled setting.
pub(crate) fn text(surroundings: &Surroundings, schema: Option<&str>) -> String {
    let Surroundings { team, agents, allow, .. } = surroundings;
    let mut text = String::new();
    if let Some(schema) = schema {
        let _infallible = writeln!(text, "#:schema ./{schema}");
    }
    let _infallible = write!(
        text,
        "{HEAD}\nteam = \"{team}\"\ndescription = \"Work on {team}\"\n\n{LEAD}\n{DEFAULTS}allow = [\n"
    );
    for command in allow {
        let _infallible = writeln!(text, "    \"{command}\",");
    }
    text.push_str(DENY);
    let mut agents = agents.iter().copied();
    let first = agents.next().unwrap_or("claude");
    let second = agents.next();
    let _infallible = write!(text, "\n[members.builder]\nagent = \"{first}\"\n{BUILDER}");
    // Prefer another agent as the reviewer. If only one is installed, use a second session of it.
    let reviewer = second.unwrap_or(first);
    let _infallible = write!(text, "\n[members.reviewer]\nagent = \"{reviewer}\"\n{REVIEWER}");
    text.push_str(TASKS);
    text
}

const HEAD: &str = "\
# A team of coding agents.
# `brigade up --check` checks this file and previews the team.
";

const LEAD: &str = "\
# Without [lead], you lead. An agent that leads can be allowed to answer plans and permission requests.
#[lead]
#agent = \"claude\"
#answers = \"lead\"
#prompt = \"Divide the work among the members and keep the task board up to date.\"
";

const DEFAULTS: &str = "\
# Defaults for the lead and all members.
[defaults]
# \"ask\": members ask before anything their agent's own rules do not allow; \"full\": everything is allowed.
access = \"ask\"
# \"headless\": in the background; \"tmux\": in a tmux window; \"native\": the real Claude Code in a tmux window.
place = \"headless\"
# When a member's process dies: \"always\" restarts it; \"never\" unassigns its tasks.
restart = \"always\"
# Each member works in its own git worktree and branch.
#worktree = true
# Environment variables that members inherit. Default: all.
#env = [\"OPENAI_API_KEY\"]
# Commands that are allowed without asking. * matches any text.
";

const DENY: &str = "\
]
# Commands that need approval even if `allow` matches.
#ask = [\"git commit*\"]
# Commands that are always denied.
deny = [\"git push*\"]
";

const BUILDER: &str = "\
prompt = \"You build. Do each task assigned to you, test it, and report to team-lead.\"
# Defaults: the agent's program on the PATH, the agent's own default model, the folder of this file.
#model = \"model-name\"
#program = \"./path/to/program\"
#dir = \".\"
";

const REVIEWER: &str = "\
prompt = \"You review. When asked, read a change and tell its author what is wrong with it.\"
# Plan mode: no changes until its plan is approved.
plan = true
# A rule for tools other than commands.
#[[members.reviewer.rules]]
#tool = \"*edit*\"
#ruling = \"ask\"
";

const TASKS: &str = "
# Initial tasks. Names such as `design` are only used in this file.
#[tasks.design]
#subject = \"Design the change\"
#description = \"Describe what to change and why.\"

#[tasks.build]
#subject = \"Make the change\"
#after = [\"design\"]
#owner = \"builder\"
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_name_becomes_a_valid_team_name() {
        for (folder, name) in [
            ("parser", "parser"),
            ("My Project_2", "my-project-2"),
            (".dotfiles", "dotfiles"),
            ("日本", "team"),
            ("--", "team"),
            ("", "team"),
        ] {
            assert_eq!(team(folder), name);
        }
        assert!(team(&"a-".repeat(99)).parse::<TeamName>().is_ok());
    }
}
