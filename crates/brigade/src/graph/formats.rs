//! Renders the task graph as Graphviz, Mermaid and JSON.

use std::fmt::Write as _;

use brigade_core::graph::TaskNode;
use brigade_core::text;
use brigade_wire::name::TaskId;
use serde_json::{Value, json};

use super::TaskTree;
use brigade_core::task_view::{self, TaskView};

fn label(drawing: &TaskTree<'_>, id: TaskId, node: &TaskNode) -> String {
    let state = TaskView::new(drawing.graph, id);
    let star = if drawing.is_critical(id) { " *" } else { "" };
    let ready = if drawing.is_ready(id) { " (ready)" } else { "" };
    let owner = node.owner.as_ref().map_or(String::new(), |owner| format!(" ({owner})"));
    text::one_line(&format!("{} {id}{star} {}{owner}{ready}", state.symbol(), node.subject))
}

fn edges<'d>(drawing: &'d TaskTree<'_>) -> impl Iterator<Item = (TaskId, TaskId)> + 'd {
    let edges =
        |(id, node): (TaskId, &'d TaskNode)| node.after.iter().map(move |&after| (after, id));
    drawing.graph.nodes().flat_map(edges)
}

/// Renders the graph in Graphviz's DOT language.
pub(crate) fn dot(drawing: &TaskTree<'_>) -> String {
    let mut text = String::from("digraph board {\n  rankdir=LR;\n  node [shape=box];\n");
    for (id, node) in drawing.graph.nodes() {
        let label = label(drawing, id, node).replace('\\', "\\\\").replace('"', "\\\"");
        let style = match TaskView::new(drawing.graph, id) {
            TaskView::Ready => ", color=green",
            TaskView::Kept => "",
            TaskView::InProgress => ", color=orange",
            TaskView::Blocked => ", style=dashed",
            TaskView::Done => ", color=gray, fontcolor=gray",
        };
        let wide = if drawing.is_critical(id) { ", penwidth=2" } else { "" };
        let _infallible = writeln!(text, "  {id} [label=\"{label}\"{style}{wide}];");
    }
    for (from, to) in edges(drawing) {
        let wide = if drawing.is_critical_step(from, to) { " [penwidth=2]" } else { "" };
        let _infallible = writeln!(text, "  {from} -> {to}{wide};");
    }
    text.push_str("}\n");
    text
}

/// Renders the graph as a Mermaid flowchart.
pub(crate) fn mermaid(drawing: &TaskTree<'_>) -> String {
    let mut text = String::from("flowchart LR\n");
    for (id, node) in drawing.graph.nodes() {
        let label = label(drawing, id, node)
            .replace('#', "#35;")
            .replace('&', "#amp;")
            .replace('"', "#quot;")
            .replace('<', "#lt;")
            .replace('>', "#gt;");
        let class = match TaskView::new(drawing.graph, id) {
            TaskView::Ready => ":::ready",
            TaskView::Kept => "",
            TaskView::InProgress => ":::progress",
            TaskView::Blocked => ":::blocked",
            TaskView::Done => ":::done",
        };
        let _infallible = writeln!(text, "  t{id}[\"{label}\"]{class}");
    }
    for (from, to) in edges(drawing) {
        let arrow = if drawing.is_critical_step(from, to) { "==>" } else { "-->" };
        let _infallible = writeln!(text, "  t{from} {arrow} t{to}");
    }
    text.push_str(
        "  classDef ready stroke:green\n  classDef progress stroke:orange\n  \
         classDef blocked stroke-dasharray:4\n  classDef done color:gray,stroke:gray\n",
    );
    text
}

/// Returns the graph as JSON.
pub(crate) fn json(drawing: &TaskTree<'_>) -> Value {
    let tasks = drawing.graph.nodes().map(|(id, node)| {
        let state = match TaskView::new(drawing.graph, id) {
            // JSON uses another name for this state than the text output.
            TaskView::Kept => "kept".to_owned(),
            state => state.label().replace(' ', "_"),
        };
        json!({
            "id": id,
            "subject": node.subject,
            "owner": node.owner,
            "status": node.status,
            "state": state,
            "after": task_view::texts(node.after.iter().copied()),
            "waits_for": task_view::texts(drawing.graph.waits_for(id)),
        })
    });
    let circles: Vec<_> =
        drawing.circles.iter().map(|circle| task_view::texts(circle.iter().copied())).collect();
    json!({
        "tasks": tasks.collect::<Vec<_>>(),
        "critical_path": task_view::texts(drawing.critical.iter().copied()),
        "circles": circles,
    })
}
