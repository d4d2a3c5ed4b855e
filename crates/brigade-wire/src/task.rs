//! `tasks/<team>/<id>.json`: one task of the board.
//!
//! ```
//! use brigade_wire::task::{Status, Task, TaskChange};
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let task = Task::read(br#"{"id": "7", "status": "pending", "theirs": 1.50e3}"#)?;
//! let done = TaskChange { status: Some(Status::Completed), ..TaskChange::default() };
//! assert_eq!(&*task.with(&done), br#"{"id": "7", "status": "completed", "theirs": 1.50e3}"#);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::change::Change;
use crate::document::{Damage, Document, Fields, Object};
use crate::layout::pretty;
use crate::name::TaskId;
use crate::patch::{ObjectEdit, Ordered, Patch};

/// How far a task is. `deleted` is no status on disk: the file goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Nobody has begun.
    Pending,
    /// Its owner works on it.
    InProgress,
    /// Done.
    Completed,
}

impl Status {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A word that is no status Claude Code knows; it does not show such a task.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a task status; use pending, in_progress or completed")]
pub struct NotAStatus;

impl FromStr for Status {
    type Err = NotAStatus;

    fn from_str(word: &str) -> Result<Self, NotAStatus> {
        let all = [Self::Pending, Self::InProgress, Self::Completed];
        all.into_iter().find(|status| status.as_str() == word).ok_or(NotAStatus)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A task, as a view over the bytes of its file.
#[derive(Debug)]
pub struct Task<'a> {
    document: Document<'a>,
    object: Object,
}

impl<'a> Task<'a> {
    /// Reads a task. Any JSON object is one; [`Task::is_visible`] says whether Claude Code agrees.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = Document::new(bytes);
        let object = document.root_object("a task object")?;
        Ok(Self { document, object })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// The id inside the file, as written. Not every id on disk is a [`TaskId`].
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("id")
    }

    /// What is to be done, in a line.
    pub fn subject(&self) -> Option<Cow<'_, str>> {
        self.fields().string("subject")
    }

    /// What is to be done, in full.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.fields().string("description")
    }

    /// What is shown while it is being done.
    pub fn active_form(&self) -> Option<Cow<'_, str>> {
        self.fields().string("activeForm")
    }

    /// Whose it is.
    pub fn owner(&self) -> Option<Cow<'_, str>> {
        self.fields().string("owner")
    }

    /// How far it is, if it says so in a word Claude Code knows.
    pub fn status(&self) -> Option<Status> {
        self.fields().string("status")?.parse().ok()
    }

    /// The tasks that wait for this one.
    pub fn blocks(&self) -> Option<Vec<Cow<'_, str>>> {
        self.fields().strings("blocks")
    }

    /// The tasks this one waits for. Never cleared on disk: whether it still waits is a question of
    /// their status.
    pub fn blocked_by(&self) -> Option<Vec<Cow<'_, str>>> {
        self.fields().strings("blockedBy")
    }

    /// The JSON of any field as it stands, `metadata` for one.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().json(key)
    }

    /// Whether Claude Code shows this task: it ignores one that lacks a field it needs.
    pub fn is_visible(&self) -> bool {
        self.id().is_some()
            && self.subject().is_some()
            && self.description().is_some()
            && self.status().is_some()
            && self.blocks().is_some()
            && self.blocked_by().is_some()
    }

    /// The file with the changes made, and nothing else changed; borrowed if there is nothing to
    /// change.
    pub fn with(&self, change: &TaskChange<'_>) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set_if("subject", change.subject.as_ref());
        edit.set_if("description", change.description.as_ref());
        change.active_form.record(&mut edit, "activeForm");
        change.owner.record(&mut edit, "owner");
        edit.set_if("status", change.status.as_ref());
        edit.set_if("blocks", change.blocks.as_ref());
        edit.set_if("blockedBy", change.blocked_by.as_ref());
        let metadata = self.document.get(&self.object, "metadata");
        let metadata = metadata.and_then(|span| self.document.object(span));
        match &metadata {
            Some(object) => {
                let mut inner = ObjectEdit::new(&self.document, object);
                for (key, value) in change.metadata {
                    match value {
                        Some(value) => inner.set(key, value),
                        None => inner.remove(key),
                    }
                }
                inner.finish(&mut patch);
            }
            None => {
                let set =
                    Ordered::new(change.metadata.iter().map(|(k, v)| (k.as_str(), v.as_ref())));
                if !set.is_empty() {
                    edit.set("metadata", &set);
                }
            }
        }
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    /// The file with another number in it, and nothing else changed.
    pub fn numbered(&self, id: TaskId) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set("id", &id);
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    fn fields(&self) -> Fields<'_> {
        Fields { document: &self.document, object: &self.object }
    }
}

/// What to change in a task. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TaskChange<'c> {
    /// What is to be done, in a line.
    pub subject: Option<&'c str>,
    /// What is to be done, in full.
    pub description: Option<&'c str>,
    /// What is shown while it is being done.
    pub active_form: Change<&'c str>,
    /// Whose it is.
    pub owner: Change<&'c str>,
    /// How far it is.
    pub status: Option<Status>,
    /// The tasks that wait for this one, all of them. Text, for foreign ids stay as they are.
    pub blocks: Option<Vec<Cow<'c, str>>>,
    /// The tasks this one waits for, all of them.
    pub blocked_by: Option<Vec<Cow<'c, str>>>,
    /// Keys to set, or with `None` to take out, the last word on a key counting; others stay. The
    /// only place in a task where Claude Code keeps what it does not know.
    pub metadata: &'c [(String, Option<Value>)],
}

/// A task to be written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTask<'t> {
    /// Its number.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub subject: &'t str,
    /// What is to be done, in full.
    pub description: &'t str,
    /// What is shown while it is being done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<&'t str>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<&'t str>,
    /// How far it is.
    pub status: Status,
    /// The tasks that wait for this one.
    pub blocks: &'t [TaskId],
    /// The tasks this one waits for.
    pub blocked_by: &'t [TaskId],
    /// Data of our own.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "metadata")]
    pub metadata: &'t [(String, Value)],
}

impl NewTask<'_> {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        pretty(self, "  ").into_bytes()
    }
}

fn metadata<S: Serializer>(pairs: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    Ordered::new(pairs.iter().map(|(key, value)| (key.as_str(), Some(value)))).serialize(serializer)
}
