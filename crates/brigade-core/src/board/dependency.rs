//! Reads and writes the dependency fields of tasks.

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task, TaskChange};

use super::{BoardError, edit, show};
use crate::seat::Seat;
use crate::store::Document;

/// Makes task `id` depend on task `blocker`. Two concurrent calls can together create a cycle that neither call
/// sees before it writes. So each call checks again after its write, and removes its own dependency if it finds a
/// cycle. The call that writes last sees both dependencies, so no cycle remains.
pub(super) async fn add_dependency(
    seat: &Seat,
    id: TaskId,
    blocker: TaskId,
) -> Result<(), BoardError> {
    let cycle = BoardError::Cycle { id, blocker };
    show(seat, blocker).await?;
    if id == blocker || depends_on(seat, blocker, id).await? {
        return Err(cycle);
    }
    let mut added = false;
    edit(seat, id, |task| {
        let mut blockers = owned(task.blocked_by());
        added = !blockers.iter().any(|text| *text == blocker.to_string());
        if added {
            blockers.push(Cow::Owned(blocker.to_string()));
        }
        let change = TaskChange { blocked_by: Some(blockers), ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    if added && depends_on(seat, blocker, id).await? {
        let number = blocker.to_string();
        edit(seat, id, |task| {
            let mut blockers = owned(task.blocked_by());
            blockers.retain(|text| *text != number);
            let change = TaskChange { blocked_by: Some(blockers), ..TaskChange::default() };
            Ok(task.with(&change).into_owned())
        })
        .await?;
        return Err(cycle);
    }
    edit(seat, blocker, |task| Ok(with_blocked(task, id))).await?;
    Ok(())
}

/// Removes `blocker` from the dependencies of task `id`. Fails if the task does not depend on it.
pub(super) async fn remove_dependency(
    seat: &Seat,
    id: TaskId,
    blocker: TaskId,
) -> Result<(), BoardError> {
    let (number, dependent) = (blocker.to_string(), id.to_string());
    edit(seat, id, |task| {
        let mut blockers = owned(task.blocked_by());
        if !blockers.iter().any(|text| *text == number) {
            return Err(BoardError::NotBlockedBy { id, blocker });
        }
        blockers.retain(|text| *text != number);
        let change = TaskChange { blocked_by: Some(blockers), ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    let unblock = |task: &Task<'_>| {
        let mut blocks = owned(task.blocks());
        blocks.retain(|text| *text != dependent);
        let change = TaskChange { blocks: Some(blocks), ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    };
    match edit(seat, blocker, unblock).await {
        // `NoTask`: the task names a blocker that does not exist any more.
        Ok(_) | Err(BoardError::NoTask(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns whether `from` depends on `target`, directly or indirectly.
async fn depends_on(seat: &Seat, from: TaskId, target: TaskId) -> Result<bool, BoardError> {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(id) = next.pop() {
        let Some(document) = seat.store.task(&seat.team, id).await? else { continue };
        let Ok(task) = Task::read(&document.bytes) else { continue };
        let blockers = task.blocked_by().unwrap_or_default();
        for blocker in blockers.iter().filter_map(|text| text.parse().ok()) {
            if blocker == target {
                return Ok(true);
            }
            if seen.insert(blocker) {
                next.push(blocker);
            }
        }
    }
    Ok(false)
}

/// Returns the unfinished tasks that task `id` depends on. `document` is the content of task `id`.
pub(super) async fn open_blockers(
    seat: &Seat,
    id: TaskId,
    document: &Document,
) -> Result<Vec<TaskId>, BoardError> {
    let blockers: Vec<TaskId> = {
        let task = Task::read(&document.bytes).map_err(|_| BoardError::NotATask(id))?;
        let texts = task.blocked_by().unwrap_or_default();
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    };
    let mut open = Vec::new();
    for blocker in blockers {
        let Some(document) = seat.store.task(&seat.team, blocker).await? else { continue };
        let status = Task::read(&document.bytes).ok().and_then(|task| task.status());
        if status.is_some_and(|status| status != Status::Completed) {
            open.push(blocker);
        }
    }
    Ok(open)
}

/// Returns about how many bytes this many dependencies take in both tasks.
pub(super) fn dependencies_len(count: usize) -> usize {
    /// Quotes, comma, indentation and number, once in `blocks` and once in `blockedBy`.
    const ENTRY_BYTES: usize = 32;
    count * ENTRY_BYTES
}

/// Returns the task with `id` added to its `blocks` field.
pub(super) fn with_blocked(task: &Task<'_>, id: TaskId) -> Vec<u8> {
    let mut blocks = owned(task.blocks());
    if !blocks.iter().any(|text| *text == id.to_string()) {
        blocks.push(Cow::Owned(id.to_string()));
    }
    task.with(&TaskChange { blocks: Some(blocks), ..TaskChange::default() }).into_owned()
}

/// Returns the task with task `number` removed from its `blocks` and `blockedBy` fields.
pub(super) fn without_dependency(task: &Task<'_>, number: &str) -> Vec<u8> {
    let filtered = |texts: Option<Vec<Cow<'_, str>>>| {
        let mut texts = owned(Some(texts?));
        texts.retain(|text| text != number);
        Some(texts)
    };
    let (blocks, blocked_by) = (filtered(task.blocks()), filtered(task.blocked_by()));
    task.with(&TaskChange { blocks, blocked_by, ..TaskChange::default() }).into_owned()
}

fn owned<'o>(texts: Option<Vec<Cow<'_, str>>>) -> Vec<Cow<'o, str>> {
    let texts = texts.unwrap_or_default();
    texts.into_iter().map(|text| Cow::Owned(text.into_owned())).collect()
}
