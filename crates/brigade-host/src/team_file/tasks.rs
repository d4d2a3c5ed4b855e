//! Checks and sorts the tasks of a team file.

use std::collections::BTreeSet;

use brigade_core::graph::Graph;
use brigade_wire::name::{LEAD, MemberName, TaskId};
use brigade_wire::task::Task;
use serde_json::json;

use super::mistake::Mistakes;
use super::tables::TaskTable;
use super::toml_value::Located;
use crate::spec::TaskSpec;

/// Returns the tasks in the order of the file, except that each task comes after the tasks it waits for.
pub(super) fn tasks(
    tasks: &[(Located<String>, TaskTable)],
    members: &[&str],
    mistakes: &mut Mistakes,
) -> Vec<TaskSpec> {
    let keys: Vec<&str> = tasks.iter().map(|(key, _)| key.value.as_str()).collect();
    let read =
        |(key, task): &(Located<String>, TaskTable)| spec(key, task, &keys, members, mistakes);
    let specs: Vec<TaskSpec> = tasks.iter().map(read).collect();
    let graph = graph(&specs);
    for circle in graph.cycles() {
        let circle: Vec<&(Located<String>, TaskTable)> =
            circle.into_iter().filter_map(|id| tasks.get(task_index(id)?)).collect();
        report_cycle(&circle, mistakes);
    }
    let order = graph.topological_order().into_iter();
    order.filter_map(|id| specs.get(task_index(id)?).cloned()).collect()
}

fn spec(
    key: &Located<String>,
    task: &TaskTable,
    keys: &[&str],
    members: &[&str],
    mistakes: &mut Mistakes,
) -> TaskSpec {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.value.is_empty() || !key.value.chars().all(is_allowed) {
        let hint = "use letters, digits, '-', '_' and '.'";
        mistakes.hinted(&key.span, "invalid task name", hint);
    }
    if task.subject.is_absent() {
        let hint = "add subject = \"…\"";
        mistakes.hinted(&key.span, "this task has no subject", hint);
    }
    let mut after: Vec<String> = Vec::new();
    for other in task.after.get().into_iter().flatten() {
        let Located { span, value } = other;
        if *value == key.value {
            mistakes.add(span, format!("{value:?} cannot wait for itself"));
        } else if !keys.contains(&value.as_str()) {
            let message = format!("there is no task {value:?}");
            mistakes.unknown(span, message, value, keys.iter().copied());
        } else if !after.contains(value) {
            after.push(value.clone());
        }
    }
    let owner = task.owner.located().and_then(|Located { span, value }| {
        let known = || members.iter().copied().chain([LEAD]);
        if !known().any(|name| name == value) {
            mistakes.unknown(span, format!("there is no member {value:?}"), value, known());
        }
        value.parse::<MemberName>().ok()
    });
    TaskSpec {
        key: key.value.clone(),
        subject: task.subject.get().map(|subject| subject.0.clone()).unwrap_or_default(),
        description: task.description.get().cloned().unwrap_or_default(),
        after,
        owner,
    }
}

/// Adds a mistake for a dependency cycle, located at the `after` key of the first task in the cycle.
fn report_cycle(circle: &[&(Located<String>, TaskTable)], mistakes: &mut Mistakes) {
    let mut path: Vec<&str> = circle.iter().map(|(key, _)| key.value.as_str()).collect();
    let [(key, task), ..] = circle else { return };
    let next = path.get(1).copied().unwrap_or(&key.value);
    let waits = task.after.get().into_iter().flatten().find(|other| other.value == next);
    path.push(&key.value);
    let message =
        format!("these tasks wait for each other, so none can start: {}", path.join(" → "));
    let span = waits.map_or(&key.span, |other| &other.span);
    mistakes.hinted(span, message, "remove one of these dependencies");
}

/// Returns the dependency graph that the tasks would have on a new board, where the first task gets number 1.
pub fn graph(specs: &[TaskSpec]) -> Graph {
    let number = |key: &String| specs.iter().position(|task| task.key == *key).map(|at| at + 1);
    let documents: Vec<Vec<u8>> = specs
        .iter()
        .enumerate()
        .map(|(at, task)| {
            let after: BTreeSet<usize> = task.after.iter().filter_map(number).collect();
            let blocked_by: Vec<String> = after.iter().map(ToString::to_string).collect();
            let document = json!({
                "id": (at + 1).to_string(),
                "subject": task.subject,
                "description": task.description,
                "owner": task.owner,
                "status": "pending",
                "blocks": [],
                "blockedBy": blocked_by,
            });
            document.to_string().into_bytes()
        })
        .collect();
    let tasks: Vec<(TaskId, Task<'_>)> = documents
        .iter()
        .zip(1..)
        .filter_map(|(document, number)| Some((TaskId::new(number)?, Task::read(document).ok()?)))
        .collect();
    Graph::from_tasks(tasks.iter().map(|(id, task)| (*id, task)))
}

/// Returns the index of the task with this id in the list of tasks.
fn task_index(id: TaskId) -> Option<usize> {
    usize::try_from(id.get()).ok()?.checked_sub(1)
}
