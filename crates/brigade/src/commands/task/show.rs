//! `brigade task show`

use std::fmt::Write as _;

use brigade_core::board;
use brigade_core::graph::Graph;
use brigade_core::task_details::{Priority, TaskDetails};
use brigade_core::task_story::{TaskMention, TaskStep, TaskTurn};
use brigade_core::task_view::TaskView;
use brigade_core::text;
use brigade_host::task_story::{self, HostTaskStory};
use brigade_wire::name::TaskId;
use brigade_wire::task::Task;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::with_last_task;
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, FAINT, STRONG};

/// The width at which the text of a message is cut.
const MAX_MAIL_WIDTH: usize = 100;

pub(crate) async fn run(context: &CliContext, id: TaskId, brief: bool) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let document = match board::show(&seat, id).await {
        Ok(document) => document,
        Err(error) => return Err(with_last_task(&seat, error.into()).await),
    };
    let task = Task::read(&document.bytes).map_err(CliError::failed)?;
    if context.json && brief {
        output::print_raw(&document.bytes)?;
        output::print_raw(b"\n")?;
        return Ok(exit::DONE);
    }
    let story = match brief {
        true => None,
        false => Some(task_story::read(context, &seat, id, &document.bytes).await?),
    };
    let (_, graph) = board::list(&seat).await?;
    let details = TaskDetails::from_task(&task);
    if let Some(story) = story.as_ref().filter(|_| context.json) {
        let document = with_story(&document.bytes, &story_json(&graph, id, &details, story));
        output::print_raw(document.as_bytes())?;
        return Ok(exit::DONE);
    }
    let mut text = render(&graph, id, &task, &details);
    if let Some(story) = story {
        text.push_str(&render_story(&story));
    }
    output::print(&text)?;
    Ok(exit::DONE)
}

/// Adds the key `story` to a task's file and keeps its other bytes.
fn with_story(document: &[u8], story: &Value) -> String {
    let document = String::from_utf8_lossy(document);
    let object = document.trim_end();
    let object = object.strip_suffix('}').unwrap_or(object).trim_end();
    let comma = if object.ends_with('{') { "" } else { "," };
    format!("{object}{comma}\n  \"story\": {story}\n}}\n")
}

fn story_json(graph: &Graph, id: TaskId, details: &TaskDetails, story: &HostTaskStory) -> Value {
    let state = details.state_label(TaskView::new(graph, id)).replace(' ', "_");
    let (input, output) = story.story.tokens();
    json!({
        "state": graph.node(id).map(|_| state),
        "labels": details.labels,
        "priority": details.priority.as_str(),
        "cancelled": details.cancelled,
        "history": story.story.history,
        "mail": story.story.mail,
        "turns": story.story.turns,
        "tokens": [input, output],
        "cost": story.story.cost(),
        "worktree": story.worktree,
    })
}

fn render(graph: &Graph, id: TaskId, task: &Task<'_>, details: &TaskDetails) -> String {
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
        let reason = details.cancelled.as_deref().filter(|reason| !reason.is_empty());
        let reason = reason.map_or(String::new(), |reason| format!(": {}", text::one_line(reason)));
        line("state", &format!("{} {}{reason}", state.symbol(), details.state_label(state)));
    } else {
        line("state", "incomplete: a required field is missing; Claude Code does not show it");
    }
    line("owner", &text::one_line(&task.owner().unwrap_or_default()));
    if details.priority != Priority::Normal {
        line("priority", details.priority.as_str());
    }
    line("labels", &text::one_line(&details.labels.join(", ")));
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

/// Renders the parts of the story that are not empty.
fn render_story(story: &HostTaskStory) -> String {
    let mut text = String::new();
    let mut part = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            let _infallible = write!(text, "\n{STRONG}{title}{STRONG:#}\n{lines}");
        }
    };
    part("History", story.story.history.iter().map(step_line).collect());
    part("Mail", story.story.mail.iter().map(mention_line).collect());
    let total = usage(story.story.tokens(), story.story.cost());
    let total = if total.is_empty() { total } else { format!("  {total}") };
    part(&format!("Turns{total}"), story.story.turns.iter().map(turn_line).collect());
    if let Some(worktree) = &story.worktree {
        let lines = worktree.stat.lines().map(|line| text::plain(line.trim())).collect();
        part(&format!("Worktree of {}", text::one_line(&worktree.member)), lines);
    }
    text
}

fn time(at: Timestamp) -> String {
    output::when(&at.to_string())
}

fn step_line(step: &TaskStep) -> String {
    let by = step.by.as_deref().map_or("another program".to_owned(), text::one_line);
    format!("{}  {}  {FAINT}({by}){FAINT:#}", time(step.at), text::one_line(&step.change))
}

fn mention_line(mail: &TaskMention) -> String {
    let (from, to) = (text::one_line(&mail.from), text::one_line(&mail.to));
    let shown = text::cut(&text::one_line(&mail.text), MAX_MAIL_WIDTH);
    format!("{}  {from} → {to}  {shown}", time(mail.at))
}

fn turn_line(turn: &TaskTurn) -> String {
    let seconds = turn.ended.map(|ended| ended.as_second() - turn.started.as_second());
    let lasted = seconds.map_or("running".to_owned(), output::duration);
    let usage = usage((turn.input, turn.output), turn.cost);
    let outcome = turn.outcome.map(|outcome| format!("{outcome:?}").to_lowercase());
    let parts = [text::one_line(&turn.member), lasted, outcome.unwrap_or_default(), usage];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}  {}", time(turn.started), parts.join("  "))
}

/// Returns for example "12000 tokens in, 300 out, $0.12"; empty if nothing was reported.
fn usage((input, output): (u64, u64), cost: Option<f64>) -> String {
    let tokens = (input + output > 0).then(|| format!("{input} tokens in, {output} out"));
    let cost = cost.map(|cost| format!("${cost:.2}"));
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
