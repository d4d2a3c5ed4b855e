//! Formats the tasks of the board for tools and resources.

use brigade_core::graph::{Graph, TaskNode};
use brigade_core::text;
use brigade_wire::name::TaskId;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

/// A task in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskLine {
    id: String,
    subject: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    blocked_by: Vec<String>,
}

/// Returns the tasks that Claude Code would show, sorted by id, each with the unfinished tasks that block it.
pub(super) fn task_lines(graph: &Graph) -> Vec<TaskLine> {
    let line = |(id, node): (TaskId, &TaskNode)| TaskLine {
        id: id.to_string(),
        subject: node.subject.clone(),
        status: node.status.as_str().to_owned(),
        owner: node.owner.clone(),
        blocked_by: graph.waits_for(id).iter().map(ToString::to_string).collect(),
    };
    graph.nodes().map(line).collect()
}

/// Formats a task like a line in Claude Code's own task list.
pub(super) fn render(task: &TaskLine) -> String {
    // A subject with a line break would look like two tasks.
    let mut text = format!("#{} [{}] {}", task.id, task.status, text::one_line(&task.subject));
    if let Some(owner) = &task.owner {
        text = format!("{text} ({owner})");
    }
    if !task.blocked_by.is_empty() {
        let blockers: Vec<String> = task.blocked_by.iter().map(|id| format!("#{id}")).collect();
        text = format!("{text} [blocked by {}]", blockers.join(", "));
    }
    text
}
