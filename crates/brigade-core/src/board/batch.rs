//! Adds many tasks at once: all of them, or none if one of them has a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task};
use thiserror::Error;

use super::{
    BoardError, MAX_TASK_BYTES, TaskPlan, add_with, delete, limit, list, notify_owner_once, role,
    show,
};
use crate::authority::Role;
use crate::seat::Seat;
use crate::task_details::{SOURCE_KEY, TaskDetails};

/// A task to add together with others.
#[derive(Clone, Debug, Default)]
pub struct BatchTask {
    /// The place in the file, for messages about mistakes: "line 4", "task 3".
    pub place: String,
    /// Identifies the entry, so that adding the same file again does not add the task again.
    pub source: String,
    /// The content of the task. Its `blocked_by` is ignored: see `after`.
    pub plan: TaskPlan,
    /// The positions, in the same batch, of the tasks that this task depends on.
    pub after: Vec<usize>,
    /// The owner, who is notified unless the task is completed.
    pub owner: Option<MemberName>,
    /// Whether the task is completed.
    pub is_done: bool,
}

/// Which tasks of an earlier run count as already added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// All tasks on the board.
    AnyTask,
    /// Only unfinished tasks, so that a list can be added again after its tasks are done.
    OpenTask,
}

/// The tasks of a batch on the board, each with its position in the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// The new tasks.
    pub added: Vec<(usize, TaskId)>,
    /// The tasks that an earlier run added.
    pub existing: Vec<(usize, TaskId)>,
    /// The members that were notified of new tasks.
    pub notified: Vec<MemberName>,
}

/// A mistake in a file of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMistake {
    /// The place in the file: "line 4", "task 3".
    pub place: String,
    /// The mistake.
    pub message: String,
}

impl TaskMistake {
    /// Creates a mistake.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for TaskMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Why a batch was not added.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Some entries have mistakes. Nothing was added.
    #[error("{}", mistakes(.0))]
    Mistakes(Vec<TaskMistake>),
    /// Adding a task failed. The tasks that had been added were deleted again.
    #[error("no task was added")]
    NotAdded(#[source] BoardError),
    /// A later step failed, and these tasks are on the board.
    #[error("tasks {} were added, but a later step failed", crate::task_view::join(.added.iter().copied()))]
    Incomplete {
        /// The tasks that were added.
        added: Vec<TaskId>,
        /// Why the step failed.
        source: BoardError,
    },
}

fn mistakes(mistakes: &[TaskMistake]) -> String {
    let count = crate::text::count(mistakes.len(), "mistake");
    let lines = mistakes.iter().map(|mistake| format!("\n  {mistake}"));
    format!("{count}; no task was added{}", lines.collect::<String>())
}

/// Adds tasks in an order in which each task comes after its dependencies. Checks all of them first.
pub async fn add_all(
    seat: &Seat,
    tasks: &[BatchTask],
    rerun: Rerun,
) -> Result<BatchReport, BatchError> {
    let (role, order) = check(seat, tasks).await?;
    let mut known = known_sources(seat, rerun).await.map_err(BatchError::NotAdded)?;
    let new = tasks.iter().filter(|task| !known.contains_key(&task.source)).count();
    limit::check_new_tasks(seat, role, new).await.map_err(BatchError::NotAdded)?;
    let mut report = BatchReport::default();
    let mut ids: BTreeMap<usize, TaskId> = BTreeMap::new();
    for &index in &order {
        let Some(task) = tasks.get(index) else { continue };
        if let Some(id) = known.remove(&task.source) {
            ids.insert(index, id);
            report.existing.push((index, id));
            continue;
        }
        let mut plan = task.plan.clone();
        plan.blocked_by =
            task.after.iter().filter_map(|blocker| ids.get(blocker).copied()).collect();
        plan.metadata.push((SOURCE_KEY.to_owned(), task.source.as_str().into()));
        let status = if task.is_done { Status::Completed } else { Status::Pending };
        match add_with(seat, &plan, task.owner.as_ref(), status).await {
            Ok(id) => {
                ids.insert(index, id);
                report.added.push((index, id));
            }
            Err(error) => return Err(roll_back(seat, &report, error).await),
        }
    }
    report.added.sort_unstable();
    report.existing.sort_unstable();
    // Notify the owners after all tasks exist: an owner may start at once.
    let mut notified = BTreeSet::new();
    for &(index, id) in report.added.iter().chain(&report.existing) {
        let owner =
            tasks.get(index).filter(|task| !task.is_done).and_then(|task| task.owner.as_ref());
        let Some(owner) = owner.filter(|owner| **owner != seat.name) else { continue };
        let sent = notify_unless_done(seat, id, owner).await.map_err(|source| {
            let added = report.added.iter().map(|(_, id)| *id).collect();
            BatchError::Incomplete { added, source }
        })?;
        if sent {
            notified.insert(owner.clone());
        }
    }
    report.notified = notified.into_iter().collect();
    Ok(report)
}

/// Notifies the owner of a task, unless the task has another owner or is completed, or the owner knows about it. An earlier run
/// that was killed may have added the task without notifying the owner.
async fn notify_unless_done(
    seat: &Seat,
    id: TaskId,
    owner: &MemberName,
) -> Result<bool, BoardError> {
    let document = show(seat, id).await?;
    let is_open = Task::read(&document.bytes).is_ok_and(|task| {
        let is_owner = task.owner().is_some_and(|name| name == owner.as_str());
        is_owner && task.status() != Some(Status::Completed)
    });
    if is_open { notify_owner_once(seat, id, owner).await } else { Ok(false) }
}

/// Deletes the tasks that were added, and returns the error for the caller.
async fn roll_back(seat: &Seat, report: &BatchReport, source: BoardError) -> BatchError {
    let mut left = Vec::new();
    for &(_, id) in report.added.iter().rev() {
        if delete(seat, id).await.is_err() {
            left.push(id);
        }
    }
    match left.is_empty() {
        true => BatchError::NotAdded(source),
        false => BatchError::Incomplete { added: left, source },
    }
}

/// Checks all tasks, and returns the role of the seat, and the positions of the tasks in an order in which each comes after its
/// dependencies.
async fn check(seat: &Seat, tasks: &[BatchTask]) -> Result<(Role, Vec<usize>), BatchError> {
    let board = |error: BoardError| BatchError::NotAdded(error);
    let store = |error| BatchError::NotAdded(BoardError::Store(error));
    let role = role(seat).await.map_err(board)?;
    let roster = seat.roster().await.map_err(store)?;
    let team = roster.team();
    let mut found = Vec::new();
    let mut sources: BTreeMap<&str, &str> = BTreeMap::new();
    for task in tasks {
        let mut mistake = |message: String| found.push(TaskMistake::new(&task.place, message));
        if task.plan.subject.trim().is_empty() {
            mistake(BoardError::NoSubject.to_string());
        }
        let len = task.plan.len();
        if len > MAX_TASK_BYTES {
            mistake(BoardError::TooLong { len }.to_string());
        }
        if let Some(owner) = &task.owner
            && team.member(owner.as_str()).is_none()
        {
            let members = team.member_names().join(", ");
            mistake(format!("no member named {:?}; members: {members}", owner.as_str()));
        }
        if let Some(before) = sources.insert(&task.source, &task.place) {
            mistake(format!("the same task as {before}"));
        }
    }
    let (order, stuck) = topological_order(tasks);
    for index in stuck {
        if let Some(task) = tasks.get(index) {
            let message = "the task waits for itself, directly or through other tasks";
            found.push(TaskMistake::new(&task.place, message));
        }
    }
    if !found.is_empty() {
        return Err(BatchError::Mistakes(found));
    }
    Ok((role, order))
}

/// Returns the positions in an order in which each task comes after its dependencies, and the positions that have none
/// because of a cycle.
fn topological_order(tasks: &[BatchTask]) -> (Vec<usize>, Vec<usize>) {
    let mut placed: BTreeSet<usize> = BTreeSet::new();
    let mut order = Vec::new();
    // Go depth first, so that the numbers of the tasks follow the order in the file where the dependencies permit it.
    let mut open: Vec<(usize, bool)> = (0..tasks.len()).rev().map(|index| (index, false)).collect();
    let mut visited: BTreeSet<usize> = BTreeSet::new();
    while let Some((index, is_left)) = open.pop() {
        let after = tasks.get(index).map(|task| task.after.as_slice()).unwrap_or_default();
        if is_left {
            if after.iter().all(|blocker| placed.contains(blocker)) && placed.insert(index) {
                order.push(index);
            }
        } else if visited.insert(index) {
            open.push((index, true));
            open.extend(after.iter().rev().map(|&blocker| (blocker, false)));
        }
    }
    let stuck = (0..tasks.len()).filter(|index| !placed.contains(index)).collect();
    (order, stuck)
}

/// Maps the sources of the tasks on the board to their ids.
async fn known_sources(seat: &Seat, rerun: Rerun) -> Result<BTreeMap<String, TaskId>, BoardError> {
    let created = seat.roster().await?.team().created_at().unwrap_or_default();
    let (documents, _) = list(seat).await?;
    let mut known = BTreeMap::new();
    for (id, document) in documents {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if rerun == Rerun::OpenTask && task.status() == Some(Status::Completed) {
            continue;
        }
        known.insert(own_source(seat.team.as_str(), created, id), id);
        known.extend(TaskDetails::from_task(&task).source.map(|source| (source, id)));
    }
    Ok(known)
}

/// Returns the source that identifies a task of this team in another team.
pub(crate) fn own_source(team: &str, created: u64, id: TaskId) -> String {
    format!("{team}/{created}/{id}")
}
