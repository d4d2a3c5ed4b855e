//! What waits for what, as it is written into tasks.

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task, TaskChange};

use super::{BoardError, edit, show};
use crate::seat::Seat;
use crate::store::Document;

/// Makes `id` wait for `blocker`. Two who do this at once could close a circle that neither sees
/// beforehand, so each looks again after writing and takes its own edge back: of two such writes at
/// least one comes before the other's second look.
pub(super) async fn depend(seat: &Seat, id: TaskId, blocker: TaskId) -> Result<(), BoardError> {
    let cycle = BoardError::Cycle { id, blocker };
    show(seat, blocker).await?;
    if id == blocker || reaches(seat, blocker, id).await? {
        return Err(cycle);
    }
    let mut added = false;
    edit(seat, id, |task| {
        let mut blockers = owned(task.blocked_by());
        added = !blockers.iter().any(|its| *its == blocker.to_string());
        if added {
            blockers.push(Cow::Owned(blocker.to_string()));
        }
        let change = TaskChange { blocked_by: Some(blockers), ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    })
    .await?;
    if added && reaches(seat, blocker, id).await? {
        let number = blocker.to_string();
        edit(seat, id, |task| {
            let mut blockers = owned(task.blocked_by());
            blockers.retain(|its| *its != number);
            let change = TaskChange { blocked_by: Some(blockers), ..TaskChange::default() };
            Ok(task.with(&change).into_owned())
        })
        .await?;
        return Err(cycle);
    }
    edit(seat, blocker, |task| Ok(mirror(task, id))).await?;
    Ok(())
}

/// Whether `from` waits for `target`, over any number of tasks.
async fn reaches(seat: &Seat, from: TaskId, target: TaskId) -> Result<bool, BoardError> {
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

/// The tasks `id` still waits for, as `document` has them.
pub(super) async fn waits_for(
    seat: &Seat,
    id: TaskId,
    document: &Document,
) -> Result<Vec<TaskId>, BoardError> {
    let blockers: Vec<TaskId> = {
        let task = Task::read(&document.bytes).map_err(|_| BoardError::NotATask(id))?;
        let texts = task.blocked_by().unwrap_or_default();
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    };
    let mut waits_for = Vec::new();
    for blocker in blockers {
        let Some(document) = seat.store.task(&seat.team, blocker).await? else { continue };
        let open = Task::read(&document.bytes).ok().and_then(|task| task.status());
        if open.is_some_and(|status| status != Status::Completed) {
            waits_for.push(blocker);
        }
    }
    Ok(waits_for)
}

/// The task with `id` among those it blocks.
pub(super) fn mirror(task: &Task<'_>, id: TaskId) -> Vec<u8> {
    let mut blocks = owned(task.blocks());
    if !blocks.iter().any(|its| *its == id.to_string()) {
        blocks.push(Cow::Owned(id.to_string()));
    }
    task.with(&TaskChange { blocks: Some(blocks), ..TaskChange::default() }).into_owned()
}

/// The task without any mention of another.
pub(super) fn without(task: &Task<'_>, number: &str) -> Vec<u8> {
    let keep = |texts: Option<Vec<Cow<'_, str>>>| {
        let mut texts = owned(Some(texts?));
        texts.retain(|text| text != number);
        Some(texts)
    };
    let (blocks, blocked_by) = (keep(task.blocks()), keep(task.blocked_by()));
    task.with(&TaskChange { blocks, blocked_by, ..TaskChange::default() }).into_owned()
}

fn owned<'o>(texts: Option<Vec<Cow<'_, str>>>) -> Vec<Cow<'o, str>> {
    let texts = texts.unwrap_or_default();
    texts.into_iter().map(|text| Cow::Owned(text.into_owned())).collect()
}
