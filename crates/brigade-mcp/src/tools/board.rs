//! Task board tools.

use brigade_core::board::{self, TaskPlan, Update};
use brigade_wire::change::Change;
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub(super) use super::NoParams;
use crate::board_view::{TaskLine, render, task_lines};
use crate::call_context::CallContext;
pub(super) use crate::reply::DoneReply;
use crate::reply::{CallResult, ToolError, ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskCreateParams {
    /// The task in one line
    subject: String,
    /// The task in full
    description: String,
    /// Shown while in progress: "Running tests"
    active_form: Option<String>,
    metadata: Option<Map<String, Value>>,
    /// Task ids that block this one
    #[serde(default, deserialize_with = "ids")]
    #[schemars(with = "Option<Vec<String>>")]
    add_blocked_by: Vec<TaskId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskIdParams {
    #[serde(deserialize_with = "id")]
    #[schemars(with = "String")]
    task_id: TaskId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskUpdateParams {
    #[serde(deserialize_with = "id")]
    #[schemars(with = "String")]
    task_id: TaskId,
    subject: Option<String>,
    description: Option<String>,
    active_form: Option<String>,
    status: Option<NewStatus>,
    /// Task ids that must wait for this one
    #[serde(default, deserialize_with = "ids")]
    #[schemars(with = "Option<Vec<String>>")]
    add_blocks: Vec<TaskId>,
    /// Task ids that block this one
    #[serde(default, deserialize_with = "ids")]
    #[schemars(with = "Option<Vec<String>>")]
    add_blocked_by: Vec<TaskId>,
    /// Member name; empty to unassign
    owner: Option<String>,
    /// Merged by key; null removes a key
    metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NewStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TaskCreated {
    success: bool,
    message: String,
    task: TaskRef,
}

#[derive(Serialize, JsonSchema)]
struct TaskRef {
    id: String,
    subject: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TaskListReply {
    success: bool,
    message: String,
    tasks: Vec<TaskLine>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TaskReply {
    success: bool,
    message: String,
    task: Map<String, Value>,
}

pub(super) async fn task_create(call: &CallContext<'_>, args: TaskCreateParams) -> CallResult {
    let plan = TaskPlan {
        subject: args.subject,
        description: args.description,
        active_form: args.active_form,
        blocked_by: args.add_blocked_by,
        metadata: args.metadata.unwrap_or_default().into_iter().collect(),
    };
    let id = board::add(call.seat()?, &plan).await?.to_string();
    let line = format!("Task #{id} created: {}", plan.subject);
    let task = TaskRef { id, subject: plan.subject };
    Ok(ToolReply::new(line.clone(), &TaskCreated { success: true, message: line, task }))
}

pub(super) async fn task_list(call: &CallContext<'_>, _: NoParams) -> CallResult {
    let (_, graph) = board::list(call.seat()?).await?;
    let tasks = task_lines(&graph);
    let line = match tasks.len() {
        0 => "no tasks".to_owned(),
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    let rendered: Vec<String> = tasks.iter().map(render).collect();
    let text = [[line.clone()].as_slice(), &rendered].concat().join("\n");
    Ok(ToolReply::new(text, &TaskListReply { success: true, message: line, tasks }))
}

pub(super) async fn task_get(call: &CallContext<'_>, args: TaskIdParams) -> CallResult {
    let document = board::show(call.seat()?, args.task_id).await?;
    let text = String::from_utf8_lossy(&document.bytes).into_owned();
    let damaged = |_| ToolError::new(format!("task {} cannot be read", args.task_id));
    let task: Map<String, Value> = serde_json::from_str(&text).map_err(damaged)?;
    let subject = task.get("subject").and_then(Value::as_str).unwrap_or_default();
    let message = format!("Task #{}: {subject}", args.task_id);
    Ok(ToolReply::new(text, &TaskReply { success: true, message, task }))
}

pub(super) async fn task_claim(call: &CallContext<'_>, args: TaskIdParams) -> CallResult {
    board::claim(call.seat()?, args.task_id).await?;
    Ok(ToolReply::done(format!("Task #{} is yours and in progress", args.task_id)))
}

pub(super) async fn task_update(call: &CallContext<'_>, args: TaskUpdateParams) -> CallResult {
    let (seat, id) = (call.seat()?, args.task_id);
    let status = match args.status {
        Some(NewStatus::Deleted) => {
            board::delete(seat, id).await?;
            return Ok(ToolReply::done(format!("Task #{id} deleted")));
        }
        Some(NewStatus::Pending) => Some(Status::Pending),
        Some(NewStatus::InProgress) => Some(Status::InProgress),
        Some(NewStatus::Completed) => Some(Status::Completed),
        None => None,
    };
    let owner = match args.owner.as_deref() {
        None => Change::Keep,
        Some("") => Change::Clear,
        Some(name) => Change::Set(call.member(name).await?),
    };
    let metadata = args.metadata.unwrap_or_default().into_iter();
    let update = Update {
        subject: args.subject,
        description: args.description,
        active_form: args.active_form.map_or(Change::Keep, Change::Set),
        owner,
        status,
        add_blocks: args.add_blocks,
        add_blocked_by: args.add_blocked_by,
        metadata: metadata
            .map(|(key, value)| (key, Some(value).filter(|v| !v.is_null())))
            .collect(),
        ..Update::default()
    };
    board::update(seat, id, &update).await?;
    let next = match status {
        Some(Status::Completed) => "; task_list shows the next ones",
        _ => "",
    };
    Ok(ToolReply::done(format!("Task #{id} updated{next}")))
}

/// A task id, given as a number or as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a task id")]
enum TaskIdArg {
    Text(String),
    Number(u64),
}

impl TaskIdArg {
    fn parse<E: serde::de::Error>(self) -> Result<TaskId, E> {
        match self {
            // People and models also write "#3".
            Self::Text(text) => text.trim_start_matches('#').parse().map_err(E::custom),
            Self::Number(number) => {
                TaskId::new(number).ok_or_else(|| E::custom("task ids start at 1"))
            }
        }
    }
}

fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskId, D::Error> {
    TaskIdArg::deserialize(deserializer)?.parse()
}

fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TaskId>, D::Error> {
    let ids = Option::<Vec<TaskIdArg>>::deserialize(deserializer)?.unwrap_or_default();
    ids.into_iter().map(TaskIdArg::parse).collect()
}
