//! The task board. Several members may write messages about a task. The last message contains the current task.

use std::collections::BTreeMap;

use brigade_core::store::{Actor, Document, Revision, StoreError};
use brigade_wire::name::TaskId;

use crate::connection::NatsConnection;
use crate::layout::{Stream, Subjects};
use crate::read::{ReadRange, StoredMessage};
use crate::write::{DELETED, INCARNATION, OP, PendingWrite};

/// Returns the task number in a message's subject; `None` if the message holds the last assigned number instead.
pub(crate) fn task_id(stored: &StoredMessage) -> Option<TaskId> {
    stored.tokens().first().and_then(|token| token.parse().ok()).and_then(TaskId::new)
}

/// Returns the task, if it exists in this incarnation of the team.
fn existing_task(stored: &StoredMessage, incarnation: &str) -> Option<Document> {
    let exists =
        stored.header(INCARNATION) == Some(incarnation) && stored.header(OP) != Some(DELETED);
    exists.then(|| Document { bytes: stored.payload.to_vec(), revision: Revision(stored.seq) })
}

/// Task numbers are lower than this.
const MAX_NUMBER: u64 = 1_000_000_000;

impl NatsConnection {
    /// Returns all tasks.
    pub(crate) async fn tasks(
        &self,
        subjects: &Subjects,
        incarnation: &str,
    ) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let stream = subjects.stream(Stream::Board);
        // The stream keeps the last message of each author for every task, even for a deleted task. Most of these
        // messages are not needed, so convert each message when it arrives instead of collecting all messages.
        let map = |stored: StoredMessage| {
            (task_id(&stored), stored.seq, existing_task(&stored, incarnation))
        };
        let (board, doing) = (subjects.board(), "read the board");
        let found = self.read_mapped(&stream, &board, ReadRange::Last, doing, map).await?;
        let mut last: BTreeMap<TaskId, (u64, Option<Document>)> = BTreeMap::new();
        for (id, seq, task) in found {
            let Some(id) = id else { continue };
            if last.get(&id).is_none_or(|(before, _)| *before < seq) {
                last.insert(id, (seq, task));
            }
        }
        Ok(last.into_iter().filter_map(|(id, (_, task))| Some((id, task?))).collect())
    }

    /// Returns a task, and the sequence of the last message about it. A deleted task has only the sequence.
    pub(crate) async fn task(
        &self,
        subjects: &Subjects,
        id: TaskId,
        incarnation: &str,
    ) -> Result<(Option<Document>, u64), StoreError> {
        let (stream, doing) = (subjects.stream(Stream::Board), format!("read task {id}"));
        let found = self.last(&stream, &subjects.task(id), &doing).await?;
        let seq = found.as_ref().map_or(0, |found| found.seq);
        Ok((found.and_then(|found| existing_task(&found, incarnation)), seq))
    }

    /// Assigns the next unused task number.
    pub(crate) async fn next_number(
        &self,
        subjects: &Subjects,
        incarnation: &str,
        by: &Actor,
    ) -> Result<TaskId, StoreError> {
        let (stream, doing) = (subjects.stream(Stream::Board), "assign a task number");
        loop {
            let last = self.last(&stream, &subjects.number(), doing).await?;
            let seq = last.as_ref().map_or(0, |last| last.seq);
            let number = last.filter(|last| last.header(INCARNATION) == Some(incarnation));
            let number = number.and_then(|last| str::from_utf8(&last.payload).ok()?.parse().ok());
            // Any member can write the number. A number that no board reaches was not assigned by brigade.
            let number = match number.unwrap_or(0_u64) {
                number if number < MAX_NUMBER => number,
                _ => self.highest_task(subjects, incarnation).await?,
            };
            let next = number + 1;
            match self.set_number(subjects, incarnation, by, next, seq).await {
                Err(StoreError::Conflict) => {}
                written => {
                    written?;
                    return TaskId::new(next).ok_or(StoreError::Conflict);
                }
            }
        }
    }

    /// Returns the highest number of an existing task that is below [`MAX_NUMBER`]; 0 if there is none.
    async fn highest_task(
        &self,
        subjects: &Subjects,
        incarnation: &str,
    ) -> Result<u64, StoreError> {
        let tasks = self.tasks(subjects, incarnation).await?;
        let numbers = tasks.iter().map(|(id, _)| id.get());
        Ok(numbers.filter(|number| *number < MAX_NUMBER).max().unwrap_or(0))
    }

    /// Stores the last assigned task number.
    pub(crate) async fn set_number(
        &self,
        subjects: &Subjects,
        incarnation: &str,
        by: &Actor,
        number: u64,
        expected_last: u64,
    ) -> Result<u64, StoreError> {
        let text = number.to_string();
        let pending = PendingWrite::new(subjects.last_number_by(&by.0), text.as_bytes())
            .with_header(INCARNATION, incarnation);
        self.write(pending.expect_last(subjects.number(), expected_last), "assign a task number")
            .await
    }

    /// Writes a new version of a task; `None` deletes the task.
    pub(crate) async fn set_task(
        &self,
        subjects: &Subjects,
        incarnation: &str,
        id: TaskId,
        task: Option<&[u8]>,
        expected_last: u64,
        by: &Actor,
    ) -> Result<u64, StoreError> {
        let pending = PendingWrite::new(subjects.task_by(id, &by.0), task.unwrap_or_default())
            .with_header(INCARNATION, incarnation);
        let pending = if task.is_none() { pending.with_header(OP, DELETED) } else { pending };
        self.write(
            pending.expect_last(subjects.task(id), expected_last),
            &format!("write task {id}"),
        )
        .await
    }
}
