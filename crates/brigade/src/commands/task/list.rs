//! `brigade task list`

use brigade_core::board;
use brigade_core::graph::{Graph, TaskState};
use brigade_core::task_details::{Priority, TaskDetails};
use brigade_core::task_view::{self, TaskView};
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};

use crate::cli::{StateWord, TaskListArgs};
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, Cell, FAINT, STRONG, Table};

pub(crate) async fn run(context: &CliContext, which: &TaskListArgs) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let (documents, graph) = board::list(&seat).await?;
    let hidden = documents.iter().filter(|(id, _)| graph.node(*id).is_none());
    let hidden = task_view::join(hidden.map(|(id, _)| *id));
    if !hidden.is_empty() {
        output::note(&format!("tasks not shown because their files are incomplete: {hidden}"));
    }
    let mut shown = Vec::new();
    for (id, document) in &documents {
        let task = Task::read(&document.bytes);
        let details = task.as_ref().map(TaskDetails::from_task).unwrap_or_default();
        if is_wanted(&graph, *id, &details, which) {
            shown.push((*id, document, details));
        }
    }
    if context.json {
        output::print_array(shown.iter().map(|(_, document, _)| document.bytes.as_slice()))?;
    } else if shown.is_empty() {
        output::note(nothing(which));
    } else {
        let rows: Vec<(TaskId, &TaskDetails)> =
            shown.iter().map(|(id, _, details)| (*id, details)).collect();
        output::print(&table(&graph, &rows).render("", output::width()))?;
    }
    Ok(if shown.is_empty() { exit::NOTHING } else { exit::DONE })
}

fn nothing(which: &TaskListArgs) -> &'static str {
    let filters = which.owner.is_some()
        || which.no_owner
        || which.status.is_some()
        || !which.label.is_empty();
    match (which.ready, filters) {
        (_, true) => "no task matches",
        (true, false) => "no task is ready",
        (false, false) => "the board is empty",
    }
}

fn is_wanted(graph: &Graph, id: TaskId, details: &TaskDetails, which: &TaskListArgs) -> bool {
    let Some(node) = graph.node(id) else { return false };
    let state = TaskView::new(graph, id);
    let is_done = node.status == Status::Completed;
    let has_state = which.status.is_none_or(|wanted| match wanted {
        StateWord::Open => !is_done,
        StateWord::Pending => node.status == Status::Pending,
        StateWord::Ready => state == TaskView::Ready,
        StateWord::Assigned => state == TaskView::Kept,
        StateWord::Blocked => state == TaskView::Blocked,
        StateWord::InProgress => state == TaskView::InProgress,
        StateWord::Completed => is_done && details.cancelled.is_none(),
        StateWord::Cancelled => details.cancelled.is_some(),
    });
    let owner = node.owner.as_deref();
    has_state
        && (!which.ready || graph.state(id) == Some(TaskState::Ready))
        && which.owner.as_ref().is_none_or(|name| owner == Some(name.as_str()))
        && (!which.no_owner || owner.is_none())
        && which.label.iter().all(|label| details.labels.contains(label))
}

/// Returns the table. It has columns for priorities and labels only if a task has them.
fn table(graph: &Graph, tasks: &[(TaskId, &TaskDetails)]) -> Table {
    let has_priorities = tasks.iter().any(|(_, details)| details.priority != Priority::Normal);
    let has_labels = tasks.iter().any(|(_, details)| !details.labels.is_empty());
    let mut headings = vec!["ID", "STATE", "OWNER"];
    headings.extend(has_priorities.then_some("PRIORITY"));
    headings.extend(has_labels.then_some("LABELS"));
    headings.push("SUBJECT");
    let mut table = Table::new(&headings);
    for &(id, details) in tasks {
        let Some(node) = graph.node(id) else { continue };
        let state = TaskView::new(graph, id);
        let state_text = match state {
            TaskView::Blocked => {
                format!("{} after {}", state.symbol(), task_view::join(graph.waits_for(id)))
            }
            state => format!("{} {}", state.symbol(), details.state_label(state)),
        };
        let subject = if state == TaskView::Done { FAINT } else { anstyle::Style::new() };
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let mut row: Vec<Cell> = vec![
            Cell::new(STRONG, &id.to_string()),
            Cell::new(output::task_style(state), &state_text),
            node.owner.as_deref().unwrap_or("-").into(),
        ];
        if has_priorities {
            row.push(details.priority.as_str().into());
        }
        if has_labels {
            row.push(or_dash(&details.labels.join(", ")).into());
        }
        row.push(Cell::new(subject, &node.subject));
        table.row(row);
    }
    table
}
