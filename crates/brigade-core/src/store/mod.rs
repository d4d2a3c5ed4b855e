//! Where a team lives.
//!
//! A [`Store`] holds the documents of the wire as bytes, and decides what is atomic: a document is
//! replaced by compare-and-set on its [`Revision`], a message is acknowledged when it is durable, a
//! task gets a number nobody had before. What the documents mean is decided above, in
//! [`mail`](crate::mail), [`board`](crate::board) and [`roster`](crate::roster), once for all stores.
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

pub use self::error::{Obstacle, Refusal, StoreError};
pub use self::message::{Mail, Mark, Outgoing, Receipt};
pub use self::question::Question;
use crate::event::{Event, MessageKey, Record};
use crate::event_log::{self, Feed, Library};

/// Where a team lives: files, memory, or an engine on the network.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// The teams there are, by name.
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError>;

    /// The team's `config.json`; `None` if there is no such team.
    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError>;

    /// Makes a team of this `config.json`, with an empty board.
    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written;

    /// Makes a team again that is gone, of this `config.json` and with these tasks under their numbers.
    /// What is still there of its board stays.
    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written;

    /// Replaces the team's `config.json`, if it is still at this revision.
    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written;

    /// Whether the team was created by brigade, and not by Claude Code.
    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError>;

    /// How long a write to `config.json` may still be undone by a program that takes no lock.
    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError>;

    /// Deletes the team: its `config.json`, inboxes and board. Its history stays.
    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError>;

    /// Takes a message for a member's inbox. When this returns without an error the message is
    /// durable and will stand in the inbox exactly once, after those this sender sent before it. A
    /// message whose id was taken before is the same message.
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError>;

    /// The messages in a member's inbox, oldest first, with those that are acknowledged and on
    /// their way. Those read long ago are only in the history.
    async fn inbox(&self, team: &TeamName, of: &MemberName) -> Result<Vec<Mail>, StoreError>;

    /// Marks messages of an inbox. Keys that are not there change nothing, and nor does marking read
    /// what is read.
    async fn mark(
        &self,
        team: &TeamName,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError>;

    /// Every task of the board, by number. One that is being written at this moment may be torn;
    /// [`Store::task`] waits until it is whole.
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError>;

    /// One task.
    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError>;

    /// Makes a task under the next number, which no task had before; `task` writes it.
    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError>;

    /// Replaces a task, if it is still at this revision.
    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written;

    /// Deletes a task; its number stays taken.
    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError>;

    /// Writes down the answer to a question that has one answer for ever. The first is kept, and
    /// everybody, the first as well, is given that one.
    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError>;

    /// The answer to such a question, if it has one yet.
    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes down something that is in no document.
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError>;

    /// Keeps a note of a member's program, in place of the one before; or no longer keeps one.
    async fn keep(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError>;

    /// The note that was kept last. It outlives the team.
    async fn kept(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// What was written down about one member's mailbox, in order.
    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError>;

    /// Everything written down about the team, in order of time.
    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError>;

    /// The same without members' work, of which there is far more than of all else.
    async fn proceedings(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let mut records = self.history(team).await?;
        records.retain(|record| !matches!(record.event, Event::Worked { .. }));
        Ok(records)
    }

    /// What happens in the team from now on.
    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError>;

    /// The same for those to whom members' work is nothing: they need not be woken by it.
    async fn watch_proceedings(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.watch(team).await
    }

    /// All that happened in the team, and then what happens; of a deleted team, what happened.
    async fn chronicle(&self, team: &TeamName) -> Result<(Feed, Library), StoreError> {
        event_log::held(self, team).await
    }

    /// What this process had to do twice so far; `None` where that is not counted.
    fn strain(&self) -> Option<Strain> {
        None
    }
}

/// What a process had to do twice since it began, on the way to an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strain {
    /// Writes that came too late, for somebody else had written: claims that were lost, for one.
    pub conflicts: u64,
    /// Tries that were not answered, and tried again.
    pub retries: u64,
    /// How often the connection was made anew.
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

/// Which note of a member's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelf {
    /// What it has to know after a crash.
    Memory,
    /// How it is, for others to see. It may be lost with the power.
    Pulse,
    /// What is still to be done of bringing its team back.
    Revival,
    /// On which host's files it lives, where a team is on several.
    Home,
}

/// What replacing a document comes to.
pub type Written = Result<Revision, StoreError>;

/// Who does something: the name of the seat, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(pub String);

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its bytes, as on the wire.
    pub bytes: Vec<u8>,
    /// What it was when it was read.
    pub revision: Revision,
}

/// One state of a document. Two states of one document have different revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Revision(pub u64);

/// A stream of what happens in a team.
pub struct Watch {
    /// Of a team with many members each record waits in many watches; it is there once.
    events: tokio::sync::mpsc::UnboundedReceiver<Arc<Record>>,
    /// Ends the watching when dropped.
    _source: Box<dyn Send + Sync>,
}

impl Watch {
    /// A watch fed through `events` for as long as `source` lives.
    pub fn new(
        events: tokio::sync::mpsc::UnboundedReceiver<Arc<Record>>,
        source: impl Send + Sync + 'static,
    ) -> Self {
        Self { events, _source: Box::new(source) }
    }

    /// The next thing that happens; `None` when the watch has ended.
    pub async fn next(&mut self) -> Option<Record> {
        self.next_shared().await.map(Arc::unwrap_or_clone)
    }

    /// The same, to be looked at only.
    pub async fn next_shared(&mut self) -> Option<Arc<Record>> {
        self.events.recv().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
