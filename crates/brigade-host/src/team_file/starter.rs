//! Writes a starter `brigade.toml` for a folder.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use brigade_agents::driver::{AGENTS, Agent};
use brigade_wire::name::{MAX_NAME, TeamName};
use sha2::{Digest as _, Sha256};

use super::regular_file;
use super::templates::Template;
use crate::installed::Programs;

/// Files that identify a build tool, and the commands of that tool that members may run without asking.
const BUILD_TOOLS: &[(&str, &[&str])] = &[
    (
        "Cargo.toml",
        &["cargo build *", "cargo check *", "cargo clippy *", "cargo fmt *", "cargo test *"],
    ),
    ("go.mod", &["go build *", "go test *", "go vet *"]),
    ("pom.xml", &["mvn test *"]),
    ("build.gradle", &["./gradlew test *"]),
    ("build.gradle.kts", &["./gradlew test *"]),
    ("mix.exs", &["mix test *"]),
    ("deno.json", &["deno test *", "deno lint *"]),
    ("Makefile", &["make test *"]),
    ("justfile", &["just test *"]),
];

/// Files that identify a Python project.
const PYTHON: [&str; 3] = ["pyproject.toml", "setup.py", "requirements.txt"];
/// Python lock files, and the prefix of commands in a project with that lock file.
const PYTHON_RUNNERS: [(&str, &str); 2] = [("uv.lock", "uv run "), ("poetry.lock", "poetry run ")];

/// Node lock files, and the program that runs `package.json` scripts in a project with that lock file.
const NODE_RUNNERS: [(&str, &str); 4] =
    [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];

/// The maximum size of a `package.json`, in bytes.
const MAX_PACKAGE_SIZE: u64 = 1 << 20;

/// Common `package.json` scripts that are safe to run.
const NODE_SCRIPTS: [&str; 5] = ["build", "format", "lint", "test", "typecheck"];

/// The data from which the starter file is written.
#[derive(Debug)]
pub struct StarterData {
    /// The team's name.
    pub team: String,
    /// The agents of the members.
    pub agents: Vec<&'static str>,
    /// Whether `agents` are installed. If no agent is installed, `agents` contains only `claude`.
    pub is_staffed: bool,
    allow: Vec<String>,
}

impl StarterData {
    /// Collects the data from the folder `dir` and the installed programs. `in_use` are the names of other teams.
    pub fn collect(programs: &Programs, dir: &Path, in_use: &BTreeSet<String>) -> Self {
        let is_here = |agent: &&Agent| programs.program(agent).is_some();
        let mut agents: Vec<&str> =
            AGENTS.iter().filter(is_here).map(|agent| agent.name).take(2).collect();
        let is_staffed = !agents.is_empty();
        if !is_staffed {
            agents.push("claude");
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        Self { team: free_name(&team(&name), in_use), agents, is_staffed, allow: allow(dir) }
    }
}

/// Derives a valid team name from the name of a folder.
fn team(name: &str) -> String {
    let chars = name.chars().map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    });
    let chars: String = chars.take(MAX_NAME).collect();
    let parts: Vec<&str> = chars.split('-').filter(|part| !part.is_empty()).collect();
    match parts.join("-").parse::<TeamName>() {
        Ok(team) => team.to_string(),
        // Different folders get different names, even if a team name allows none of their characters.
        Err(_) => {
            let hash = Sha256::digest(name);
            hash.iter().take(3).fold("team-".to_owned(), |name, byte| format!("{name}{byte:02x}"))
        }
    }
}

/// Returns the name, with a number if the name is in use.
fn free_name(name: &str, in_use: &BTreeSet<String>) -> String {
    if !in_use.contains(name) {
        return name.to_owned();
    }
    // One of these names is free, because there are more of them than names in use.
    let numbered = (2..in_use.len() + 3).map(|number| {
        let number = format!("-{number}");
        let base: String = name.chars().take(MAX_NAME - number.len()).collect();
        base.trim_end_matches('-').to_owned() + &number
    });
    numbered.into_iter().find(|name| !in_use.contains(name)).unwrap_or_else(|| name.to_owned())
}

fn allow(dir: &Path) -> Vec<String> {
    let is_there = |file: &str| dir.join(file).is_file();
    let tools = BUILD_TOOLS.iter().filter(|(file, _)| is_there(file));
    let mut allow: Vec<String> =
        tools.flat_map(|(_, commands)| *commands).map(|&command| command.to_owned()).collect();
    if PYTHON.into_iter().any(is_there) {
        let runner = PYTHON_RUNNERS.into_iter().find(|(file, _)| is_there(file));
        let runner = runner.map_or("", |(_, runner)| runner);
        allow.extend(["pytest *", "ruff check *"].map(|command| format!("{runner}{command}")));
    }
    if let Ok(package) = regular_file::read(&dir.join("package.json"), MAX_PACKAGE_SIZE) {
        let package: serde_json::Value = serde_json::from_slice(&package).unwrap_or_default();
        let has = |script: &&str| package.pointer(&format!("/scripts/{script}")).is_some();
        let runner = NODE_RUNNERS.into_iter().find(|(file, _)| is_there(file));
        let runner = runner.map_or("npm", |(_, runner)| runner);
        let scripts = NODE_SCRIPTS.into_iter().filter(has);
        allow.extend(scripts.map(|script| format!("{runner} run {script} *")));
    }
    allow.extend(["git diff *", "git log *", "git status *"].map(str::to_owned));
    allow.dedup();
    allow
}

/// Returns the text of the starter file, or of a file made from a template. In the starter file, a `#` that is not followed by
/// a space comments out a setting.
pub fn text(data: &StarterData, template: Option<&Template>, schema: Option<&str>) -> String {
    let StarterData { team, agents, allow, .. } = data;
    let mut text = String::new();
    if let Some(schema) = schema {
        let _infallible = writeln!(text, "#:schema ./{schema}");
    }
    let description = template.map_or(format!("Work on {team}"), |one| one.about.to_owned());
    let defaults = if template.is_some() { TEMPLATE_DEFAULTS } else { DEFAULTS };
    let lead = if template.is_some() { "" } else { LEAD };
    let gap = if lead.is_empty() { "" } else { "\n" };
    let _infallible = write!(
        text,
        "{HEAD}\nteam = \"{team}\"\ndescription = \"{description}\"\n\n{lead}{gap}{defaults}allow = [\n"
    );
    for command in allow {
        let _infallible = writeln!(text, "    \"{command}\",");
    }
    if let Some(template) = template {
        text.push_str(TEMPLATE_DENY);
        text.push_str(&template.text(agents));
        return text;
    }
    text.push_str(DENY);
    let mut agents = agents.iter().copied();
    let first = agents.next().unwrap_or("claude");
    let second = agents.next();
    let _infallible = write!(text, "\n[members.builder]\nagent = \"{first}\"\n{BUILDER}");
    // The reviewer uses a second installed agent if there is one, and otherwise the same agent as the builder.
    let reviewer = second.unwrap_or(first);
    let _infallible = write!(text, "\n[members.reviewer]\nagent = \"{reviewer}\"\n{REVIEWER}");
    text.push_str(TASKS);
    text
}

const HEAD: &str = "\
# A team of coding agents.
# `brigade up --check` shows the resulting team, and every mistake in this file.
";

const LEAD: &str = "\
# Without [lead] a person leads.
# If an agent leads, `answers` allows it to approve or reject plans and permission requests.
#[lead]
#agent = \"claude\"
#answers = \"lead\"
#prompt = \"Divide the work among the members, and keep the board in order.\"
";

const DEFAULTS: &str = "\
# Default settings for the lead and the members.
[defaults]
# \"ask\": a member asks before actions that its agent's own rules do not allow; \"full\": a member never asks.
access = \"ask\"
# \"headless\": in the background; \"tmux\": in a tmux window; \"native\": the real Claude Code in a tmux window.
place = \"headless\"
# \"always\": restart a member whose process dies; \"never\": release its tasks.
restart = \"always\"
# Give each member its own git worktree, on its own branch.
#worktree = true
# Names of more environment variables that members inherit. They always inherit those of build tools and of their vendor.
#env = [\"OPENAI_API_KEY\"]
# Commands that members may run without asking. A * at the end matches any arguments.
";

const DENY: &str = "\
]
# Commands that members may run only after asking, even if `allow` matches them.
#ask = [\"git commit*\"]
# Commands that members must not run.
deny = [\"git push*\"]
";

const TEMPLATE_DEFAULTS: &str = "\
# Default settings for the members. `brigade new --force` writes a file that explains every setting.
[defaults]
# \"ask\": a member asks before actions that its agent's own rules do not allow; \"full\": a member never asks.
access = \"ask\"
# Commands that members may run without asking. A * at the end matches any arguments.
";

const TEMPLATE_DENY: &str = "\
]
# Commands that members must not run.
deny = [\"git push*\"]
";

const BUILDER: &str = "\
prompt = \"You build. Do each task you own, test it, and report to team-lead.\"
# By default, brigade finds the agent's program on PATH, and the agent
# chooses its model and works in the folder of this file.
#model = \"a model name of the agent\"
#program = \"./its-program\"
#dir = \".\"
";

const REVIEWER: &str = "\
prompt = \"You review. When asked, read a change and report problems to its author.\"
# The reviewer must not change anything before its plan is approved.
plan = true
# A rule written as a table, here for a tool that runs no command.
#[[members.reviewer.rules]]
#tool = \"*edit*\"
#ruling = \"ask\"
";

const TASKS: &str = "
# The initial tasks. A name such as `design` is used only in this file.
#[tasks.design]
#subject = \"Design the change\"
#description = \"Write down the change, and the reason for it.\"

#[tasks.build]
#subject = \"Make the change\"
#after = [\"design\"]
#owner = \"builder\"
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_name_gives_a_valid_team_name() {
        for (folder, name) in
            [("parser", "parser"), ("My Project_2", "my-project-2"), (".dotfiles", "dotfiles")]
        {
            assert_eq!(team(folder), name);
        }
        // B1: names that a team cannot have differ from each other.
        let names: BTreeSet<String> = ["日本", "中国", "--", ""].into_iter().map(team).collect();
        assert_eq!(names.len(), 4);
        assert!(names.iter().all(|name| name.parse::<TeamName>().is_ok()), "{names:?}");
        assert!(team(&"a-".repeat(99)).parse::<TeamName>().is_ok());
    }

    /// B1
    #[test]
    fn b1_a_name_in_use_gets_a_number() {
        let long = "a".repeat(MAX_NAME);
        let names = ["demo", "demo-2", long.as_str()];
        let in_use = names.into_iter().map(str::to_owned).collect();
        assert_eq!(free_name("other", &in_use), "other");
        assert_eq!(free_name("demo", &in_use), "demo-3");
        let name = free_name(&long, &in_use);
        assert!(name.ends_with("a-2") && name.parse::<TeamName>().is_ok(), "{name}");
    }
}
