//! Draws the task graph as a tree for the terminal.

use std::fmt::Write as _;

use brigade_core::text;
use brigade_wire::name::TaskId;
use unicode_width::UnicodeWidthStr;

use super::TaskTree;
use crate::output::{self, FAINT, STRONG};
use brigade_core::task_view::{self, TaskView};

/// Renders the graph as a tree with a legend. Symbols repeat everything that the colours show.
pub(crate) fn text(drawing: &TaskTree<'_>, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    for &root in drawing.children(None) {
        branch(drawing, root, "", "", &mut lines);
    }
    let mut text = String::new();
    // Pad all subjects to the same width, so that the notes to their right form a column.
    let notes = lines.iter().map(|line| line.notes.width()).max().unwrap_or_default();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(notes + 4).max(24));
    let tree = lines.iter().map(TreeLine::width).max().unwrap_or_default().min(room);
    for line in &lines {
        line.render(tree, &mut text);
    }
    for circle in &drawing.circles {
        let mut path = circle.clone();
        path.extend(circle.first());
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        let _infallible = writeln!(
            text,
            "\nThese tasks wait for each other, so none can start: {}",
            path.join(" → ")
        );
    }
    let _infallible = writeln!(text, "\n{FAINT}{}{FAINT:#}", legend(drawing));
    text
}

fn legend(drawing: &TaskTree<'_>) -> String {
    let states = [TaskView::Ready, TaskView::InProgress, TaskView::Done, TaskView::Blocked];
    let mut parts: Vec<String> = states
        .iter()
        .map(|state| {
            let word = if *state == TaskView::Ready { "not started" } else { state.label() };
            format!("{} {word}", state.symbol())
        })
        .collect();
    if drawing.critical.len() > 1 {
        parts.push(format!("* longest chain, {} tasks", drawing.critical.len()));
    }
    parts.join("   ")
}

/// The line of one task in the tree.
struct TreeLine {
    critical: bool,
    /// The tree characters before the task.
    stem: String,
    state: TaskView,
    id: TaskId,
    subject: String,
    notes: String,
}

impl TreeLine {
    fn head(&self) -> String {
        format!("{} {}  ", self.state.symbol(), self.id)
    }

    /// Returns the width of the line up to the end of the subject.
    fn width(&self) -> usize {
        self.stem.width() + self.head().width() + self.subject.width()
    }

    fn render(&self, tree: usize, text: &mut String) {
        let mark = if self.critical { "* " } else { "  " };
        let strong = if self.critical { STRONG } else { anstyle::Style::new() };
        // Show at least the start of the subject, even if a deeply nested line then exceeds the width.
        let room = tree.saturating_sub(self.stem.width() + self.head().width());
        let room = room.max(self.subject.width().min(8));
        let subject = text::cut(&self.subject, room);
        let (stem, style, state, id) =
            (&self.stem, output::task_style(self.state), self.state, self.id);
        let _infallible = write!(
            text,
            "{strong}{mark}{strong:#}{FAINT}{stem}{FAINT:#}{style}{}{style:#} {strong}{id}  \
             {subject}{strong:#}",
            state.symbol()
        );
        if !self.notes.is_empty() {
            let gap = room.saturating_sub(subject.width()) + 2;
            let _infallible = write!(text, "{:gap$}{FAINT}{}{FAINT:#}", "", self.notes);
        }
        text.push('\n');
    }
}

/// Adds the line of a task to `lines`, followed by the lines of its children.
fn branch(drawing: &TaskTree<'_>, id: TaskId, stem: &str, below: &str, lines: &mut Vec<TreeLine>) {
    let Some(node) = drawing.graph.node(id) else { return };
    lines.push(TreeLine {
        critical: drawing.is_critical(id),
        stem: stem.to_owned(),
        state: TaskView::new(drawing.graph, id),
        id,
        subject: text::one_line(&node.subject),
        notes: notes(drawing, id),
    });
    let mut children = drawing.children(Some(id)).iter().copied().peekable();
    while let Some(child) = children.next() {
        let (branch_stem, branch_below) =
            if children.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        let stem = format!("{below}{branch_stem}");
        branch(drawing, child, &stem, &format!("{below}{branch_below}"), lines);
    }
}

fn notes(drawing: &TaskTree<'_>, id: TaskId) -> String {
    let Some(node) = drawing.graph.node(id) else { return String::new() };
    let mut notes = Vec::new();
    if drawing.is_ready(id) {
        notes.push("ready".to_owned());
    }
    notes.extend(node.owner.as_deref().map(text::one_line));
    let parent = drawing.parents.get(&id);
    let others: Vec<TaskId> = node.after.iter().copied().filter(|b| Some(b) != parent).collect();
    if !others.is_empty() {
        let also = if parent.is_some() { "also after" } else { "after" };
        notes.push(format!("{also} {}", task_view::join(others)));
    }
    if drawing.is_in_circle(id) {
        notes.push("in a cycle".to_owned());
    }
    notes.join(", ")
}
