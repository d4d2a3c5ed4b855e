//! `brigade init`: sets up Claude Code, Codex and Gemini CLI to use brigade. `--undo` reverts the setup.

use std::path::PathBuf;

use brigade_core::text;
use serde_json::json;

use crate::cli::GlobalArgs;
use crate::error::{CliError, CliTrouble, Kind, failed};
use crate::init::plan::{self, InitPlan, Machine};
use crate::init::record::RecordFolder;
use crate::init::undo::{self, UndoOutcome, UndoScope};
use crate::output::{self, STRONG};
use crate::{confirm, diff, env, exit};

/// Name of the folder for the record of the changes, inside brigade's state folder.
const RECORD: &str = "init";

pub(crate) fn run(global: &GlobalArgs, yes: bool) -> Result<u8, CliError> {
    let json = global.json;
    let machine = machine(global)?;
    let folder = record_folder()?;
    let record = folder.read()?.unwrap_or_default();
    let plan = InitPlan::make(&machine, &record)?;
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
    match consent(yes, json) {
        Ok(true) => {}
        Ok(false) => return Ok(confirm::declined("nothing was changed")),
        Err(error) => {
            if json {
                output::print_json(&document(&plan, false))?;
            }
            return Err(error);
        }
    }
    plan.apply(&folder, record).map_err(|error| {
        CliError::from(error).hint("`brigade init --undo` reverts the changes made so far")
    })?;
    if json {
        output::print_json(&document(&plan, true))?;
    } else {
        output::print(&format!(
            "\nnew Claude Code sessions now use brigade\n{}\
             `{STRONG}brigade init --undo{STRONG:#}` removes it\n",
            next_step(&machine)
        ))?;
    }
    advise(&machine);
    Ok(exit::DONE)
}

/// Reads the state of this machine that the plan depends on.
fn machine(global: &GlobalArgs) -> Result<Machine, CliError> {
    let is_elsewhere = global.claude_dir.is_some() || env::read(env::CLAUDE_CONFIG_DIR).is_some();
    let claude_dir = claude_dir(global)?;
    let is_there = |name: &str| {
        let program = env::agent_program(name).unwrap_or_else(|| name.into());
        env::programs().find(&program).is_some()
    };
    // Agents pass almost none of their environment variables to MCP servers, so set these variables explicitly.
    let claude = is_elsewhere.then(|| claude_dir.to_string_lossy().into_owned());
    let state = env::read(env::XDG_STATE_HOME).and_then(|dir| dir.into_string().ok());
    let variables = [(env::CLAUDE_CONFIG_DIR, claude), (env::XDG_STATE_HOME, state)];
    let home = global.home.nats().map(|_| global.home.variables()).unwrap_or_default();
    let home = home.into_iter().map(|(name, value)| (name, value.into_string().ok()));
    let variables = variables.into_iter().chain(home);
    let variables = variables.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
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

/// Returns the absolute path of Claude Code's folder.
fn claude_dir(global: &GlobalArgs) -> Result<PathBuf, CliError> {
    let dir = global.claude_dir.clone().or_else(env::claude_dir);
    let dir = dir.ok_or_else(|| CliError::failed(CliTrouble::NoHome))?;
    std::path::absolute(&dir).map_err(|source| failed("find the current folder", source))
}

fn record_folder() -> Result<RecordFolder, CliError> {
    let dir = env::state_dir().ok_or_else(|| CliError::failed(CliTrouble::NoHome))?;
    Ok(RecordFolder::open(&dir.join(RECORD))?)
}

fn nothing_to_do(plan: &InitPlan, json: bool) -> Result<u8, CliError> {
    if json {
        output::print_json(&document(plan, false))?;
    } else {
        output::print("nothing to change: brigade is already set up\n")?;
    }
    Ok(exit::DONE)
}

fn differences(plan: &InitPlan) -> Vec<String> {
    let diff = |step: &plan::PlannedEdit| {
        diff::unified(&step.found.path, step.found.text.as_deref(), &step.text)
    };
    plan.steps.iter().map(diff).collect()
}

/// Lists the files again, because the diffs may fill more than a screen.
fn summary(plan: &InitPlan) -> String {
    let mut text = String::from("\n");
    for step in &plan.steps {
        let word = if step.found.text.is_some() { "change" } else { "write " };
        text.push_str(&format!("{word} {STRONG}{}{STRONG:#}\n", step.found.path.display()));
    }
    text
}

/// Asks for confirmation. Without a terminal, `--yes` is required.
fn consent(yes: bool, json: bool) -> Result<bool, CliError> {
    if yes {
        return Ok(true);
    }
    if !confirm::can_ask(json) {
        let error = CliError::usage(CliTrouble::NobodyToAsk);
        return Err(error.hint("nothing was changed; `brigade init --yes` makes the changes"));
    }
    confirm::ask("apply?")
}

fn document(plan: &InitPlan, applied: bool) -> serde_json::Value {
    let strip = |diff: String| anstream::adapter::strip_str(&diff).to_string();
    let changes = plan.steps.iter().zip(differences(plan));
    let changes: Vec<_> = changes
        .map(|(step, diff)| json!({ "path": step.found.path, "diff": strip(diff) }))
        .collect();
    let left = plan.left.iter().map(|(path, why)| json!({ "path": path, "why": why }));
    json!({ "applied": applied, "changes": changes, "left_alone": left.collect::<Vec<_>>() })
}

/// Returns what to do with the new settings; empty if there is no agent to start.
fn next_step(machine: &Machine) -> String {
    let Some(agent) = machine.agents.iter().find(|agent| !agent.native) else {
        return String::new();
    };
    let name = agent.name;
    format!(
        "next: start `claude` in tmux, and ask it for a teammate: \"start a {name} teammate called rev\"\n"
    )
}

/// Prints notes about programs that are still missing.
fn advise(machine: &Machine) {
    if machine.claude.is_none() {
        output::note(
            "Claude Code is not on the PATH; run `brigade init` again after installing it",
        );
    }
    if env::programs().find("tmux".as_ref()).is_none() {
        output::note("tmux is not installed; Claude Code needs it to start teammates");
    }
    if machine.agents.iter().all(|agent| agent.native) {
        output::note(
            "no agent of another vendor is installed; `brigade agents` shows how to install one",
        );
    }
}

/// Runs `brigade init --undo`, for the configuration folders that this command uses.
pub(crate) fn undo(global: &GlobalArgs) -> Result<u8, CliError> {
    let json = global.json;
    let others = [env::codex_dir(), env::gemini_dir()].into_iter().flatten();
    let others = others.filter_map(|dir| std::path::absolute(dir).ok()).collect();
    let scope = UndoScope { claude_dir: claude_dir(global)?, others };
    let folder = record_folder()?;
    let Some(record) = folder.read()? else {
        return Err(CliError::new(Kind::Nothing, CliTrouble::NothingToUndo));
    };
    let report = undo::run(folder, record, &scope)?;
    let still = |path: &PathBuf| {
        let path = path.display();
        format!(
            "brigade is still set up for {path}; `brigade --claude-dir {path} init --undo` removes it"
        )
    };
    if report.files.is_empty() && report.failed.is_empty() {
        let error = CliError::new(Kind::Nothing, CliTrouble::NothingToUndo);
        return Err(report.still_set_up.iter().map(still).fold(error, CliError::hint));
    }
    if json {
        let paths = |which: &[UndoOutcome]| {
            let files = report.files.iter().filter(|(_, undone)| which.contains(undone));
            files.map(|(path, _)| path).collect::<Vec<_>>()
        };
        let failed: Vec<String> = report.failed.iter().map(ToString::to_string).collect();
        output::print_json(&json!({
            "restored": paths(&[UndoOutcome::Restored, UndoOutcome::Nothing]),
            "removed": paths(&[UndoOutcome::Removed]),
            "taken_out": paths(&[UndoOutcome::TakenOut]),
            "kept": paths(&[UndoOutcome::Kept]),
            "failed": failed,
            "still_set_up": report.still_set_up,
        }))?;
    } else {
        for (path, undone) in &report.files {
            let path = text::plain(&path.to_string_lossy());
            output::print(&match undone {
                UndoOutcome::Restored => format!("restored {path}\n"),
                UndoOutcome::Removed => format!("removed {path}\n"),
                UndoOutcome::TakenOut => {
                    format!("removed brigade's settings from {path}; other edits are kept\n")
                }
                UndoOutcome::Nothing => format!("nothing to undo in {path}\n"),
                UndoOutcome::Kept => format!("kept {path}, because it was edited since\n"),
            })?;
        }
    }
    for path in report.still_set_up.iter().filter(|_| !json) {
        output::note(&still(path));
    }
    if !json
        && report.failed.is_empty()
        && let Some(dir) = env::state_dir().filter(|dir| dir.exists())
    {
        output::note(&format!("team logs are kept in {}", dir.display()));
    }
    match report.failed.into_iter().next() {
        None => Ok(exit::DONE),
        Some(error) => Err(error.into()),
    }
}
