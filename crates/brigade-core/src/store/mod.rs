//! Where teams are stored.
//!
//! A [`Store`] holds the wire documents as bytes and guarantees atomicity: a document is replaced by compare-and-set on
//! its [`Revision`], a message is acknowledged only when it is durable, and a task number is used only once. The
//! meaning of the documents is implemented above, in [`mail`](crate::mail), [`board`](crate::board) and
//! [`roster`](crate::roster), once for all stores.
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
pub mod memory;
mod message;
mod question;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use serde::{Deserialize, Serialize};

pub use self::error::{Refusal, StoreError, WriteObstacle};
pub use self::message::{Mail, Mark, Outgoing, Receipt};
pub use self::question::Question;
use crate::event::{Event, MessageKey, Record};
use crate::event_log::{self, Feed, RecordLookupHandle};

/// Stores teams: in files, in memory, or on a NATS server.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Lists the teams, ordered by name.
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError>;

    /// Returns the team's `config.json`; `None` if there is no such team.
    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError>;

    /// Creates a team with this `config.json` and an empty board.
    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written;

    /// Restores a deleted team with this `config.json` and these tasks under their old numbers. Keeps what is left of
    /// its board.
    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written;

    /// Replaces the team's `config.json` if it is still at this revision.
    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written;

    /// Returns whether brigade created the team; false for teams created by Claude Code.
    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError>;

    /// How long after a write to `config.json` a program that takes no lock may still overwrite it.
    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError>;

    /// Deletes the team: its `config.json`, inboxes and board. Keeps its history.
    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError>;

    /// Appends a message to a member's inbox and returns once it is durable.
    ///
    /// Each message reaches the inbox exactly once, in the order in which its sender sent it. Sending the same
    /// message id twice stores one message.
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError>;

    /// Returns the messages in an inbox, oldest first, including acknowledged ones that are still in the outbox.
    /// Messages read long ago are only in the history.
    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError>;

    /// Marks messages in an inbox. Ignores keys that are not there and messages that already have the mark.
    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError>;

    /// Returns every task, ordered by number. A task that is being written at the moment may be incomplete;
    /// [`Store::task`] waits until it is complete.
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError>;

    /// Returns one task.
    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError>;

    /// Creates a task under the next unused number; `task` returns its content for that number.
    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError>;

    /// Replaces a task if it is still at this revision.
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

    /// Answers a question that can be answered only once. Stores the first answer and returns it to every caller,
    /// including the first.
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

    /// Records an event that is not a change of a document.
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError>;

    /// Saves a note of a member's program, replacing the previous one; `None` deletes it.
    async fn keep(
        &self,
        team: &TeamName,
        member: &MemberName,
        shelf: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError>;

    /// Returns the last saved note. Notes survive the deletion of the team.
    async fn kept(
        &self,
        team: &TeamName,
        member: &MemberName,
        shelf: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the recorded events of one member's mailbox, in order.
    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError>;

    /// Returns all recorded events of the team, in order of time.
    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError>;

    /// Like [`Store::history`] without work events, which are by far the most numerous.
    async fn proceedings(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let mut records = self.history(team).await?;
        records.retain(|record| !matches!(record.event, Event::Worked { .. }));
        Ok(records)
    }

    /// Subscribes to the events of the team from now on.
    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError>;

    /// Like [`Store::watch`], for readers that ignore work events and need not be woken by them.
    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.watch(team).await
    }

    /// Streams the history of the team followed by live events; for a deleted team, only the history.
    async fn chronicle(&self, team: &TeamName) -> Result<(Feed, RecordLookupHandle), StoreError> {
        event_log::held(self, team).await
    }

    /// Returns this process's retry counters; `None` if the store does not count them.
    fn strain(&self) -> Option<Strain> {
        None
    }
}

/// Counts of conflicts and retries of a process since it started, for a NATS store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strain {
    /// Writes that failed because another writer was faster, for example lost claims.
    pub conflicts: u64,
    /// Requests that got no answer and were sent again.
    pub retries: u64,
    /// How often the connection was re-established.
    pub reconnects: u64,
}

impl std::ops::Add for Strain {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            conflicts: self.conflicts + other.conflicts,
            retries: self.retries + other.retries,
            reconnects: self.reconnects + other.reconnects,
        }
    }
}

/// The kinds of notes a member's program can save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// State needed after a crash.
    Memory,
    /// The member's last report about itself, for other processes. A power failure may lose it.
    Pulse,
    /// Progress of an interrupted restore or import of the team.
    Revival,
    /// The host whose files the member uses, if the team spans several hosts.
    Home,
}

/// Result of a write to a document.
pub type Written = Result<Revision, StoreError>;

/// The name of the acting member, for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(pub String);

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The content, in wire format.
    pub bytes: Vec<u8>,
    /// The revision that was read.
    pub revision: Revision,
}

/// A version of a document. Different versions of one document have different revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Revision(pub u64);

/// A stream of the events of a team.
pub struct Watch {
    /// Shared: in a large team, each record waits in many watches but exists once.
    events: tokio::sync::mpsc::UnboundedReceiver<Arc<Record>>,
    /// Stops the producer when dropped.
    _source: Box<dyn Send + Sync>,
}

impl Watch {
    /// A watch that receives from `events` and keeps `source` alive.
    pub fn new(
        events: tokio::sync::mpsc::UnboundedReceiver<Arc<Record>>,
        source: impl Send + Sync + 'static,
    ) -> Self {
        Self { events, _source: Box::new(source) }
    }

    /// Waits for the next event; `None` when the watch has ended.
    pub async fn next(&mut self) -> Option<Record> {
        self.next_shared().await.map(Arc::unwrap_or_clone)
    }

    /// Like [`Watch::next`], without cloning the record.
    pub async fn next_shared(&mut self) -> Option<Arc<Record>> {
        self.events.recv().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
