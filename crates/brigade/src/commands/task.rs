//! `brigade task …`

mod edit;
mod exchange;
mod graph;
mod list;
mod show;

use brigade_core::board::{self, BoardError, TaskPlan};
use brigade_core::graph::TaskState;
use brigade_core::seat::Seat;
use brigade_core::task_details::TaskDetails;
use brigade_core::text;
use brigade_wire::name::{MemberName, TaskId};
use serde::Serialize;
use serde_json::json;

use crate::cli::{TaskAddArgs, TaskCommand, TaskListArgs};
use crate::context::CliContext;
use crate::error::{CliError, ErrorFormat, Kind, report};
use crate::exit;
use crate::output::{self, STRONG};
use crate::slow_notice::with_lock_notice;
use brigade_core::task_view::{self, TaskView};

/// Runs a command. Without one, lists the tasks.
pub(crate) async fn run(
    context: &CliContext,
    command: Option<TaskCommand>,
) -> Result<u8, CliError> {
    let Some(command) = command else {
        return list::run(context, &TaskListArgs::default()).await;
    };
    match command {
        TaskCommand::Add(task) => match task.from {
            Some(file) => exchange::add_from(context, &file).await,
            None => add(context, *task).await,
        },
        TaskCommand::List(which) => list::run(context, &which).await,
        TaskCommand::Show { id, brief } => show::run(context, id, brief).await,
        TaskCommand::Edit(args) => edit::run(context, *args).await,
        TaskCommand::Claim(tasks) => claim(context, &tasks.ids).await,
        TaskCommand::Assign { ids, name } => {
            each(context, &ids, async |seat, id| {
                board::assign(seat, id, &name).await?;
                Ok(format!("task {STRONG}{id}{STRONG:#} is assigned to {name}"))
            })
            .await
        }
        TaskCommand::Unassign(tasks) => {
            each(context, &tasks.ids, async |seat, id| {
                board::unassign(seat, id).await?;
                Ok(format!("task {STRONG}{id}{STRONG:#} has no owner and is pending"))
            })
            .await
        }
        TaskCommand::Done(tasks) => {
            each(context, &tasks.ids, async |seat, id| {
                board::done(seat, id).await?;
                Ok(format!("task {STRONG}{id}{STRONG:#} is done"))
            })
            .await
        }
        TaskCommand::Reopen(tasks) => {
            each(context, &tasks.ids, async |seat, id| {
                board::reopen(seat, id).await?;
                Ok(format!("task {STRONG}{id}{STRONG:#} is pending again"))
            })
            .await
        }
        TaskCommand::Cancel { tasks, reason } => {
            each(context, &tasks.ids, async |seat, id| {
                board::cancel(seat, id, &reason).await?;
                Ok(format!("task {STRONG}{id}{STRONG:#} is cancelled"))
            })
            .await
        }
        TaskCommand::Delete(tasks) => {
            each(context, &tasks.ids, async |seat, id| {
                board::delete(seat, id).await?;
                Ok(format!("deleted task {STRONG}{id}{STRONG:#}"))
            })
            .await
        }
        TaskCommand::Release { name } => release(context, &name).await,
        TaskCommand::Export { format } => exchange::export(context, format).await,
        TaskCommand::Import { file, no_owners } => {
            exchange::import(context, &file, no_owners).await
        }
        TaskCommand::Graph { format } => graph::run(context, format).await,
    }
}

/// The result for one of several tasks, as JSON.
#[derive(Serialize)]
struct TaskOutcome {
    task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Changes each task with `change`, which returns the text to print. If one task cannot be changed, still changes the others.
async fn each(
    context: &CliContext,
    ids: &[TaskId],
    change: impl AsyncFn(&Seat, TaskId) -> Result<String, CliError>,
) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    if let &[id] = ids {
        return match with_lock_notice(change(&seat, id)).await {
            Ok(text) => answer(context, id, &text),
            Err(error) => Err(with_last_task(&seat, error).await),
        };
    }
    let mut outcomes: Vec<TaskOutcome> = Vec::new();
    let (mut failed, mut incomplete) = (0, 0);
    for &id in ids {
        if outcomes.iter().any(|outcome| outcome.task_id == id) {
            continue;
        }
        let error = match with_lock_notice(change(&seat, id)).await {
            Ok(text) => {
                if !context.json {
                    output::print(&format!("{text}\n"))?;
                }
                None
            }
            Err(error) => {
                let error = with_last_task(&seat, error).await;
                // The task was changed, and a later step failed: its owner could not be notified.
                match error.kind {
                    Kind::Partly => incomplete += 1,
                    _ => failed += 1,
                }
                if !context.json {
                    report(&error, ErrorFormat::Text);
                }
                Some(error.to_string())
            }
        };
        outcomes.push(TaskOutcome { task_id: id, error });
    }
    if context.json {
        output::print_json(&json!({ "tasks": outcomes }))?;
    }
    Ok(match failed {
        0 if incomplete == 0 => exit::DONE,
        _ if failed == outcomes.len() => exit::FAILED,
        _ => exit::PARTLY,
    })
}

/// Adds the number of the last task to an error about a number that no task has.
pub(super) async fn with_last_task(seat: &Seat, error: CliError) -> CliError {
    if !matches!(error.source.downcast_ref(), Some(BoardError::NoTask(_))) {
        return error;
    }
    let Ok((tasks, _)) = board::list(seat).await else { return error };
    match tasks.last() {
        Some((last, _)) => error.hint(format!("the last task is {last}")),
        None => error,
    }
}

async fn add(context: &CliContext, task: TaskAddArgs) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let details = TaskDetails {
        labels: task.label,
        priority: task.priority.map(Into::into).unwrap_or_default(),
        ..TaskDetails::default()
    };
    let plan = TaskPlan {
        subject: task.subject.unwrap_or_default(),
        description: task.description,
        active_form: task.active_form,
        blocked_by: task.blocked_by,
        metadata: details.to_metadata(),
    };
    let Some(owner) = task.owner else {
        let id = with_lock_notice(board::add(&seat, &plan)).await?;
        return answer(context, id, &format!("added task {STRONG}{id}{STRONG:#}"));
    };
    let id = with_lock_notice(board::add_for(&seat, &plan, &owner)).await?;
    answer(context, id, &format!("added task {STRONG}{id}{STRONG:#} and notified {owner}"))
}

async fn claim(context: &CliContext, ids: &[TaskId]) -> Result<u8, CliError> {
    each(context, ids, async |seat, id| {
        if let Err(error) = board::claim(seat, id).await {
            return Err(refused(seat, error).await);
        }
        let name = &seat.name;
        Ok(format!("task {STRONG}{id}{STRONG:#} is in progress, owned by {name}"))
    })
    .await
}

/// Returns the error for a refused claim, with hints that list the blocking tasks and the tasks that are ready.
async fn refused(seat: &Seat, error: BoardError) -> CliError {
    let Ok((_, graph)) = board::list(seat).await else { return error.into() };
    let mut hints = Vec::new();
    if let BoardError::Blocked { waits_for, .. } = &error {
        for &id in waits_for {
            let Some(node) = graph.node(id) else { continue };
            let owner = node.owner.as_ref().map_or(String::new(), |owner| format!(" ({owner})"));
            let word = TaskView::new(&graph, id).label();
            hints.push(format!("task {id} is {word}{owner}: {}", text::one_line(&node.subject)));
        }
    }
    let claims = matches!(
        error,
        BoardError::Blocked { .. } | BoardError::Done(_) | BoardError::Taken { .. }
    );
    let ready = graph.nodes().map(|(id, _)| id);
    let ready: Vec<TaskId> =
        ready.filter(|&id| graph.state(id) == Some(TaskState::Ready)).collect();
    if claims && !ready.is_empty() {
        hints.push(format!("ready to claim: {}", task_view::join(ready)));
    }
    hints.into_iter().fold(error.into(), CliError::hint)
}

async fn release(context: &CliContext, name: &MemberName) -> Result<u8, CliError> {
    let seat = context.seat_or(name).await?;
    let released = with_lock_notice(board::release(&seat, name)).await?;
    let none = released.is_empty();
    if context.json {
        output::print_json(&json!({ "released": task_view::texts(released) }))?;
    } else if none {
        output::note(&format!("{name} has no unfinished tasks"));
    } else {
        output::print(&format!(
            "unassigned {name}'s unfinished tasks: {}\n",
            task_view::join(released)
        ))?;
    }
    Ok(if none { exit::NOTHING } else { exit::DONE })
}

fn answer(context: &CliContext, id: TaskId, text: &str) -> Result<u8, CliError> {
    if context.json {
        output::print_json(&json!({ "task_id": id }))?;
    } else {
        output::print(&format!("{text}\n"))?;
    }
    Ok(exit::DONE)
}
