//! A first `brigade.toml`, for the folder it is to be in.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use brigade_agents::driver::{AGENTS, Agent};
use brigade_wire::name::{MAX_NAME, TeamName};

use crate::installed::Programs;

/// Files that tell which commands are in daily use, and these commands.
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

/// Python's tools, and the file that tells which program runs them.
const PYTHON: [&str; 3] = ["pyproject.toml", "setup.py", "requirements.txt"];
const PYTHON_RUNNERS: [(&str, &str); 2] = [("uv.lock", "uv run "), ("poetry.lock", "poetry run ")];

/// The programs that run the scripts of a `package.json`, by the file each leaves.
const NODE_RUNNERS: [(&str, &str); 4] =
    [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];

/// Scripts that are the same in most packages and harmless.
const NODE_SCRIPTS: [&str; 5] = ["build", "format", "lint", "test", "typecheck"];

/// What the starter is made from.
#[derive(Debug)]
pub struct Surroundings {
    pub team: String,
    /// The agents of its members.
    pub agents: Vec<&'static str>,
    /// Whether these are installed.
    pub is_staffed: bool,
    allow: Vec<String>,
}

impl Surroundings {
    /// What there is in a folder, and on this machine.
    pub fn of(programs: &Programs, dir: &Path) -> Self {
        let is_here = |agent: &&Agent| programs.program(agent).is_some();
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

/// A team's name out of any name.
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

/// The file. A line that begins with `#` and no space is a setting that is not used.
pub fn text(surroundings: &Surroundings, schema: Option<&str>) -> String {
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
    // Somebody else's eyes see more; where there is nobody else, another session of the same agent.
    let reviewer = second.unwrap_or(first);
    let _infallible = write!(text, "\n[members.reviewer]\nagent = \"{reviewer}\"\n{REVIEWER}");
    text.push_str(TASKS);
    text
}

const HEAD: &str = "\
# A team of coding agents.
# `brigade up --check` says what this file means, and every mistake in it.
";

const LEAD: &str = "\
# Without [lead] a person leads. An agent that leads can be allowed to answer plans and requests.
#[lead]
#agent = \"claude\"
#answers = \"lead\"
#prompt = \"Divide the work among the members, and keep the board in order.\"
";

const DEFAULTS: &str = "\
# What holds for everybody who does not say otherwise.
[defaults]
# \"ask\": beyond its agent's own rules a member asks; \"full\": it does what it likes.
access = \"ask\"
# \"headless\": nowhere to be seen; \"tmux\": in a window; \"native\": the real Claude Code in a window.
place = \"headless\"
# \"always\": who dies is started again; \"never\": its tasks go back to the board.
restart = \"always\"
# Each in a git worktree of its own, on a branch of its own.
#worktree = true
# The variables members inherit, by name; all of them if this is not said.
#env = [\"OPENAI_API_KEY\"]
# Commands nobody is asked about. A * stands for any letters.
";

const DENY: &str = "\
]
# Commands somebody is asked about, whatever is allowed.
#ask = [\"git commit*\"]
# Commands that are refused, whatever else is said.
deny = [\"git push*\"]
";

const BUILDER: &str = "\
prompt = \"You build. Do each task that is given to you, test it, and report to team-lead.\"
# The agent is the one on the path, chooses its model and works beside this file, if nothing is said.
#model = \"the agent's own name of a model\"
#program = \"./its-program\"
#dir = \".\"
";

const REVIEWER: &str = "\
prompt = \"You review. When you are asked to, read a change, and tell its author what is wrong with it.\"
# It may change nothing before its plan is approved.
plan = true
# A rule in full, for tools that are not commands.
#[[members.reviewer.rules]]
#tool = \"*edit*\"
#ruling = \"ask\"
";

const TASKS: &str = "
# What the board begins with. A name such as `design` stands in this file only.
#[tasks.design]
#subject = \"Design the change\"
#description = \"Write down what is to be changed, and why.\"

#[tasks.build]
#subject = \"Make the change\"
#after = [\"design\"]
#owner = \"builder\"
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_folder_gives_a_name() {
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
