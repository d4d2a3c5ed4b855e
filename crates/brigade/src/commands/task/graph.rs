//! `brigade task graph`

use brigade_core::board;

use crate::cli::GraphFormat;
use crate::context::CliContext;
use crate::error::CliError;
use crate::graph::{self, TaskTree};
use crate::{exit, output};

pub(crate) async fn run(context: &CliContext, format: GraphFormat) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let (_, graph) = board::list(&seat).await?;
    let drawing = TaskTree::new(&graph);
    let empty = graph.nodes().next().is_none();
    match format {
        _ if context.json => output::print_json(&graph::json(&drawing))?,
        GraphFormat::Text if empty => output::note("the board is empty"),
        GraphFormat::Text => output::print(&graph::text(&drawing, output::width()))?,
        GraphFormat::Dot => output::print_raw(graph::dot(&drawing).as_bytes())?,
        GraphFormat::Svg => output::print_raw(graph::svg(&drawing).as_bytes())?,
        GraphFormat::Mermaid => output::print_raw(graph::mermaid(&drawing).as_bytes())?,
    }
    Ok(if empty { exit::NOTHING } else { exit::DONE })
}
