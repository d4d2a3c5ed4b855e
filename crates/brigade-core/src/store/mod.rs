//! Where a team lives.
//!
//! A [`Store`] holds the documents of the wire as bytes, and decides what is atomic: a document is
//! replaced by compare-and-set on its [`Revision`], a message is acknowledged when it is durable, a
//! task gets a number nobody had before. What the documents mean is decided above, in
//! [`mail`](crate::mail), [`board`](crate::board) and [`roster`](crate::roster), once for all stores.

pub mod file;
pub mod memory;
mod question;

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::Damage;
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::message::{Message, NewMessage, Stamp};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::question::Question;
use crate::event::{Event, MessageKey, Record};

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

    /// What happens in the team from now on.
    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError>;
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

/// A message to be sent, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Its id, a UUID: sending it twice is sending it once.
    pub msg_id: String,
    /// The sender's name.
    pub from: String,
    /// What it says.
    pub text: String,
    /// A few words for people.
    pub summary: Option<String>,
    /// When, as on the wire.
    pub timestamp: String,
    /// The sender's colour.
    #[serde(default, with = "color")]
    pub color: Option<Color>,
    /// `Some(1)` for the form of the new generation.
    #[serde(default, rename = "msgV")]
    pub msg_v: Option<u8>,
    /// The lead's signature.
    #[serde(default)]
    pub lead_sig: Option<String>,
    /// When the team it is meant for was created, as its `config.json` says.
    #[serde(skip)]
    pub team_created: u64,
}

impl Outgoing {
    /// The message as an entry of an inbox.
    pub fn as_new(&self) -> NewMessage<'_> {
        let stamp = match self.msg_v {
            Some(_) => Stamp::New { msg_id: &self.msg_id, lead_sig: self.lead_sig.as_deref() },
            None => Stamp::Old { msg_id: Some(&self.msg_id) },
        };
        NewMessage {
            from: &self.from,
            text: &self.text,
            summary: self.summary.as_deref(),
            timestamp: &self.timestamp,
            color: self.color,
            read: false,
            stamp,
        }
    }

    /// The words of a message by their author, to be sent once more under this id. Nothing is signed.
    pub(crate) fn again(message: &Message<'_>, msg_id: String) -> Self {
        Self {
            msg_id,
            from: message.from().into_owned(),
            text: message.text().into_owned(),
            summary: message.summary().map(Cow::into_owned),
            timestamp: message.timestamp().into_owned(),
            color: message.color().and_then(|color| color.parse().ok()),
            msg_v: message.field("msgV").map(|_| 1),
            lead_sig: None,
            team_created: 0,
        }
    }

    /// Which message of the mailbox it becomes.
    pub fn key(&self) -> MessageKey {
        MessageKey::of_id(&self.msg_id)
    }

    /// The form for a team of this generation.
    pub fn msg_v(generation: Generation) -> Option<u8> {
        (generation == Generation::New).then_some(1)
    }
}

/// A colour in the journal: one we do not know is none.
mod color {
    use brigade_wire::color::Color;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        color: &Option<Color>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        color.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Color>, D::Error> {
        let word = Option::<String>::deserialize(deserializer)?;
        Ok(word.and_then(|word| word.parse().ok()))
    }
}

/// What a sender gets back: the message is safe.
#[derive(Debug)]
pub struct Receipt {
    /// The message's id.
    pub msg_id: String,
    /// Why it does not stand in the inbox yet, if it does not. It will, without the sender: whoever
    /// next does anything with this inbox puts it there.
    pub waits: Option<StoreError>,
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Which one.
    pub key: MessageKey,
    /// The entry, byte for byte.
    pub json: Vec<u8>,
}

/// A step in the life of a message after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its reader has taken it.
    Read,
    /// Its reader's model has seen it. It counts as read, too.
    Shown,
}

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
    pub(crate) async fn next_shared(&mut self) -> Option<Arc<Record>> {
        self.events.recv().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// What stands in the way of a write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// Another program holds the lock.
    #[error("another program holds the lock {path} (for {held_secs} s so far)")]
    Held {
        /// The lock.
        path: PathBuf,
        /// How long it has been there by its own time.
        held_secs: i64,
    },
    /// A file stands where the lock should be. Nobody can take such a lock.
    #[error("{path} is a file, where a lock is a directory; remove it, for no program can")]
    NotALock {
        /// The file.
        path: PathBuf,
    },
    /// Something was put into the lock. Nobody can give such a lock back, or take it.
    #[error("{path} is a lock with something in it; empty it, for no program can")]
    Filled {
        /// The lock.
        path: PathBuf,
    },
    /// The file cannot be read as it is; somebody may be writing it, in place and without a lock.
    #[error("{path} is torn, and may still be being written")]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// Another brigade process is at work on the same mailbox, or stopped in the middle of it.
    #[error("another brigade process is busy with {path}; it may be stopped (see fuser)")]
    Busy {
        /// What it holds.
        path: PathBuf,
    },
}

/// Why a thing in the file system is not touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It could lead anywhere.
    #[error("it is a symbolic link")]
    Symlink,
    /// Somebody else can change it.
    #[error("it belongs to another user")]
    ForeignOwner,
    /// A pipe, a device, a directory.
    #[error("it is not a regular file")]
    NotAFile,
    /// It would be read into memory.
    #[error("it is larger than 256 MiB")]
    TooBig,
}

/// Why a store did not do what it was asked. Nothing was changed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no such team.
    #[error("no team {team}")]
    NoTeam {
        /// The name asked for.
        team: TeamName,
    },
    /// There is one already.
    #[error("there is a team {team} already")]
    TeamExists {
        /// The name asked for.
        team: TeamName,
    },
    /// There is no such task.
    #[error("no task {id}")]
    NoTask {
        /// The number asked for.
        id: TaskId,
    },
    /// The document is not at the revision it was asked to be replaced at.
    #[error("it was changed by somebody else meanwhile")]
    Conflict,
    /// The document cannot be read.
    #[error("{place} cannot be read: {damage}")]
    Damaged {
        /// Which document.
        place: String,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Somebody is at it, and did not finish in time.
    #[error(transparent)]
    Locked(#[from] Obstacle),
    /// The file system holds something that is not touched.
    #[error("{path} is not touched: {why}")]
    Refused {
        /// What.
        path: PathBuf,
        /// Why.
        why: Refusal,
    },
    /// The operating system said no.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}
