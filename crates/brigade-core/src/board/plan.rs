//! Input of board operations: a new task, and changes to a task.

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use serde_json::Value;

/// Largest size of a task in bytes. Listing the board reads every task, and assigning a task sends it in a message.
pub const MAX_TASK_BYTES: usize = 1 << 18;

/// A new task.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// One line that says what to do.
    pub subject: String,
    /// Full description.
    pub description: String,
    /// Text shown while the task is in progress.
    pub active_form: Option<String>,
    /// The tasks it depends on.
    pub blocked_by: Vec<TaskId>,
    /// Data the caller attaches to the task.
    pub metadata: Vec<(String, Value)>,
}

impl TaskPlan {
    /// A task with this subject and nothing else.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        let data = |(key, value): &(String, Value)| key.len() + value.to_string().len();
        let data: usize = self.metadata.iter().map(data).sum();
        let text = self.subject.len() + self.description.len();
        text + self.active_form.as_ref().map_or(0, String::len) + data
    }
}

/// Changes to a task. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// One line that says what to do.
    pub subject: Option<String>,
    /// Full description.
    pub description: Option<String>,
    /// Text shown while the task is in progress.
    pub active_form: Change<String>,
    /// The new owner.
    pub owner: Change<MemberName>,
    /// The new status.
    pub status: Option<Status>,
    /// Tasks to make dependent on this one.
    pub add_blocks: Vec<TaskId>,
    /// Tasks to make this one depend on.
    pub add_blocked_by: Vec<TaskId>,
    /// Keys to set, or with `None` to remove.
    pub metadata: Vec<(String, Option<Value>)>,
}

impl Update {
    /// Whether it adds text or data to the task.
    pub(super) fn adds_text(&self) -> bool {
        let text = self.subject.is_some() || self.description.is_some();
        let form = matches!(self.active_form, Change::Set(_));
        text || form || self.metadata.iter().any(|(_, value)| value.is_some())
    }
}
