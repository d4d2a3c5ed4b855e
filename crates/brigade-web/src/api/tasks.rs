//! The board.

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::seat::Seat;
use brigade_core::task_details::{Priority, TaskDetails};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Reply, ReplyResult};

/// A task, as Claude Code writes it.
#[derive(JsonSchema)]
pub(crate) struct StoredTask(
    #[expect(dead_code, reason = "only its schema is used")]
    serde_json::Map<String, serde_json::Value>,
);

/// The number of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskReference {
    #[schemars(with = "String")]
    task_id: TaskId,
}

/// A new task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRequest {
    /// One line that says what to do.
    subject: String,
    /// More about it.
    #[serde(default)]
    description: String,
    /// The member that gets the task.
    owner: Option<String>,
    /// The tasks that have to be done before it.
    #[serde(default)]
    blocked_by: Vec<u64>,
    /// Labels.
    #[serde(default)]
    labels: Vec<String>,
    /// `low`, `normal` or `high`.
    priority: Option<String>,
}

/// Changes to a task. What is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TaskEditRequest {
    subject: Option<String>,
    description: Option<String>,
    /// The member that gets the task; empty for none.
    owner: Option<String>,
    /// `pending`, `in_progress` or `completed`.
    status: Option<String>,
    /// Tasks that have to be done before it.
    add_blocked_by: Vec<u64>,
    /// Tasks that no longer have to be done before it.
    remove_blocked_by: Vec<u64>,
    add_labels: Vec<String>,
    remove_labels: Vec<String>,
    /// `low`, `normal` or `high`.
    priority: Option<String>,
}

/// Why a task is cancelled.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// The reason.
    #[serde(default)]
    reason: String,
}

pub(crate) async fn list(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let seat = context.seat_of(team, MemberName::lead());
    let (documents, _) = board::list(&seat).await?;
    let after: Option<TaskId> = call.parameter("cursor")?;
    let limit = call.limit()?;
    let mut rest = documents.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let next = rest.next().and_then(|_| page.last().map(|(id, _)| id.to_string()));
    Ok(Reply::array(page.iter().map(|(_, task)| task.bytes.as_slice())).with_next(next))
}

pub(crate) async fn show(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let seat = context.seat_of(team, MemberName::lead());
    Ok(Reply::bytes(board::show(&seat, call.task()?).await?.bytes))
}

pub(crate) async fn add(call: Call) -> ReplyResult {
    let (context, _) = call.team_context().await?;
    let asked: TaskRequest = call.content()?;
    let details = TaskDetails {
        labels: asked.labels,
        priority: priority(asked.priority)?.unwrap_or_default(),
        ..TaskDetails::default()
    };
    let plan = TaskPlan {
        subject: asked.subject,
        description: asked.description,
        active_form: None,
        blocked_by: ids(asked.blocked_by)?,
        metadata: details.to_metadata(),
    };
    let seat = context.seat().await?;
    let task_id = match owner(asked.owner)? {
        Some(owner) => board::add_for(&seat, &plan, &owner).await?,
        None => board::add(&seat, &plan).await?,
    };
    Ok(Reply::json(&TaskReference { task_id })?.created())
}

pub(crate) async fn change(call: Call) -> ReplyResult {
    let asked: TaskEditRequest = call.content()?;
    let update = Update {
        subject: asked.subject,
        description: asked.description,
        owner: match asked.owner {
            None => Change::Keep,
            Some(name) if name.is_empty() => Change::Clear,
            Some(name) => owner(Some(name))?.map_or(Change::Keep, Change::Set),
        },
        status: asked.status.as_deref().map(status).transpose()?,
        add_blocked_by: ids(asked.add_blocked_by)?,
        remove_blocked_by: ids(asked.remove_blocked_by)?,
        add_labels: asked.add_labels,
        remove_labels: asked.remove_labels,
        priority: priority(asked.priority)?,
        ..Update::default()
    };
    let (seat, task_id) = own_seat(&call).await?;
    board::update(&seat, task_id, &update).await?;
    Reply::json(&TaskReference { task_id })
}

pub(crate) async fn delete(call: Call) -> ReplyResult {
    let (seat, task_id) = own_seat(&call).await?;
    board::delete(&seat, task_id).await?;
    Reply::json(&TaskReference { task_id })
}

pub(crate) async fn claim(call: Call) -> ReplyResult {
    let (seat, task_id) = own_seat(&call).await?;
    board::claim(&seat, task_id).await?;
    Reply::json(&TaskReference { task_id })
}

pub(crate) async fn done(call: Call) -> ReplyResult {
    let (seat, task_id) = own_seat(&call).await?;
    board::done(&seat, task_id).await?;
    Reply::json(&TaskReference { task_id })
}

pub(crate) async fn reopen(call: Call) -> ReplyResult {
    let (seat, task_id) = own_seat(&call).await?;
    board::reopen(&seat, task_id).await?;
    Reply::json(&TaskReference { task_id })
}

pub(crate) async fn cancel(call: Call) -> ReplyResult {
    let CancelRequest { reason } = call.content()?;
    let (seat, task_id) = own_seat(&call).await?;
    board::cancel(&seat, task_id, &reason).await?;
    Reply::json(&TaskReference { task_id })
}

/// Returns the person's seat and the task in the path.
async fn own_seat(call: &Call) -> Result<(Seat, TaskId), Problem> {
    let (context, _) = call.team_context().await?;
    Ok((context.seat().await?, call.task()?))
}

fn ids(numbers: Vec<u64>) -> Result<Vec<TaskId>, Problem> {
    let id = |number: u64| {
        number
            .to_string()
            .parse()
            .map_err(|_| Problem::invalid(format!("{number} is not the number of a task")))
    };
    numbers.into_iter().map(id).collect()
}

fn owner(name: Option<String>) -> Result<Option<MemberName>, Problem> {
    let parse = |name: String| {
        name.parse().map_err(|error| Problem::invalid(format!("the owner is not valid: {error}")))
    };
    name.map(parse).transpose()
}

fn priority(word: Option<String>) -> Result<Option<Priority>, Problem> {
    let parse = |word: String| {
        word.parse().map_err(|_| Problem::invalid("use the priority low, normal or high"))
    };
    word.map(parse).transpose()
}

fn status(word: &str) -> Result<Status, Problem> {
    match word {
        "pending" => Ok(Status::Pending),
        "in_progress" => Ok(Status::InProgress),
        "completed" => Ok(Status::Completed),
        _ => Err(Problem::invalid("use the status pending, in_progress or completed")),
    }
}
