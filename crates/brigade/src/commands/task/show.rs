//! `brigade task show`

use std::fmt::Write as _;

use brigade_core::board;
use brigade_core::graph::Graph;
use brigade_core::text;
use brigade_wire::name::TaskId;
use brigade_wire::task::Task;

use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, FAINT, STRONG};
use brigade_core::task_view::TaskView;

pub(crate) async fn run(context: &CliContext, id: TaskId) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let document = board::show(&seat, id).await?;
    if context.json {
        output::print_raw(&document.bytes)?;
        output::print_raw(b"\n")?;
        return Ok(exit::DONE);
    }
    let (_, graph) = board::list(&seat).await?;
    let task = Task::read(&document.bytes).map_err(CliError::failed)?;
    output::print(&render(&graph, id, &task))?;
    Ok(exit::DONE)
}

fn render(graph: &Graph, id: TaskId, task: &Task<'_>) -> String {
    let subject = text::one_line(&task.subject().unwrap_or_default());
    let head = format!("{id}  {subject}");
    let mut text = format!("{STRONG}{}{STRONG:#}\n", head.trim_end());
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _infallible = writeln!(text, "{FAINT}{name:<10}{FAINT:#} {value}");
        }
    };
    if graph.node(id).is_some() {
        let state = TaskView::new(graph, id);
        line("state", &format!("{} {}", state.symbol(), state.label()));
    } else {
        line("state", "incomplete: a required field is missing; Claude Code does not show it");
    }
    line("owner", &text::one_line(&task.owner().unwrap_or_default()));
    let numbers = |ids: &mut dyn Iterator<Item = TaskId>| {
        let with_state = |id| format!("{id} {}", TaskView::new(graph, id).symbol());
        ids.map(with_state).collect::<Vec<_>>().join(", ")
    };
    let after = graph.node(id).map(|node| node.after.clone()).unwrap_or_default();
    line("after", &numbers(&mut after.into_iter()));
    let followers = graph.nodes().filter(|(_, node)| node.after.contains(&id)).map(|(id, _)| id);
    line("blocks", &numbers(&mut followers.into_iter()));
    line("shown as", &text::one_line(&task.active_form().unwrap_or_default()));
    if let Some(description) = task.description().filter(|text| !text.is_empty()) {
        let _infallible = write!(text, "\n{}\n", text::plain(description.trim_end()));
    }
    text
}
