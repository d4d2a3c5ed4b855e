//! `brigade task …`

mod graph;
mod list;
mod show;

use brigade_core::board::{self, BoardError, TaskPlan, Update};
use brigade_core::graph::TaskState;
use brigade_core::seat::Seat;
use brigade_core::text;
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use serde_json::json;

use crate::cli::{TaskAddArgs, TaskCommand, TaskUpdateArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::exit;
use crate::output::{self, STRONG};
use crate::slow_notice::with_lock_notice;
use brigade_core::task_view::{self, TaskView};

pub(crate) async fn run(context: &CliContext, command: TaskCommand) -> Result<u8, CliError> {
    match command {
        TaskCommand::Add(task) => add(context, task).await,
        TaskCommand::List(which) => list::run(context, &which).await,
        TaskCommand::Show { id } => show::run(context, id).await,
        TaskCommand::Update(update) => self::update(context, *update).await,
        TaskCommand::Claim { id } => claim(context, id).await,
        TaskCommand::Done { id } => done(context, id).await,
        TaskCommand::Delete { id } => delete(context, id).await,
        TaskCommand::Release { name } => release(context, &name).await,
        TaskCommand::Graph { format } => graph::run(context, format).await,
    }
}

async fn add(context: &CliContext, task: TaskAddArgs) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let plan = TaskPlan {
        subject: task.subject,
        description: task.description,
        active_form: task.active_form,
        blocked_by: task.blocked_by,
        metadata: Vec::new(),
    };
    let Some(owner) = task.owner else {
        let id = with_lock_notice(board::add(&seat, &plan)).await?;
        return answer(context, id, &format!("added task {STRONG}{id}{STRONG:#}"));
    };
    let id = with_lock_notice(board::add_for(&seat, &plan, &owner)).await?;
    answer(context, id, &format!("added task {STRONG}{id}{STRONG:#} and notified {owner}"))
}

async fn update(context: &CliContext, update: TaskUpdateArgs) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let id = update.id;
    let owner = match update.owner {
        Some(name) => Change::Set(name),
        None if update.no_owner => Change::Clear,
        None => Change::Keep,
    };
    let nothing = owner == Change::Keep
        && update.subject.is_none()
        && update.description.is_none()
        && update.active_form.is_none()
        && update.status.is_none()
        && update.blocks.is_empty()
        && update.blocked_by.is_empty();
    if nothing {
        let error = CliError::usage(CliTrouble::NoChange);
        return Err(error.hint("`brigade task update --help` shows what can be changed"));
    }
    let update = Update {
        subject: update.subject,
        description: update.description,
        active_form: update.active_form.map_or(Change::Keep, Change::Set),
        owner,
        status: update.status.map(Into::into),
        add_blocks: update.blocks,
        add_blocked_by: update.blocked_by,
        metadata: Vec::new(),
    };
    with_lock_notice(board::update(&seat, id, &update)).await?;
    answer(context, id, &format!("changed task {STRONG}{id}{STRONG:#}"))
}

async fn claim(context: &CliContext, id: TaskId) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    if let Err(error) = with_lock_notice(board::claim(&seat, id)).await {
        return Err(refused(&seat, error).await);
    }
    let name = &seat.name;
    answer(context, id, &format!("task {STRONG}{id}{STRONG:#} is in progress, owned by {name}"))
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

async fn done(context: &CliContext, id: TaskId) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    with_lock_notice(board::done(&seat, id)).await?;
    answer(context, id, &format!("task {STRONG}{id}{STRONG:#} is done"))
}

async fn delete(context: &CliContext, id: TaskId) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    with_lock_notice(board::delete(&seat, id)).await?;
    answer(context, id, &format!("deleted task {STRONG}{id}{STRONG:#}"))
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
