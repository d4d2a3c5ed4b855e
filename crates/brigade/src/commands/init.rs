//! `brigade init`: switches brigade on in Claude Code, and off again.

use std::io::{self, BufRead as _, IsTerminal as _};

use brigade_core::text;
use serde_json::json;

use crate::cli::Global;
use crate::error::{CliError, CliTrouble, Kind, Trouble};
use crate::guest::plan::{self, Machine, Plan};
use crate::guest::record::Book;
use crate::guest::undo::{self, Undone};
use crate::output::{self, STRONG};
use crate::{diff, env, exit};

/// Where the record of it is, under brigade's own folder.
const RECORD: &str = "init";

pub(crate) fn run(global: Global, yes: bool) -> Result<u8, CliError> {
    let json = global.json;
    let machine = machine(global)?;
    let book = book()?;
    let record = book.read()?.unwrap_or_default();
    let plan = Plan::make(&machine, &record)?;
    for (path, why) in &plan.left {
        output::note(&format!("left alone: {}: {why}", path.display()));
    }
    if plan.steps.is_empty() {
        return nothing_to_do(&plan, json);
    }
    if !json {
        output::print(&differences(&plan).concat())?;
    }
    if !json {
        output::print(&summary(&plan))?;
    }
    if let Err(error) = consent(yes, json) {
        if json {
            output::print_json(&document(&plan, false))?;
        }
        return Err(error);
    }
    plan.carry_out(&book, record).map_err(|error| {
        CliError::from(error).hint("`brigade init --undo` takes back what was done")
    })?;
    if json {
        output::print_json(&document(&plan, true))?;
    } else {
        output::print(&format!(
            "\nbrigade is switched on for sessions of Claude Code that begin from now on\n\
             `{STRONG}brigade init --undo{STRONG:#}` switches it off again\n"
        ))?;
    }
    advise(&machine);
    Ok(exit::DONE)
}

/// What there is on this machine.
fn machine(global: Global) -> Result<Machine, CliError> {
    let no_home = || CliError::failed(CliTrouble::NoHome);
    let is_elsewhere = global.claude_dir.is_some() || env::read(env::CLAUDE_CONFIG_DIR).is_some();
    let claude_dir = global.claude_dir.or_else(env::claude_dir).ok_or_else(no_home)?;
    let claude_dir = std::path::absolute(&claude_dir).map_err(|source| {
        let doing = "find the current folder".into();
        CliError::failed(Trouble::Io { doing, source })
    })?;
    let is_there = |name: &str| {
        let program = env::agent_program(name).unwrap_or_else(|| name.into());
        env::programs().find(&program).is_some()
    };
    // Agents start a server with next to nothing of their own environment.
    let claude = is_elsewhere.then(|| claude_dir.to_string_lossy().into_owned());
    let state = env::read(env::XDG_STATE_HOME).and_then(|dir| dir.into_string().ok());
    let variables = [(env::CLAUDE_CONFIG_DIR, claude), (env::XDG_STATE_HOME, state)];
    let home = global.home.engine().map(|_| global.home.variables()).unwrap_or_default();
    let home = home.into_iter().map(|(name, its)| (name, its.into_string().ok()));
    let variables = variables.into_iter().chain(home);
    let variables = variables.filter_map(|(name, its)| Some((name.to_owned(), its?))).collect();
    let claude = env::programs().claude(Some(&claude_dir)).filter(|claude| claude.exists());
    Ok(Machine {
        brigade: env::programs().itself()?,
        claude: claude.and_then(|claude| std::path::absolute(claude).ok()),
        agents: plan::installed(),
        claude_dir,
        codex_dir: env::codex_dir().filter(|_| is_there("codex")),
        gemini_dir: env::gemini_dir().filter(|_| is_there("gemini")),
        variables,
    })
}

fn book() -> Result<Book, CliError> {
    let dir = env::state_dir().ok_or_else(|| CliError::failed(CliTrouble::NoHome))?;
    Ok(Book::open(&dir.join(RECORD))?)
}

fn nothing_to_do(plan: &Plan, json: bool) -> Result<u8, CliError> {
    if json {
        output::print_json(&document(plan, false))?;
    } else {
        output::print("nothing to change: brigade is switched on\n")?;
    }
    Ok(exit::DONE)
}

fn differences(plan: &Plan) -> Vec<String> {
    let diff =
        |step: &plan::Step| diff::unified(&step.found.path, step.found.text.as_deref(), &step.text);
    plan.steps.iter().map(diff).collect()
}

/// The files once more, without what is in them: that may have filled more than a screen.
fn summary(plan: &Plan) -> String {
    let mut text = String::from("\n");
    for step in &plan.steps {
        let word = if step.found.text.is_some() { "change" } else { "write " };
        text.push_str(&format!("{word} {STRONG}{}{STRONG:#}\n", step.found.path.display()));
    }
    text
}

/// Whether it may be done. Whoever cannot be asked has to say so beforehand.
fn consent(yes: bool, json: bool) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if json || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let error = CliError::usage(CliTrouble::NobodyToAsk);
        return Err(error.hint("nothing was changed; `brigade init --yes` makes this change"));
    }
    output::print("apply? [y/N] ")?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| {
        CliError::failed(Trouble::Io { doing: "read the answer".into(), source })
    })?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CliError::failed(CliTrouble::NotApplied))
}

fn document(plan: &Plan, applied: bool) -> serde_json::Value {
    let strip = |diff: String| anstream::adapter::strip_str(&diff).to_string();
    let changes = plan.steps.iter().zip(differences(plan));
    let changes: Vec<_> = changes
        .map(|(step, diff)| json!({ "path": step.found.path, "diff": strip(diff) }))
        .collect();
    let left = plan.left.iter().map(|(path, why)| json!({ "path": path, "why": why }));
    json!({ "applied": applied, "changes": changes, "left_alone": left.collect::<Vec<_>>() })
}

/// What is still missing for it to work.
fn advise(machine: &Machine) {
    if machine.claude.is_none() {
        output::note("Claude Code is not on the path; once it is, run `brigade init` again");
    }
    if env::programs().find("tmux".as_ref()).is_none() {
        output::note("teammates run in tmux, which is not installed");
    }
    if machine.agents.iter().all(|agent| agent.native) {
        output::note("no agent of another vendor is installed; `brigade agents` tells how");
    }
}

/// `brigade init --undo`
pub(crate) fn undo(json: bool) -> Result<u8, CliError> {
    let book = book()?;
    let Some(record) = book.read()? else {
        return Err(CliError::new(Kind::Nothing, CliTrouble::NothingToUndo));
    };
    let report = undo::run(book, record)?;
    if json {
        let of = |which: &[Undone]| {
            let files = report.files.iter().filter(|(_, undone)| which.contains(undone));
            files.map(|(path, _)| path).collect::<Vec<_>>()
        };
        let failed: Vec<String> = report.failed.iter().map(ToString::to_string).collect();
        output::print_json(&json!({
            "restored": of(&[Undone::Restored, Undone::Nothing]),
            "removed": of(&[Undone::Removed]),
            "taken_out": of(&[Undone::TakenOut]),
            "kept": of(&[Undone::Kept]),
            "failed": failed,
        }))?;
    } else {
        for (path, undone) in &report.files {
            let path = text::plain(&path.to_string_lossy());
            output::print(&match undone {
                Undone::Restored => format!("restored {path}\n"),
                Undone::Removed => format!("removed {path}\n"),
                Undone::TakenOut => {
                    format!("took out of {path} what brigade put in; it was changed since\n")
                }
                Undone::Nothing => format!("nothing to undo in {path}\n"),
                Undone::Kept => format!("kept {path}; it was changed since, and is yours\n"),
            })?;
        }
    }
    if !json
        && report.failed.is_empty()
        && let Some(dir) = env::state_dir().filter(|dir| dir.exists())
    {
        output::note(&format!("the logs of teams stay in {}", dir.display()));
    }
    match report.failed.into_iter().next() {
        None => Ok(exit::DONE),
        Some(error) => Err(error.into()),
    }
}
