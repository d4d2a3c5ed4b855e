//! `brigade task list`

use brigade_core::board;
use brigade_core::graph::TaskState;

use crate::cli::TaskListArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, Cell, FAINT, STRONG, Table};
use brigade_core::task_view::{self, TaskView};

pub(crate) async fn run(context: &CliContext, which: &TaskListArgs) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let (documents, graph) = board::list(&seat).await?;
    let hidden = documents.iter().filter(|(id, _)| graph.node(*id).is_none());
    let hidden = task_view::join(hidden.map(|(id, _)| *id));
    if !hidden.is_empty() {
        output::note(&format!("tasks not shown because their files are incomplete: {hidden}"));
    }
    let wanted = |id| {
        graph.node(id).is_some() && (!which.ready || graph.state(id) == Some(TaskState::Ready))
    };
    let shown: Vec<_> = documents.iter().filter(|(id, _)| wanted(*id)).collect();
    if context.json {
        output::print_array(shown.iter().map(|(_, document)| document.bytes.as_slice()))?;
    } else if shown.is_empty() {
        let ready = if which.ready { "no task is ready" } else { "the board is empty" };
        output::note(ready);
    } else {
        let mut table = Table::new(&["ID", "STATE", "OWNER", "SUBJECT"]);
        for &&(id, _) in &shown {
            let Some(node) = graph.node(id) else { continue };
            let state = TaskView::new(&graph, id);
            let state_text = match state {
                TaskView::Blocked => {
                    format!("{} after {}", state.symbol(), task_view::join(graph.waits_for(id)))
                }
                state => format!("{} {}", state.symbol(), state.label()),
            };
            let subject = if state == TaskView::Done { FAINT } else { anstyle::Style::new() };
            table.row([
                Cell::new(STRONG, &id.to_string()),
                Cell::new(output::task_style(state), &state_text),
                node.owner.as_deref().unwrap_or("-").into(),
                Cell::new(subject, &node.subject),
            ]);
        }
        output::print(&table.render("", output::width()))?;
    }
    Ok(if shown.is_empty() { exit::NOTHING } else { exit::DONE })
}
