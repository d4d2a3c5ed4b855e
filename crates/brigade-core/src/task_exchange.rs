//! Tasks as JSON and CSV, to move them between teams and other programs.
//!
//! An exported file says for each task from which team it comes. An import stores this in the new task's metadata, so that
//! importing the file again adds nothing.

mod csv;

use std::collections::BTreeMap;

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::board::{self, BatchTask, BoardError, TaskMistake, TaskPlan, own_source};
use crate::event::one_line;
use crate::seat::Seat;
use crate::task_details::{SOURCE_KEY, TaskDetails, parse_label};

/// The tasks of a team as one JSON document.
#[derive(Serialize)]
struct TaskDocument<'t> {
    team: &'t str,
    /// When the team was created, in milliseconds. Distinguishes it from other teams with its name.
    team_created: u64,
    tasks: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ImportDocument {
    Team {
        team: String,
        #[serde(default)]
        team_created: u64,
        tasks: Vec<Map<String, Value>>,
    },
    Tasks(Vec<Map<String, Value>>),
}

/// How to treat the owners in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOwners {
    /// Assign the tasks to the members that the file names.
    Keep,
    /// Import the tasks without owners.
    Drop,
}

/// Returns all tasks that Claude Code would show as one JSON document.
pub async fn export_json(seat: &Seat) -> Result<String, BoardError> {
    let created = seat.roster().await?.team().created_at().unwrap_or_default();
    let (documents, graph) = board::list(seat).await?;
    let shown = documents.iter().filter(|(id, _)| graph.node(*id).is_some());
    let tasks = shown.map(|(_, document)| one_line(&document.bytes)).collect();
    let document = TaskDocument { team: seat.team.as_str(), team_created: created, tasks };
    // Serializing texts and valid JSON cannot fail.
    Ok(serde_json::to_string(&document).unwrap_or_default())
}

/// Returns all tasks that Claude Code would show as lines of CSV, with a header.
pub async fn export_csv(seat: &Seat) -> Result<String, BoardError> {
    let created = seat.roster().await?.team().created_at().unwrap_or_default();
    let (documents, graph) = board::list(seat).await?;
    let mut text = csv::line(csv::COLUMNS);
    for (id, document) in &documents {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        let Some(status) = task.status().filter(|_| graph.node(*id).is_some()) else { continue };
        let details = TaskDetails::from_task(&task);
        let source = details.source.clone();
        text.push_str(&csv::line(&[
            &id.to_string(),
            &task.subject().unwrap_or_default(),
            &task.description().unwrap_or_default(),
            status.as_str(),
            &task.owner().unwrap_or_default(),
            &task.blocked_by().unwrap_or_default().join(" "),
            &details.labels.join(" "),
            details.priority.as_str(),
            &source.unwrap_or_else(|| own_source(seat.team.as_str(), created, *id)),
        ]));
    }
    Ok(text)
}

/// Reads tasks from JSON or CSV. `file` is the name of the file, which identifies tasks that come from no team. Returns all
/// mistakes if there are some.
pub fn read(
    text: &str,
    file: &str,
    owners: ImportOwners,
) -> Result<Vec<BatchTask>, Vec<TaskMistake>> {
    let entries = match text.trim_start().starts_with(['{', '[']) {
        true => json_entries(text, file)?,
        false => csv::entries(text, file)?,
    };
    let mut mistakes = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if !entry.id.is_empty() && positions.insert(entry.id.clone(), index).is_some() {
            mistakes.push(TaskMistake::new(
                &entry.place,
                format!("the id {:?} is used twice", entry.id),
            ));
        }
    }
    let mut tasks = Vec::new();
    for entry in &entries {
        tasks.push(entry.to_task(owners, &positions, &mut mistakes));
    }
    if entries.is_empty() {
        mistakes.push(TaskMistake::new("the file", "there is no task in it"));
    }
    if mistakes.is_empty() { Ok(tasks) } else { Err(mistakes) }
}

/// A task in a file. All values are as they stand in the file.
#[derive(Debug, Default)]
struct TaskRow {
    place: String,
    source: String,
    id: String,
    subject: String,
    description: String,
    active_form: Option<String>,
    status: String,
    owner: String,
    blocked_by: Vec<String>,
    labels: Vec<String>,
    priority: String,
    /// Other metadata.
    metadata: Vec<(String, Value)>,
}

impl TaskRow {
    fn to_task(
        &self,
        owners: ImportOwners,
        positions: &BTreeMap<String, usize>,
        mistakes: &mut Vec<TaskMistake>,
    ) -> BatchTask {
        let mut mistake = |message: String| mistakes.push(TaskMistake::new(&self.place, message));
        let status = match self.status.as_str() {
            "" => Ok(Status::Pending),
            text => text.parse::<Status>(),
        };
        let is_done = match status {
            Ok(status) => status == Status::Completed,
            Err(error) => {
                mistake(format!("{:?}: {error}", self.status));
                false
            }
        };
        let owner = match self.owner.as_str() {
            "" => None,
            _ if owners == ImportOwners::Drop => None,
            name => name.parse::<MemberName>().map_err(|error| mistake(error.to_string())).ok(),
        };
        let mut after = Vec::new();
        for blocker in &self.blocked_by {
            match positions.get(blocker) {
                Some(&position) => after.push(position),
                None => mistake(format!("waits for task {blocker:?}, which is not in the file")),
            }
        }
        let mut details = TaskDetails::default();
        for label in &self.labels {
            match parse_label(label) {
                Ok(label) => details.labels.push(label),
                Err(error) => mistake(error.to_string()),
            }
        }
        match self.priority.as_str() {
            "" => {}
            text => match text.parse() {
                Ok(priority) => details.priority = priority,
                Err(error) => mistake(format!("{error}")),
            },
        }
        let mut metadata = self.metadata.clone();
        metadata.extend(details.to_metadata());
        BatchTask {
            place: self.place.clone(),
            source: self.source.clone(),
            plan: TaskPlan {
                subject: self.subject.clone(),
                description: self.description.clone(),
                active_form: self.active_form.clone(),
                blocked_by: Vec::new(),
                metadata,
            },
            after,
            owner,
            is_done,
        }
    }
}

fn json_entries(text: &str, file: &str) -> Result<Vec<TaskRow>, Vec<TaskMistake>> {
    let invalid = |error: serde_json::Error| {
        let place = format!("line {}", error.line().max(1));
        vec![TaskMistake::new(place, format!("this is not JSON: {error}"))]
    };
    // Read the JSON first: the error of an untagged enum has no position.
    let value: Value = serde_json::from_str(text).map_err(invalid)?;
    let Ok(document) = serde_json::from_value(value) else {
        let form = "expected an array of tasks, or an object with `team` and `tasks`";
        return Err(vec![TaskMistake::new("line 1", form)]);
    };
    let (origin, tasks) = match document {
        ImportDocument::Team { team, team_created, tasks } => (Some((team, team_created)), tasks),
        ImportDocument::Tasks(tasks) => (None, tasks),
    };
    Ok(tasks
        .iter()
        .enumerate()
        .map(|(index, task)| json_entry(task, index, &origin, file))
        .collect())
}

fn json_entry(
    task: &Map<String, Value>,
    index: usize,
    origin: &Option<(String, u64)>,
    file: &str,
) -> TaskRow {
    let text = |key: &str| match task.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let texts = |value: Option<&Value>| {
        let values = value.and_then(Value::as_array).into_iter().flatten();
        values
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect()
    };
    let mut metadata = task.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let labels = metadata.remove(crate::task_details::LABELS_KEY);
    let labels = labels.as_ref().or_else(|| task.get("labels"));
    let priority = metadata.remove(crate::task_details::PRIORITY_KEY);
    let priority = priority.as_ref().and_then(Value::as_str).map(str::to_owned);
    let given = metadata.remove(SOURCE_KEY);
    let given = given.as_ref().and_then(Value::as_str).map(str::to_owned);
    let id = text("id");
    let name = if id.is_empty() { text("subject") } else { id.clone() };
    let source = given.unwrap_or_else(|| match (origin, id.parse::<TaskId>()) {
        (Some((team, created)), Ok(id)) => own_source(team, *created, id),
        _ => format!("{file}/{name}"),
    });
    TaskRow {
        place: format!("task {}", if id.is_empty() { (index + 1).to_string() } else { id.clone() }),
        source,
        id,
        subject: text("subject"),
        description: text("description"),
        active_form: Some(text("activeForm")).filter(|text| !text.is_empty()),
        status: text("status"),
        owner: text("owner"),
        blocked_by: texts(task.get("blockedBy").or_else(|| task.get("blocked_by"))),
        labels: texts(labels),
        priority: priority.unwrap_or_else(|| text("priority")),
        metadata: metadata.into_iter().collect(),
    }
}
