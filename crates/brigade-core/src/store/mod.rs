//! The interface to the place where teams are stored.
//!
//! A [`Store`] implements five traits: [`TeamStore`], [`MailStore`], [`BoardStore`], [`Notes`] and [`EventLog`].
//! It holds the wire documents as bytes and guarantees atomicity: a document is replaced by compare-and-set on its
//! [`Revision`], a message is acknowledged only when it is durable, and a task number is used only once. A store
//! does not interpret the documents: [`mail`](crate::mail), [`board`](crate::board) and [`roster`](crate::roster)
//! do that, for all stores.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::store::Store;
//! use brigade_core::store::memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), brigade_core::store::StoreError> {
//! let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
//! assert_eq!(store.teams().await?, []);
//! # Ok(())
//! # }
//! ```

mod error;
pub mod event_log;
mod mail_query;
pub mod mailbox_limit;
pub mod memory;
mod message;
mod question;
mod search;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::Damage;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::ParsedTeam;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::error::{Refusal, StoreError, WriteObstacle};
pub use self::event_log::{EventLog, Watch};
pub use self::mail_query::{FoundRequest, MailQuery, RequestQuery};
pub use self::message::{Mail, MailContent, Mark, Outgoing, Receipt};
pub use self::question::Question;
pub use self::search::{
    IndexingProgress, RecordPlace, ReportIndexing, SearchHit, SearchQuery, SearchResults,
};
use crate::event::{MessageKey, Record};

/// Stores the teams and their `config.json`.
#[async_trait]
pub trait TeamStore: fmt::Debug + Send + Sync {
    /// Lists the teams, ordered by name.
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError>;

    /// Lists the teams whose history the store can read, ordered by name. A store that keeps the history of deleted teams
    /// includes them.
    async fn recorded_teams(&self) -> Result<Vec<TeamName>, StoreError> {
        self.teams().await
    }

    /// Returns the team's `config.json`; `None` if there is no such team.
    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError>;

    /// Returns the team's current `config.json`, parsed; `None` if there is no such team. A store may parse each version
    /// only once.
    async fn roster(&self, team: &TeamName) -> Result<Option<Arc<ParsedTeam>>, StoreError> {
        let Some(config) = self.team(team).await? else { return Ok(None) };
        let roster = ParsedTeam::read(config.bytes);
        roster
            .map(|roster| Some(Arc::new(roster)))
            .map_err(|(damage, _)| damaged_team(team, damage))
    }

    /// Creates a team with this `config.json` and an empty board.
    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written;

    /// Restores a deleted team with this `config.json` and these tasks, which keep their numbers. Tasks
    /// that are still on the team's board stay there.
    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written;

    /// Replaces the team's `config.json` if it is still at revision `at`.
    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written;

    /// Returns whether brigade created the team; false if Claude Code created it.
    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        Ok(self.team(team).await?.is_some())
    }

    /// Returns for how long a program that takes no lock may still overwrite a change to `config.json`. Returns
    /// zero if all programs write through the store.
    async fn undo_window(&self, _team: &TeamName) -> Result<Duration, StoreError> {
        Ok(Duration::ZERO)
    }

    /// Deletes the team's `config.json`, inboxes and board. Keeps the team's event history.
    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError>;
}

/// Stores the members' inboxes.
#[async_trait]
pub trait MailStore: fmt::Debug + Send + Sync {
    /// Appends a message to a member's inbox, and returns once the message is durable.
    ///
    /// Each message reaches the inbox exactly once. Messages from one sender arrive in the order in which they
    /// were sent. Sending a message with the same id again stores no second message.
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError>;

    /// Sends a message to each of several mailboxes. Returns the results in the same order. A store may stop after the
    /// first failure; the results then end with that failure.
    async fn send_all(
        &self,
        team: &TeamName,
        messages: &[(MemberName, Outgoing)],
    ) -> Vec<Result<Receipt, StoreError>> {
        let mut results = Vec::new();
        for (to, message) in messages {
            results.push(self.send(team, to, message).await);
            if results.last().is_some_and(Result::is_err) {
                break;
            }
        }
        results
    }

    /// Returns the messages in an inbox, oldest first, including acknowledged messages that are still in the
    /// outbox. Messages that were read long ago are only in the event history.
    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError>;

    /// Marks messages as read or as shown. Ignores messages that are not in the inbox or already have the mark.
    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError>;

    /// Returns the recorded events of one member's mailbox, in order. The history may be long: see
    /// [`MailStore::find_mail`] and [`MailStore::find_requests`].
    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError>;

    /// Returns the recorded events of one member's mailbox that the query selects, in order.
    async fn find_mail(
        &self,
        team: &TeamName,
        member: &MemberName,
        query: MailQuery<'_>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut records = self.mailbox_history(team, member).await?;
        records.retain(|record| query.matches(&record.event));
        Ok(records)
    }

    /// Returns the requests in one member's mailbox that the query selects, in order. `created` is when the team was created,
    /// in milliseconds: requests to an earlier team with the same name are left out.
    async fn find_requests(
        &self,
        team: &TeamName,
        member: &MemberName,
        created: u64,
        query: RequestQuery<'_>,
    ) -> Result<Vec<FoundRequest>, StoreError> {
        let records = self.mailbox_history(team, member).await?;
        Ok(FoundRequest::select(records, created, query))
    }
}

/// Stores the tasks of a team.
#[async_trait]
pub trait BoardStore: fmt::Debug + Send + Sync {
    /// Returns every task, ordered by number. A task that another program is writing may be incomplete;
    /// [`BoardStore::task`] waits until the task is complete.
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError>;

    /// Returns one task; `None` if it does not exist.
    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError>;

    /// Returns the number of tasks and their size, without the content of the tasks.
    async fn board_size(&self, team: &TeamName) -> Result<BoardSize, StoreError>;

    /// Returns about how many tasks there are, without listing the board. Deleted tasks may count, and a task that
    /// another program has just added may be missing.
    async fn estimated_task_count(&self, team: &TeamName) -> Result<usize, StoreError> {
        Ok(self.board_size(team).await?.tasks)
    }

    /// Creates a task under the next unused number. `task` receives the number and returns the content.
    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError>;

    /// Replaces a task if it is still at revision `at`.
    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written;

    /// Deletes a task. Its number is not used again.
    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError>;
}

/// Stores notes of members' programs, and questions that can be answered only once.
#[async_trait]
pub trait Notes: fmt::Debug + Send + Sync {
    /// Saves a note for a member's program, replacing the previous note of this kind. `None` deletes the note.
    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError>;

    /// Returns how often a member's process saves its pulse even if its state has not changed.
    fn pulse_interval(&self) -> Duration {
        Duration::from_secs(20)
    }

    /// Returns whether every member can read every member's pulse.
    fn pulses_are_public(&self) -> bool {
        false
    }

    /// Returns a member's saved note. Notes survive the deletion of the team.
    async fn get_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Answers a question that can be answered only once. Stores only the first answer, and returns that answer to
    /// every caller.
    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError>;

    /// Returns the answer to a question, if there is one.
    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError>;
}

/// A store of teams: in files, in memory, or on a NATS server.
pub trait Store: TeamStore + MailStore + BoardStore + Notes + EventLog {
    /// Returns this process's retry counters; `None` if the store does not count them.
    fn retry_stats(&self) -> Option<RetryStats> {
        None
    }

    /// Returns why the connection to the store is lost. Returns `None` while it is connected, and for a store that
    /// needs no connection.
    fn connection_error(&self) -> Option<String> {
        None
    }

    /// Returns the changes since the last call that took effect, although a later step of them failed.
    fn incomplete_writes(&self) -> Vec<IncompleteWrite> {
        Vec::new()
    }

    /// Returns the tasks that new teams found on their boards since the last call, and that were moved away.
    fn moved_tasks(&self) -> Vec<MovedTasks> {
        Vec::new()
    }
}

/// Tasks that a new team found on its board. They belonged to an earlier team or to another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedTasks {
    /// The number of tasks.
    pub tasks: usize,
    /// The folder of the board.
    pub from: PathBuf,
    /// The folder that contains the tasks now.
    pub to: PathBuf,
}

/// A change that took effect, although a later step of it failed. The caller must not make the change again.
#[derive(Debug, Error)]
#[error("{done}, but {missing}")]
pub struct IncompleteWrite {
    /// The change that took effect.
    pub done: String,
    /// The step that failed.
    pub missing: &'static str,
    /// Why the step failed.
    pub source: StoreError,
}

/// How often a process that uses a NATS store has met conflicts, retried and reconnected since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryStats {
    /// The number of writes that failed because another writer was faster, for example in claiming a task.
    pub conflicts: u64,
    /// The number of requests that got no answer and were sent again.
    pub retries: u64,
    /// The number of times that the connection was re-established.
    pub reconnects: u64,
}

impl std::ops::Add for RetryStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            conflicts: self.conflicts + other.conflicts,
            retries: self.retries + other.retries,
            reconnects: self.reconnects + other.reconnects,
        }
    }
}

/// The kinds of notes that a member's program can save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// State that the member's program needs after a crash.
    Memory,
    /// The last report of the member's process, for other processes. It may be lost in a power failure.
    Pulse,
    /// The progress of an interrupted restore or import of the team.
    Revival,
    /// The host whose files the member uses, if the team spans several hosts.
    Home,
}

/// The result of a write to a document: the document's new revision.
pub type Written = Result<Revision, StoreError>;

/// The size of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardSize {
    /// The number of tasks.
    pub tasks: usize,
    /// The size of all tasks in bytes.
    pub bytes: usize,
}

impl BoardSize {
    /// Adds up the tasks with these lengths.
    pub fn total(lengths: impl IntoIterator<Item = usize>) -> Self {
        lengths
            .into_iter()
            .fold(Self::default(), |sum, len| Self { tasks: sum.tasks + 1, bytes: sum.bytes + len })
    }
}

/// Returns the error for a team whose `config.json` is damaged.
pub fn damaged_team(team: &TeamName, damage: Damage) -> StoreError {
    StoreError::Damaged { place: format!("the configuration of team {team}"), damage }
}

/// The name of the acting member, for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(pub String);

/// A document as it was read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The content, in wire format.
    pub bytes: Vec<u8>,
    /// The revision of the document at the time of reading.
    pub revision: Revision,
}

/// A version of a document. Different versions of one document have different revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Revision(pub u64);
