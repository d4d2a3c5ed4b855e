//! `tasks/<team>/<id>.json`: one task on the board.
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
use crate::document::{Damage, JsonDocument, Object, ObjectFields};
use crate::layout::pretty;
use crate::name::TaskId;
use crate::patch::{ObjectEdit, Ordered, Patch};

/// The status of a task. There is no status `deleted`, because deleting a task removes its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The task is not started.
    Pending,
    /// The task's owner is working on it.
    InProgress,
    /// The task is completed.
    Completed,
}

impl Status {
    /// Returns the name of the status in Claude Code's files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// The error for text that is not a status. Claude Code does not show a task with an unknown status.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a task status; use pending, in_progress or completed")]
pub struct InvalidTaskStatus;

impl FromStr for Status {
    type Err = InvalidTaskStatus;

    fn from_str(text: &str) -> Result<Self, InvalidTaskStatus> {
        let all = [Self::Pending, Self::InProgress, Self::Completed];
        all.into_iter().find(|status| status.as_str() == text).ok_or(InvalidTaskStatus)
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

/// A view of a task file.
#[derive(Debug)]
pub struct Task<'a> {
    document: JsonDocument<'a>,
    object: Object,
}

impl<'a> Task<'a> {
    /// Reads a task. Accepts any JSON object, even one that Claude Code does not show (see [`Task::is_visible`]).
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = JsonDocument::new(bytes);
        let object = document.root_object("a task object")?;
        Ok(Self { document, object })
    }

    /// Returns the bytes from which the task was read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Returns the id that stands in the file. Not every id on disk is a valid [`TaskId`].
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("id")
    }

    /// Returns the subject: a one-line description.
    pub fn subject(&self) -> Option<Cow<'_, str>> {
        self.fields().string("subject")
    }

    /// Returns the full description.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.fields().string("description")
    }

    /// Returns the text to display while the task is in progress.
    pub fn active_form(&self) -> Option<Cow<'_, str>> {
        self.fields().string("activeForm")
    }

    /// Returns the owner.
    pub fn owner(&self) -> Option<Cow<'_, str>> {
        self.fields().string("owner")
    }

    /// Returns the status, if it is one that Claude Code knows.
    pub fn status(&self) -> Option<Status> {
        self.fields().string("status")?.parse().ok()
    }

    /// Returns the ids of the tasks that wait for this task.
    pub fn blocks(&self) -> Option<Vec<Cow<'_, str>>> {
        self.fields().strings("blocks")
    }

    /// Returns the ids of the tasks that this task waits for. Completed tasks stay in the list, so whether this
    /// task still waits depends on the status of those tasks.
    pub fn blocked_by(&self) -> Option<Vec<Cow<'_, str>>> {
        self.fields().strings("blockedBy")
    }

    /// Returns the JSON of the named field, such as `metadata`, exactly as it stands in the file.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().json(key)
    }

    /// Returns whether Claude Code shows this task. Claude Code ignores a task that lacks a required field.
    pub fn is_visible(&self) -> bool {
        self.id().is_some()
            && self.subject().is_some()
            && self.description().is_some()
            && self.status().is_some()
            && self.blocks().is_some()
            && self.blocked_by().is_some()
    }

    /// Returns the file with the changes applied and everything else unchanged. Returns the borrowed original if
    /// nothing changes.
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

    /// Returns the file with another task id and everything else unchanged.
    pub fn numbered(&self, id: TaskId) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set("id", &id);
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    fn fields(&self) -> ObjectFields<'_> {
        ObjectFields { document: &self.document, object: &self.object }
    }
}

/// Changes to a task. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TaskChange<'c> {
    /// The new subject: a one-line description.
    pub subject: Option<&'c str>,
    /// The new description.
    pub description: Option<&'c str>,
    /// The new text to display while the task is in progress.
    pub active_form: Change<&'c str>,
    /// The new owner.
    pub owner: Change<&'c str>,
    /// The new status.
    pub status: Option<Status>,
    /// The ids of all tasks that wait for this task, as text, so that ids from other tools are preserved.
    pub blocks: Option<Vec<Cow<'c, str>>>,
    /// The ids of all tasks that this task waits for.
    pub blocked_by: Option<Vec<Cow<'c, str>>>,
    /// The metadata keys to set, or to remove if the value is `None`. If a key occurs several times, the last
    /// value wins. Other keys stay. Claude Code preserves unknown data only in `metadata`.
    pub metadata: &'c [(String, Option<Value>)],
}

/// A new task to write to a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTask<'t> {
    /// The task's number.
    pub id: TaskId,
    /// The subject: a one-line description.
    pub subject: &'t str,
    /// The full description.
    pub description: &'t str,
    /// The text to display while the task is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<&'t str>,
    /// The task's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<&'t str>,
    /// The task's status.
    pub status: Status,
    /// The tasks that wait for this task.
    pub blocks: &'t [TaskId],
    /// The tasks that this task waits for.
    pub blocked_by: &'t [TaskId],
    /// Additional data that Claude Code preserves.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "metadata")]
    pub metadata: &'t [(String, Value)],
}

impl NewTask<'_> {
    /// Returns the content of the task file.
    pub fn to_bytes(&self) -> Vec<u8> {
        pretty(self, "  ").into_bytes()
    }
}

fn metadata<S: Serializer>(pairs: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    Ordered::new(pairs.iter().map(|(key, value)| (key.as_str(), Some(value)))).serialize(serializer)
}
