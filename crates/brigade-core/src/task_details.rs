//! The labels and the priority of a task, and whether it was cancelled. They are in the task's `metadata`, which Claude
//! Code preserves.
//!
//! ```
//! use brigade_core::task_details::{Priority, TaskDetails};
//! use brigade_core::wire::task::Task;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let task = Task::read(br#"{"metadata": {"labels": ["docs"], "priority": "high"}}"#)?;
//! let details = TaskDetails::from_task(&task);
//! assert_eq!((details.labels, details.priority), (vec!["docs".to_owned()], Priority::High));
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::str::FromStr;

use brigade_wire::task::{Status, Task};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::task_view::TaskView;

/// The metadata key of the labels: an array of texts.
pub const LABELS_KEY: &str = "labels";
/// The metadata key of the priority: `high`, `normal` or `low`.
pub const PRIORITY_KEY: &str = "priority";
/// The metadata key of a cancelled task: the reason, or `true`.
pub const CANCELLED_KEY: &str = "cancelled";
/// The metadata key that identifies the file entry from which a task was added.
pub const SOURCE_KEY: &str = "source";

const MAX_LABEL_CHARS: usize = 50;

/// How urgent a task is. Tasks without a priority are normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// To be done before the others.
    High,
    /// The default.
    #[default]
    Normal,
    /// To be done after the others.
    Low,
}

impl Priority {
    /// Returns the name of the priority in the metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for text that is not a priority.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown priority {0:?}; use high, normal or low")]
pub struct InvalidPriority(String);

impl FromStr for Priority {
    type Err = InvalidPriority;

    fn from_str(text: &str) -> Result<Self, InvalidPriority> {
        let all = [Self::High, Self::Normal, Self::Low];
        let known = all.into_iter().find(|priority| priority.as_str() == text);
        known.ok_or_else(|| InvalidPriority(text.to_owned()))
    }
}

/// The error for text that cannot be a label.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a label: a label is one word of up to {MAX_LABEL_CHARS} characters, without commas"
)]
pub struct InvalidLabel(String);

/// Checks a label: one word without commas and control characters.
pub fn parse_label(text: &str) -> Result<String, InvalidLabel> {
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || c == ',' || c == ';';
    let fits = !text.is_empty() && text.chars().count() <= MAX_LABEL_CHARS;
    if fits && !text.contains(is_bad) {
        Ok(text.to_owned())
    } else {
        Err(InvalidLabel(text.to_owned()))
    }
}

/// The labels and the priority of a task, and whether it was cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDetails {
    /// The labels, in the order in which they were added.
    pub labels: Vec<String>,
    /// The priority.
    pub priority: Priority,
    /// The reason why the task was cancelled, which may be empty; `None` if it was not cancelled.
    pub cancelled: Option<String>,
    /// The file entry from which the task was added.
    pub source: Option<String>,
}

impl TaskDetails {
    /// Reads the details of a task. Ignores values of other programs that have another form.
    pub fn from_task(task: &Task<'_>) -> Self {
        let metadata = task.field("metadata").and_then(|json| serde_json::from_str(json).ok());
        let metadata: Map<String, Value> = metadata.unwrap_or_default();
        let text = |key: &str| metadata.get(key).and_then(Value::as_str);
        let labels = metadata.get(LABELS_KEY).and_then(Value::as_array);
        let labels = labels.into_iter().flatten().filter_map(Value::as_str);
        let cancelled = match metadata.get(CANCELLED_KEY) {
            Some(Value::String(reason)) => Some(reason.clone()),
            Some(Value::Bool(true)) => Some(String::new()),
            _ => None,
        };
        Self {
            labels: labels.map(str::to_owned).collect(),
            priority: text(PRIORITY_KEY).and_then(|text| text.parse().ok()).unwrap_or_default(),
            // Another program may have opened the task again without removing the key.
            cancelled: cancelled.filter(|_| task.status() == Some(Status::Completed)),
            source: text(SOURCE_KEY).map(str::to_owned),
        }
    }

    /// Returns a word for the state of the task. `state` is its state in the graph.
    pub fn state_label(&self, state: TaskView) -> &'static str {
        if self.cancelled.is_some() { "cancelled" } else { state.label() }
    }

    /// Returns the metadata of a new task with these labels and this priority.
    pub fn to_metadata(&self) -> Vec<(String, Value)> {
        let mut metadata = Vec::new();
        if !self.labels.is_empty() {
            metadata.push((LABELS_KEY.to_owned(), Value::from(self.labels.clone())));
        }
        if self.priority != Priority::Normal {
            metadata.push((PRIORITY_KEY.to_owned(), self.priority.as_str().into()));
        }
        if let Some(source) = &self.source {
            metadata.push((SOURCE_KEY.to_owned(), source.as_str().into()));
        }
        metadata
    }
}
