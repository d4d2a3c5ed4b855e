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

/// Returns the length of the task, if it exists in this incarnation of the team. A message without its payload has its
/// size in a header. The server appends that header, so it is the last one of that name.
fn existing_task_len(stored: &StoredMessage, incarnation: &str) -> Option<usize> {
    let size = stored.headers.get_last("Nats-Msg-Size").filter(|_| stored.payload.is_empty());
    let size = size.and_then(|size| size.as_str().parse().ok());
    existing_task(stored, incarnation).map(|task| size.unwrap_or(task.bytes.len()))
}

impl NatsConnection {
    /// Returns all tasks.
    pub(crate) async fn tasks(
        &self,
        subjects: &Subjects,
        incarnation: &str,
    ) -> Result<Vec<(TaskId, Document)>, StoreError> {
        self.map_tasks(subjects, ReadRange::Last, |stored| existing_task(stored, incarnation)).await
    }

    /// Returns the length of each task.
    pub(crate) async fn task_lengths(
        &self,
        subjects: &Subjects,
        incarnation: &str,
    ) -> Result<Vec<(TaskId, usize)>, StoreError> {
        let len = |stored: &StoredMessage| existing_task_len(stored, incarnation);
        self.map_tasks(subjects, ReadRange::LastHeaders, len).await
    }

    /// Reads the last message of each task and converts it. Leaves out the tasks for which `convert` returns `None`.
    async fn map_tasks<T: Send>(
        &self,
        subjects: &Subjects,
        range: ReadRange,
        convert: impl Fn(&StoredMessage) -> Option<T> + Send + Sync,
    ) -> Result<Vec<(TaskId, T)>, StoreError> {
        let stream = subjects.stream(Stream::Board);
        // The stream keeps the last message of each author for every task, even for a deleted task. Most of these
        // messages are not needed, so convert each message when it arrives instead of collecting all messages.
        let map = |stored: StoredMessage| (task_id(&stored), stored.seq, convert(&stored));
        let (board, doing) = (subjects.board(), "read the board");
        let found = self.read_mapped(&stream, &board, range, doing, map).await?;
        let mut last: BTreeMap<TaskId, (u64, Option<T>)> = BTreeMap::new();
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

    /// Returns the last assigned task number, and the sequence of the message that contains it.
    pub(crate) async fn last_number(
        &self,
        subjects: &Subjects,
        incarnation: &str,
    ) -> Result<(u64, u64), StoreError> {
        let stream = subjects.stream(Stream::Board);
        let last = self.last(&stream, &subjects.number(), "read the last task number").await?;
        let seq = last.as_ref().map_or(0, |last| last.seq);
        let number = last.filter(|last| last.header(INCARNATION) == Some(incarnation));
        let number = number.and_then(|last| str::from_utf8(&last.payload).ok()?.parse().ok());
        Ok((number.unwrap_or(0), seq))
    }

    /// Assigns the next unused task number.
    pub(crate) async fn next_number(
        &self,
        subjects: &Subjects,
        incarnation: &str,
        by: &Actor,
    ) -> Result<TaskId, StoreError> {
        loop {
            let (number, seq) = self.last_number(subjects, incarnation).await?;
            // Any member can write the number. A number that no board reaches was not assigned by brigade.
            let number = match number {
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
