//! The input of board operations: a new task, and changes to a task.

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task};
use serde_json::Value;

use crate::task_details::{CANCELLED_KEY, LABELS_KEY, PRIORITY_KEY, Priority, TaskDetails};

/// Maximum task size in bytes. Tasks must be small: a listing reads every task, and an assignment sends the task.
pub const MAX_TASK_BYTES: usize = 1 << 18;

/// A new task.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// One line that says what to do.
    pub subject: String,
    /// The full description of the task.
    pub description: String,
    /// The text to show while the task is in progress.
    pub active_form: Option<String>,
    /// The tasks that the new task depends on.
    pub blocked_by: Vec<TaskId>,
    /// Data that the caller attaches to the task.
    pub metadata: Vec<(String, Value)>,
}

impl TaskPlan {
    /// Creates a plan that has only a subject.
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
    /// The new subject: one line that says what to do.
    pub subject: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// The new text to show while the task is in progress.
    pub active_form: Change<String>,
    /// The new owner.
    pub owner: Change<MemberName>,
    /// The new status.
    pub status: Option<Status>,
    /// The tasks that the update makes dependent on this task.
    pub add_blocks: Vec<TaskId>,
    /// The tasks that the update adds to this task's dependencies.
    pub add_blocked_by: Vec<TaskId>,
    /// The metadata keys to change, with their new values. The value `None` removes a key.
    pub metadata: Vec<(String, Option<Value>)>,
    /// The tasks that the update removes from this task's dependencies.
    pub remove_blocked_by: Vec<TaskId>,
    /// The labels that the update adds.
    pub add_labels: Vec<String>,
    /// The labels that the update removes.
    pub remove_labels: Vec<String>,
    /// The new priority.
    pub priority: Option<Priority>,
}

impl Update {
    /// Returns whether the update adds text or metadata to the task.
    pub(super) fn adds_text(&self) -> bool {
        let text = self.subject.is_some() || self.description.is_some();
        let form = matches!(self.active_form, Change::Set(_));
        let data = self.metadata.iter().any(|(_, value)| value.is_some());
        text || form || data || !self.add_labels.is_empty() || self.priority.is_some()
    }

    /// Returns whether the update adds or removes dependencies.
    pub(super) fn changes_dependencies(&self) -> bool {
        let lists = [&self.add_blocks, &self.add_blocked_by, &self.remove_blocked_by];
        lists.into_iter().any(|list| !list.is_empty())
    }

    /// Returns the metadata keys that this update of the task changes.
    pub(super) fn metadata_changes(&self, task: &Task<'_>) -> Vec<(String, Option<Value>)> {
        let mut changes = self.metadata.clone();
        let details = TaskDetails::from_task(task);
        if !self.add_labels.is_empty() || !self.remove_labels.is_empty() {
            let mut labels = details.labels;
            for label in &self.add_labels {
                if !labels.contains(label) {
                    labels.push(label.clone());
                }
            }
            labels.retain(|label| !self.remove_labels.contains(label));
            let labels = (!labels.is_empty()).then(|| Value::from(labels));
            changes.push((LABELS_KEY.to_owned(), labels));
        }
        if let Some(priority) = self.priority {
            let set = (priority != Priority::Normal).then(|| Value::from(priority.as_str()));
            changes.push((PRIORITY_KEY.to_owned(), set));
        }
        if self.status.is_some() && details.cancelled.is_some() {
            changes.push((CANCELLED_KEY.to_owned(), None));
        }
        changes
    }
}
