//! The task board: a task is the last message with its number, by any author.

use std::collections::BTreeMap;

use brigade_core::store::{Actor, Document, Revision, StoreError};
use brigade_wire::name::TaskId;

use crate::engine::Engine;
use crate::layout::{Place, Stream};
use crate::read::{Stored, Which};
use crate::write::{DELETED, Draft, LIFE, OP};

/// The task number in a subject; `None` for the counter of assigned numbers.
pub(crate) fn id(stored: &Stored) -> Option<TaskId> {
    stored.tokens().first().and_then(|token| token.parse().ok()).and_then(TaskId::new)
}

/// The task, if it exists in this incarnation of the team.
fn alive(stored: &Stored, life: &str) -> Option<Document> {
    let there = stored.header(LIFE) == Some(life) && stored.header(OP) != Some(DELETED);
    there.then(|| Document { bytes: stored.payload.to_vec(), revision: Revision(stored.seq) })
}

impl Engine {
    /// All tasks.
    pub(crate) async fn tasks(
        &self,
        place: &Place,
        life: &str,
    ) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let stream = place.stream(Stream::Board);
        // The board holds the last message of each author for each task ever. Map at once: most are not needed.
        let keep = |stored: Stored| (id(&stored), stored.seq, alive(&stored, life));
        let (board, doing) = (place.board(), "read the board");
        let found = self.read_as(&stream, &board, Which::Last, doing, keep).await?;
        let mut last: BTreeMap<TaskId, (u64, Option<Document>)> = BTreeMap::new();
        for (id, seq, task) in found {
            let Some(id) = id else { continue };
            if last.get(&id).is_none_or(|(before, _)| *before < seq) {
                last.insert(id, (seq, task));
            }
        }
        Ok(last.into_iter().filter_map(|(id, (_, task))| Some((id, task?))).collect())
    }

    /// A task, and the sequence of the last message about it.
    pub(crate) async fn task(
        &self,
        place: &Place,
        id: TaskId,
        life: &str,
    ) -> Result<(Option<Document>, u64), StoreError> {
        let (stream, doing) = (place.stream(Stream::Board), format!("read task {id}"));
        let found = self.last(&stream, &place.task(id), &doing).await?;
        let seq = found.as_ref().map_or(0, |found| found.seq);
        Ok((found.and_then(|found| alive(&found, life)), seq))
    }

    /// Assigns the next unused task number.
    pub(crate) async fn next_number(
        &self,
        place: &Place,
        life: &str,
        by: &Actor,
    ) -> Result<TaskId, StoreError> {
        let (stream, doing) = (place.stream(Stream::Board), "assign a task number");
        loop {
            let last = self.last(&stream, &place.number(), doing).await?;
            let seq = last.as_ref().map_or(0, |last| last.seq);
            let number = last.filter(|last| last.header(LIFE) == Some(life));
            let number = number.and_then(|last| str::from_utf8(&last.payload).ok()?.parse().ok());
            let next = number.unwrap_or(0_u64) + 1;
            match self.set_number(place, life, by, next, seq).await {
                Err(StoreError::Conflict) => {}
                written => {
                    written?;
                    return TaskId::new(next).ok_or(StoreError::Conflict);
                }
            }
        }
    }

    /// Stores the last assigned task number.
    pub(crate) async fn set_number(
        &self,
        place: &Place,
        life: &str,
        by: &Actor,
        number: u64,
        onto: u64,
    ) -> Result<u64, StoreError> {
        let text = number.to_string();
        let draft = Draft::new(place.number_by(&by.0), text.as_bytes()).with(LIFE, life);
        self.write(draft.onto(place.number(), onto), "assign a task number").await
    }

    /// Writes a task, or its deletion.
    pub(crate) async fn set_task(
        &self,
        place: &Place,
        life: &str,
        id: TaskId,
        task: Option<&[u8]>,
        onto: u64,
        by: &Actor,
    ) -> Result<u64, StoreError> {
        let draft = Draft::new(place.task_by(id, &by.0), task.unwrap_or_default()).with(LIFE, life);
        let draft = if task.is_none() { draft.with(OP, DELETED) } else { draft };
        self.write(draft.onto(place.task(id), onto), &format!("write task {id}")).await
    }
}
