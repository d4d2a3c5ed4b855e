//! `brigade task add --from`, `brigade task export`, `brigade task import`

use std::io::Read as _;
use std::path::Path;

use brigade_core::board::{self, BatchError, BatchTask, Rerun, TaskMistake};
use brigade_core::task_exchange::{self, ImportOwners};
use brigade_core::{checklist, task_view, text};
use serde_json::json;

use crate::cli::TaskFileFormat;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, failed};
use crate::slow_notice::with_lock_notice;
use crate::{exit, output};

pub(super) async fn add_from(context: &CliContext, file: &Path) -> Result<u8, CliError> {
    let (text, name) = read(file)?;
    let done = checklist::count_done(&text);
    let read = checklist::read(&text, &name);
    add_tasks(context, file, read, Rerun::OpenTask, done).await
}

pub(super) async fn import(
    context: &CliContext,
    file: &Path,
    no_owners: bool,
) -> Result<u8, CliError> {
    let (text, name) = read(file)?;
    let owners = if no_owners { ImportOwners::Drop } else { ImportOwners::Keep };
    let read = task_exchange::read(&text, &name, owners);
    add_tasks(context, file, read, Rerun::AnyTask, 0).await
}

pub(super) async fn export(context: &CliContext, format: TaskFileFormat) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let (documents, graph) = board::list(&seat).await?;
    let hidden = documents.iter().filter(|(id, _)| graph.node(*id).is_none()).map(|(id, _)| *id);
    let hidden = task_view::join(hidden);
    if !hidden.is_empty() {
        output::note(&format!("tasks not exported because their files are incomplete: {hidden}"));
    }
    let text = match format {
        TaskFileFormat::Csv if !context.json => task_exchange::export_csv(&seat).await?,
        _ => task_exchange::export_json(&seat).await? + "\n",
    };
    output::print_raw(text.as_bytes())?;
    Ok(if graph.nodes().next().is_none() { exit::NOTHING } else { exit::DONE })
}

/// Reads a file or standard input. Returns the text and the name of the file.
fn read(file: &Path) -> Result<(String, String), CliError> {
    let mut bytes = Vec::new();
    let (read, name) = if file == Path::new("-") {
        (std::io::stdin().lock().read_to_end(&mut bytes), "standard input".to_owned())
    } else {
        let read = std::fs::read(file).map(|content| bytes = content).map(|()| 0);
        let name = file.file_name().unwrap_or(file.as_os_str());
        (read, name.to_string_lossy().into_owned())
    };
    read.map_err(|source| failed(format!("read {}", file.display()), source))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::failed(CliTrouble::NotUtf8 { file: file.display().to_string() }))?;
    Ok((text, name))
}

async fn add_tasks(
    context: &CliContext,
    file: &Path,
    read: Result<Vec<BatchTask>, Vec<TaskMistake>>,
    rerun: Rerun,
    done: usize,
) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let tasks = read.map_err(|mistakes| with_file(file, BatchError::Mistakes(mistakes)))?;
    let added = with_lock_notice(board::add_all(&seat, &tasks, rerun)).await;
    let report = added.map_err(|error| with_file(file, error))?;
    if context.json {
        let ids = |tasks: &[(usize, _)]| task_view::texts(tasks.iter().map(|(_, id)| *id));
        output::print_json(&json!({
            "added": ids(&report.added),
            "existing": ids(&report.existing),
            "skipped_done": done,
            "notified": report.notified.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
        return Ok(exit::DONE);
    }
    for &(index, id) in &report.added {
        let subject = tasks.get(index).map_or("", |task| task.plan.subject.as_str());
        output::print(&format!("added task {id}: {}\n", text::one_line(subject)))?;
    }
    if !report.existing.is_empty() {
        let ids = task_view::join(report.existing.iter().map(|(_, id)| *id));
        output::note(&format!("already on the board: {ids}"));
    }
    if done > 0 {
        output::note(&format!("skipped {}", text::count(done, "checked item")));
    }
    if !report.notified.is_empty() {
        let names: Vec<String> = report.notified.iter().map(ToString::to_string).collect();
        output::note(&format!("notified {}", names.join(", ")));
    }
    Ok(exit::DONE)
}

/// Adds the name of the file to the error.
fn with_file(file: &Path, error: BatchError) -> CliError {
    match error {
        error @ BatchError::Mistakes(_) => {
            let file = file.display().to_string();
            CliError::failed(CliTrouble::TaskFile { file, mistakes: error.to_string() })
        }
        error => error.into(),
    }
}
