//! `brigade new`: writes a starter `brigade.toml`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use brigade_agents::driver::{AGENTS, Agent};
use brigade_core::seat::Seat;
use brigade_core::text;
use brigade_files::layout::{TASKS, task_id};
use brigade_wire::name::{MemberName, TeamName};
use serde_json::json;
use thiserror::Error;

use crate::cli::{NewArgs, STARTER};
use crate::confirm::{ask_valid, can_ask};
use crate::context::{CliContext, trust};
use crate::error::{CliError, CliTrouble, failed};
use crate::output::STRONG;
use crate::{env, exit, output};
use brigade_host::installed::Programs;
use brigade_host::team_file::starter::{self, StarterData};
use brigade_host::team_file::templates::{TEMPLATES, Template};
use brigade_host::team_file::{self, NAME, OutsidePaths};
use brigade_host::{origin, suggest};

/// File name of the schema, written next to `brigade.toml`.
const SCHEMA: &str = "brigade.schema.json";

#[derive(Debug, Error)]
#[error("{path} already exists")]
struct FileExists {
    path: PathBuf,
}

/// Returns whether a folder is the root of a git repository.
///
/// In a worktree or submodule, `.git` is a file. An empty `.git` folder does not count: Codex's sandbox
/// leaves one behind where it blocked access, for example in `/tmp`.
fn is_repository(dir: &Path) -> bool {
    let git = dir.join(".git");
    git.is_file() || git.join("HEAD").exists()
}

/// The description of the starter in the list of templates.
const STARTER_ABOUT: &str = "A builder and a reviewer; explains every setting in comments";

pub(crate) async fn run(context: &CliContext, new: NewArgs) -> Result<u8, CliError> {
    if new.list {
        return list(context.json);
    }
    let here =
        std::env::current_dir().map_err(|source| failed("find the current folder", source))?;
    let trust = trust()?;
    let repository = here.ancestors().find(|dir| is_repository(dir));
    let dir = repository.unwrap_or(&here);
    let path = dir.join(NAME);
    let teams = context.teams().await?;
    let task_lists = task_lists_without_team(context.claude_dir(), &teams);
    let leads = teams.into_iter();
    let leads: Vec<Seat> = leads.map(|team| context.seat_of(team, MemberName::lead())).collect();
    let registry = context.host()?.registry;
    let mut in_use =
        origin::names_in_use(&registry, &leads, &trust, &team_file::identity(&path)).await?;
    in_use.extend(task_lists);
    if path.exists() && !new.force {
        return Err(exists(&path));
    }
    let programs = env::programs();
    let mut data = StarterData::collect(&programs, dir, &in_use);
    let template = choose(context.json, &new, &mut data, &programs)?;
    let schema = new.schema.then(|| dir.join(SCHEMA));
    let text = starter::text(&data, template, new.schema.then_some(SCHEMA));
    write(&path, &text, new.force)?;
    if let Some(path) = &schema {
        // The schema is generated, so overwriting it loses nothing.
        let text = serde_json::to_string_pretty(&team_file::schema())
            .map_err(|source| failed("write the schema", source.into()))?;
        write(path, &(text + "\n"), true)?;
    }
    // The user asked for this file and can see it, so `up` need not ask.
    let file = team_file::read(&path, OutsidePaths::Skip)?;
    if let Err(error) = trust.add(&file, false) {
        output::note(&format!(
            "{}; `brigade up` will ask whether you trust the file",
            error.to_one_line()
        ));
    }
    let StarterData { team, agents, .. } = &data;
    if context.json {
        let schema = schema.as_deref();
        let template = template.map_or(STARTER, |template| template.name);
        output::print_json(&json!({
            "path": path, "team": team, "agents": agents, "template": template, "schema": schema,
        }))?;
        return Ok(exit::DONE);
    }
    let shown = |path: &Path| {
        let short = path.strip_prefix(&here).unwrap_or(path);
        text::one_line(&short.to_string_lossy())
    };
    let also = schema.map_or(String::new(), |schema| format!(" and {}", shown(&schema)));
    output::print(&format!(
        "wrote {}{also}: team {team} with {}\nedit it, then preview the team with \
         `brigade up --check`\n",
        shown(&path),
        agents.join(" and ")
    ))?;
    if !data.is_staffed {
        output::note(&format!(
            "{} is not installed, and neither is any other agent; `brigade agents` shows how to install one",
            agents.join(" and ")
        ));
    }
    Ok(exit::DONE)
}

fn exists(path: &Path) -> CliError {
    CliError::failed(FileExists { path: path.to_owned() })
        .hint("edit it, or replace it with `brigade new --force`")
}

/// Returns the name and the description of each template.
fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let starter = [(STARTER, STARTER_ABOUT)].into_iter();
    starter.chain(TEMPLATES.iter().map(|template| (template.name, template.about)))
}

/// Returns a line for each template.
fn template_lines(indent: &str) -> String {
    let line = |(name, about)| format!("{indent}{STRONG}{name:<10}{STRONG:#} {about}\n");
    templates().map(line).collect()
}

/// Lists the templates.
fn list(json: bool) -> Result<u8, CliError> {
    if json {
        let all = templates().map(|(name, about)| json!({ "name": name, "about": about }));
        output::print_json(&all.collect::<Vec<_>>())?;
    } else {
        output::print(&template_lines(""))?;
    }
    Ok(exit::DONE)
}

/// Sets the agents and the name of the team, and returns the template. On a terminal, asks for those that no option gives.
fn choose(
    json: bool,
    new: &NewArgs,
    data: &mut StarterData,
    programs: &Programs,
) -> Result<Option<&'static Template>, CliError> {
    let asks = can_ask(json);
    let template = match &new.template {
        None if asks => {
            output::print(&format!("Templates:\n{}", template_lines("  ")))?;
            ask_valid("Template", STARTER, template)?
        }
        given => template(given.as_deref().unwrap_or(STARTER))?,
    };
    let chosen = match asks && new.agents.is_empty() {
        true => ask_valid("Agents, separated by commas", &data.agents.join(","), agents)?,
        false => agents(&new.agents.join(","))?,
    };
    for agent in &chosen {
        if programs.program(agent).is_none() && data.is_staffed {
            output::note(&format!(
                "{} is not installed; `brigade agents` shows how to install it",
                agent.name
            ));
        }
    }
    if !chosen.is_empty() {
        data.agents = chosen.iter().map(|agent| agent.name).collect();
    }
    let name = |text: &str| text.parse::<TeamName>().map_err(CliError::usage);
    match &new.name {
        None if asks => data.team = ask_valid("Team name", &data.team, name)?.to_string(),
        None => {}
        Some(given) => data.team = given.to_string(),
    }
    Ok(template)
}

/// Finds a template; `None` for the starter.
fn template(name: &str) -> Result<Option<&'static Template>, CliError> {
    let found = TEMPLATES.iter().find(|known| known.name == name);
    if found.is_none() && name != STARTER {
        let known: Vec<&str> = templates().map(|(name, _)| name).collect();
        let question = suggest::question(name, &known);
        let error = CliError::usage(CliTrouble::NoTemplate { name: name.to_owned() });
        return Err(error.hint(format!("{question}templates: {}", known.join(", "))));
    }
    Ok(found)
}

/// Finds the agents with these names, which commas separate.
fn agents(names: &str) -> Result<Vec<&'static Agent>, CliError> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let agent = AGENTS.iter().find(|agent| agent.name == name);
        agent.ok_or_else(|| {
            let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
            let error = CliError::usage(CliTrouble::NoAgent { name: name.to_owned() });
            let question = suggest::question(name, &known);
            error.hint(format!("{question}agents: {}", known.join(", ")))
        })
    };
    names.map(find).collect()
}

/// Returns the names of Claude Code's task lists that belong to no team. A new team of such a name would take the tasks off
/// the list.
fn task_lists_without_team(claude_dir: &Path, teams: &[TeamName]) -> Vec<String> {
    let has_tasks = |dir: &Path| {
        let files = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
        files.into_iter().any(|file| file.file_name().to_str().and_then(task_id).is_some())
    };
    let lists = fs::read_dir(claude_dir.join(TASKS)).into_iter().flatten().filter_map(Result::ok);
    let lists = lists.filter(|list| has_tasks(&list.path()));
    let names = lists.filter_map(|list| list.file_name().into_string().ok());
    names.filter(|name| !teams.iter().any(|team| team.as_str() == name)).collect()
}

fn write(path: &Path, text: &str, overwrite: bool) -> Result<(), CliError> {
    let written = if overwrite { replace(path, text) } else { create(path, text) };
    written.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => failed(format!("write {}", path.display()), source),
    })
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// Replaces a file. If the path is a symbolic link or a pipe, replaces that and not the file that it leads to: the
/// link may come from the repository.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temp = path.with_extension(format!("{}.tmp", std::process::id()));
    create(&temp, text)?;
    let renamed = fs::rename(&temp, path);
    if renamed.is_err() {
        let _gone = fs::remove_file(&temp);
    }
    renamed
}
