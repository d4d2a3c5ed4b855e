//! Changes of a task's owner and status that people ask for by name: assign, unassign, reopen, cancel.

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task, TaskChange};
use serde_json::Value;

use super::{BoardError, Update, check_owner, edit, notify_owner, role, show, update};
use crate::authority::Role;
use crate::mail;
use crate::seat::Seat;
use crate::task_details::CANCELLED_KEY;

/// Makes a member the owner of an unfinished task, and notifies the member.
pub async fn assign(seat: &Seat, id: TaskId, owner: &MemberName) -> Result<(), BoardError> {
    let document = show(seat, id).await?;
    if status(&document.bytes) == Some(Status::Completed) {
        return Err(BoardError::Done(id));
    }
    update(seat, id, &Update { owner: Change::Set(owner.clone()), ..Update::default() }).await
}

/// Removes the owner of an unfinished task, which becomes pending. Tells the owner.
pub async fn unassign(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let lead = role(seat).await? == Role::Lead;
    let mut before = None;
    edit(seat, id, |task| {
        if task.status() == Some(Status::Completed) {
            return Err(BoardError::Done(id));
        }
        if !lead {
            check_owner(seat, id, task)?;
        }
        before = Some(owner(task).ok_or(BoardError::NoOwner(id))?);
        let status = Some(Status::Pending);
        let change = TaskChange { owner: Change::Clear, status, ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    send_change(seat, id, before, "unassigned", "is no longer assigned to you").await
}

/// Makes a completed or cancelled task pending again. The task keeps its owner, who is notified.
pub async fn reopen(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let lead = role(seat).await? == Role::Lead;
    let mut before = None;
    let document = edit(seat, id, |task| {
        if task.status() != Some(Status::Completed) {
            return Err(BoardError::NotDone(id));
        }
        if !lead {
            check_owner(seat, id, task)?;
        }
        before = owner(task);
        let status = Some(Status::Pending);
        let metadata = Update { status, ..Update::default() }.metadata_changes(task);
        let change = TaskChange { status, metadata: &metadata, ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    match before.and_then(|name| name.parse::<MemberName>().ok()) {
        Some(name) if name != seat.name && is_member(seat, name.as_str()).await? => {
            notify_owner(seat, id, &name, &document).await
        }
        _ => Ok(()),
    }
}

/// Cancels an unfinished task: it will not be done. Claude Code's board has no status for this, so the task is completed, and
/// its metadata says that it was cancelled. Tasks that depend on it no longer wait for it. Tells the owner.
pub async fn cancel(seat: &Seat, id: TaskId, reason: &str) -> Result<(), BoardError> {
    let lead = role(seat).await? == Role::Lead;
    let mut before = None;
    edit(seat, id, |task| {
        match task.status() {
            Some(Status::Completed) => return Err(BoardError::Done(id)),
            None => return Err(BoardError::NotATask(id)),
            Some(_) => {}
        }
        if !lead {
            check_owner(seat, id, task)?;
        }
        before = owner(task);
        let why = if reason.is_empty() { Value::Bool(true) } else { Value::from(reason) };
        let metadata = [(CANCELLED_KEY.to_owned(), Some(why))];
        let status = Some(Status::Completed);
        let change = TaskChange { status, metadata: &metadata, ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    send_change(seat, id, before, "cancelled", &format!("was cancelled{reason}. Do not work on it"))
        .await
}

fn status(document: &[u8]) -> Option<Status> {
    Task::read(document).ok()?.status()
}

fn owner(task: &Task<'_>) -> Option<String> {
    task.owner().filter(|owner| !owner.is_empty()).map(std::borrow::Cow::into_owned)
}

async fn is_member(seat: &Seat, name: &str) -> Result<bool, BoardError> {
    Ok(seat.roster().await?.team().member(name).is_some())
}

/// Sends the owner of a task a message about a change, unless the owner made the change or has left the team.
async fn send_change(
    seat: &Seat,
    id: TaskId,
    owner: Option<String>,
    change: &'static str,
    text: &str,
) -> Result<(), BoardError> {
    let Some(owner) = owner.filter(|owner| *owner != seat.name.as_str()) else { return Ok(()) };
    if !is_member(seat, &owner).await? {
        return Ok(());
    }
    let sent = mail::send(seat, &owner, &*format!("Task {id} {text}.")).await;
    sent.map(drop).map_err(|source| {
        let source = Box::new(source);
        BoardError::OwnerNotTold { id, change, owner, source }
    })
}
