//! What is asked of the board: a task to be added, and what to change in one.

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use serde_json::Value;

/// The largest task, in bytes. Whoever lists the board reads every task of it, and whoever is given one
/// is sent it in a message.
pub const MAX_TASK: usize = 1 << 18;

/// A task to be added.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// What is to be done, in a line.
    pub subject: String,
    /// What is to be done, in full.
    pub description: String,
    /// What is shown while it is being done.
    pub active_form: Option<String>,
    /// The tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// Data of the caller's.
    pub metadata: Vec<(String, Value)>,
}

impl TaskPlan {
    /// A task with this subject, and nothing more.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        let data = |(key, value): &(String, Value)| key.len() + value.to_string().len();
        let data: usize = self.metadata.iter().map(data).sum();
        let words = self.subject.len() + self.description.len();
        words + self.active_form.as_ref().map_or(0, String::len) + data
    }
}

/// What to change in a task. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// What is to be done, in a line.
    pub subject: Option<String>,
    /// What is to be done, in full.
    pub description: Option<String>,
    /// What is shown while it is being done.
    pub active_form: Change<String>,
    /// Whose it is.
    pub owner: Change<MemberName>,
    /// How far it is.
    pub status: Option<Status>,
    /// Tasks that shall wait for this one.
    pub add_blocks: Vec<TaskId>,
    /// Tasks this one shall wait for.
    pub add_blocked_by: Vec<TaskId>,
    /// Keys to set, or with `None` to take out.
    pub metadata: Vec<(String, Option<Value>)>,
}

impl Update {
    /// Whether it puts words or data into the task.
    pub(super) fn says_more(&self) -> bool {
        let words = self.subject.is_some() || self.description.is_some();
        let form = matches!(self.active_form, Change::Set(_));
        words || form || self.metadata.iter().any(|(_, value)| value.is_some())
    }
}
