//! The shared task board: add, claim, finish and list tasks.
//!
//! ```
//! use brigade_core::board::{self, BoardError, TaskPlan};
//! use brigade_core::graph::TaskState;
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let design = board::add(&lead, &TaskPlan::new("design it")).await?;
//! let plan = TaskPlan { blocked_by: vec![design], ..TaskPlan::new("build it") };
//! let build = board::add(&lead, &plan).await?;
//!
//! board::claim(&bob, design).await?;
//! assert!(matches!(board::claim(&bob, build).await, Err(BoardError::Blocked { .. })));
//! board::done(&bob, design).await?;
//! let (_, graph) = board::list(&lead).await?;
//! assert_eq!(graph.state(build), Some(TaskState::Ready));
//! # Ok(())
//! # }
//! ```

mod assignment;
mod batch;
mod dependency;
mod error;
mod lifecycle;
mod limit;
mod plan;

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};

use self::assignment::notify_owner;
pub use self::assignment::notify_owner_once;
pub(crate) use self::batch::own_source;
pub use self::batch::{BatchError, BatchReport, BatchTask, Rerun, TaskMistake, add_all};
use self::dependency::{
    add_dependency, dependencies_len, open_blockers, remove_dependency, with_blocked,
    without_dependency,
};
pub use self::error::BoardError;
pub use self::lifecycle::{assign, cancel, reopen, unassign};
pub use self::limit::BoardFull;
pub use self::plan::{MAX_TASK_BYTES, TaskPlan, Update};
use crate::authority::{self, Role};
use crate::graph::Graph;
use crate::seat::Seat;
use crate::store::{Document, StoreError};

/// Returns the content of every task, ordered by number. The content of a damaged task cannot be parsed. Also returns
/// the dependency graph, which contains only the tasks that Claude Code would show.
pub async fn list(seat: &Seat) -> Result<(Vec<(TaskId, Document)>, Graph), BoardError> {
    let mut tasks = seat.store.tasks(&seat.team).await?;
    let mut graph = Graph::default();
    let mut deleted = Vec::new();
    for (id, document) in &mut tasks {
        if let Ok(task) = Task::read(&document.bytes) {
            graph.add(*id, &task);
            continue;
        }
        // Another program may be writing the task. Read it again.
        match seat.store.task(&seat.team, *id).await {
            Ok(Some(whole)) => *document = whole,
            Ok(None) => deleted.push(*id),
            Err(StoreError::Damaged { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if let Ok(task) = Task::read(&document.bytes) {
            graph.add(*id, &task);
        }
    }
    tasks.retain(|(id, _)| !deleted.contains(id));
    Ok((tasks, graph.finish()))
}

/// Returns the content of one task.
pub async fn show(seat: &Seat, id: TaskId) -> Result<Document, BoardError> {
    seat.store.task(&seat.team, id).await?.ok_or(BoardError::NoTask(id))
}

/// Adds a task and returns its id.
pub async fn add(seat: &Seat, plan: &TaskPlan) -> Result<TaskId, BoardError> {
    add_with(seat, plan, None, Status::Pending).await
}

/// Adds a task with this owner and status. The caller checks that the owner is a member, and notifies it.
async fn add_with(
    seat: &Seat,
    plan: &TaskPlan,
    owner: Option<&MemberName>,
    status: Status,
) -> Result<TaskId, BoardError> {
    if plan.subject.trim().is_empty() {
        return Err(BoardError::NoSubject);
    }
    let len = plan.len();
    if len > MAX_TASK_BYTES {
        return Err(BoardError::TooLong { len });
    }
    let role = role(seat).await?;
    let blocked_by: BTreeSet<TaskId> = plan.blocked_by.iter().copied().collect();
    for &blocker in &blocked_by {
        show(seat, blocker).await?;
    }
    let blocked_by: Vec<TaskId> = blocked_by.into_iter().collect();
    limit::check_new_task(seat, role, len + dependencies_len(blocked_by.len())).await?;
    let write = |id: TaskId| {
        let task = NewTask {
            id,
            subject: &plan.subject,
            description: &plan.description,
            active_form: plan.active_form.as_deref(),
            owner: owner.map(MemberName::as_str),
            status,
            blocks: &[],
            blocked_by: &blocked_by,
            metadata: &plan.metadata,
        };
        task.to_bytes()
    };
    let (id, _) = seat.store.create_task(&seat.team, &write, &seat.actor()).await?;
    // No task depends on the new task yet, so the new dependencies cannot create a cycle. If this process dies
    // here, only `blocks` entries are missing. They are redundant, because readers use `blockedBy`.
    for &blocker in &blocked_by {
        match edit(seat, blocker, |task| Ok(with_blocked(task, id))).await {
            // `NoTask`: the blocker was deleted in the meantime, so the new task does not wait for it.
            Ok(_) | Err(BoardError::NoTask(_)) => {}
            // The task exists. An error would make the caller add it a second time.
            Err(error) => {
                tracing::warn!(team = %seat.team, task = %id, %blocker, %error, "cannot update `blocks`");
            }
        }
    }
    tracing::info!(team = %seat.team, task = %id, "added task");
    Ok(id)
}

/// Adds a task and assigns it to a member. Adds nothing if the member is not on the roster. Fails with
/// [`BoardError::NotAssigned`] if the task was added but could not be assigned.
pub async fn add_for(
    seat: &Seat,
    plan: &TaskPlan,
    owner: &MemberName,
) -> Result<TaskId, BoardError> {
    check_member(seat, owner).await?;
    let id = add(seat, plan).await?;
    let change = Update { owner: Change::Set(owner.clone()), ..Update::default() };
    match update(seat, id, &change).await {
        Ok(()) => Ok(id),
        Err(error @ BoardError::NotTold { .. }) => Err(error),
        Err(source) => {
            let (owner, source) = (owner.clone(), Box::new(source));
            Err(BoardError::NotAssigned { id, owner, source })
        }
    }
}

/// Changes a task. If the task gets a new owner, notifies that member, as Claude Code does. Does not
/// notify a member that assigns the task to itself.
pub async fn update(seat: &Seat, id: TaskId, update: &Update) -> Result<(), BoardError> {
    let role = role(seat).await?;
    let lead = role == Role::Lead;
    let owner = match &update.owner {
        Change::Set(name) => {
            check_member(seat, name).await?;
            Change::Set(name.as_str())
        }
        Change::Clear => Change::Clear,
        Change::Keep => Change::Keep,
    };
    if update.subject.as_deref().is_some_and(|subject| subject.trim().is_empty()) {
        return Err(BoardError::NoSubject);
    }
    let change = TaskChange {
        subject: update.subject.as_deref(),
        description: update.description.as_deref(),
        active_form: as_deref(&update.active_form),
        owner,
        status: update.status,
        ..TaskChange::default()
    };
    let changed = |task: &Task<'_>| {
        let metadata = update.metadata_changes(task);
        task.with(&TaskChange { metadata: &metadata, ..change.clone() }).into_owned()
    };
    let moves = update.status.is_some() || update.owner != Change::Keep;
    if moves && !lead && update.changes_dependencies() {
        // Refuse before the dependencies change. The owner is checked again when the task is written.
        let document = show(seat, id).await?;
        if let Ok(task) = Task::read(&document.bytes) {
            check_owner(seat, id, &task)?;
        }
    }
    let grows = update.adds_text();
    let dependencies = update.add_blocked_by.len() + update.add_blocks.len();
    if grows || dependencies > 0 {
        let document = show(seat, id).await?;
        let before = document.bytes.len();
        let edited = Task::read(&document.bytes).map_or(before, |task| changed(&task).len());
        if edited > MAX_TASK_BYTES && grows {
            return Err(BoardError::TooLong { len: edited });
        }
        limit::check_longer_task(seat, role, before, edited + dependencies_len(dependencies))
            .await?;
    }
    // Add the dependencies first: if one of them is refused, the other fields stay unchanged.
    for &blocker in &update.add_blocked_by {
        add_dependency(seat, id, blocker).await?;
    }
    for &blocked in &update.add_blocks {
        add_dependency(seat, blocked, id).await?;
    }
    for &blocker in &update.remove_blocked_by {
        remove_dependency(seat, id, blocker).await?;
    }
    let mut before = None;
    let document = edit(seat, id, |task| {
        if moves && !lead {
            check_owner(seat, id, task)?;
        }
        before = task.owner().map(Cow::into_owned);
        let edited = changed(task);
        let len = edited.len();
        // Another program may have made the task too long. Changes that add no text are still allowed.
        if len > MAX_TASK_BYTES && grows { Err(BoardError::TooLong { len }) } else { Ok(edited) }
    });
    let document = document.await?;
    match &update.owner {
        Change::Set(name) if before.as_deref() != Some(name.as_str()) && *name != seat.name => {
            notify_owner(seat, id, name, &document).await
        }
        _ => Ok(()),
    }
}

/// Claims a task: the seat becomes the owner, and the task is in progress. Fails if another member owns the task,
/// or if the task is completed or blocked.
pub async fn claim(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let me = seat.name.as_str();
    loop {
        // Read the task and the roster concurrently, because with NATS each read is a network round trip.
        let (document, is_member) = tokio::join!(show(seat, id), role(seat));
        let document = document?;
        // The blockers and the owner come from the same revision of the task. If the task changes before the
        // write, the write fails and the loop reads the task again.
        let waits_for = open_blockers(seat, id, &document).await?;
        let edited = claimed(id, &document, me, waits_for)?;
        is_member?;
        match replace(seat, id, &document, &edited).await {
            Err(BoardError::Store(StoreError::Conflict)) => {}
            other => {
                if other.is_ok() {
                    tracing::info!(team = %seat.team, member = me, task = %id, "claimed task");
                }
                return other;
            }
        }
    }
}

/// Returns the new content of a task that member `me` claims. Fails if the member cannot claim the task.
fn claimed(
    id: TaskId,
    document: &Document,
    me: &str,
    waits_for: Vec<TaskId>,
) -> Result<Vec<u8>, BoardError> {
    let task = Task::read(&document.bytes).map_err(|_| BoardError::NotATask(id))?;
    let status = task.status().filter(|_| task.is_visible()).ok_or(BoardError::NotATask(id))?;
    match task.owner().filter(|owner| !owner.is_empty()) {
        _ if status == Status::Completed => return Err(BoardError::Done(id)),
        Some(owner) if owner != me => {
            return Err(BoardError::Taken { id, owner: owner.into_owned() });
        }
        _ if !waits_for.is_empty() => return Err(BoardError::Blocked { id, waits_for }),
        _ => {}
    }
    let status = Some(Status::InProgress);
    let change = TaskChange { owner: Change::Set(me), status, ..TaskChange::default() };
    Ok(task.with(&change).into_owned())
}

/// Marks a task as completed. The tasks that depend on it stay unchanged: readers compute which tasks are blocked.
pub async fn done(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let lead = role(seat).await? == Role::Lead;
    let finish = |task: &Task<'_>| {
        if !task.is_visible() {
            return Err(BoardError::NotATask(id));
        }
        if !lead {
            check_owner(seat, id, task)?;
        }
        let status = Some(Status::Completed);
        let metadata = Update { status, ..Update::default() }.metadata_changes(task);
        let change = TaskChange { status, metadata: &metadata, ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    };
    edit(seat, id, finish).await?;
    tracing::info!(team = %seat.team, task = %id, "completed task");
    Ok(())
}

/// Deletes a task and removes it from the dependencies of other tasks.
pub async fn delete(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    if role(seat).await? != Role::Lead
        && let Ok(task) = Task::read(&show(seat, id).await?.bytes)
    {
        check_owner(seat, id, &task)?;
    }
    seat.store.delete_task(&seat.team, id, &seat.actor()).await.map_err(|error| match error {
        StoreError::NoTask { id } => BoardError::NoTask(id),
        error => error.into(),
    })?;
    let number = id.to_string();
    for (other, document) in seat.store.tasks(&seat.team).await? {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if without_dependency(&task, &number) != document.bytes {
            let result = edit(seat, other, |task| Ok(without_dependency(task, &number))).await;
            // `NoTask`: another member has deleted the dependent task in the meantime.
            match result {
                Ok(_) | Err(BoardError::NoTask(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Releases a member's unfinished tasks: they become pending and have no owner. Returns their ids. Only the member
/// itself and the lead may call this.
pub async fn release(seat: &Seat, owner: &MemberName) -> Result<Vec<TaskId>, BoardError> {
    let roster = seat.roster().await?;
    authority::require_lead_or(seat, &roster.team(), owner, "release its tasks")?;
    let mut released = Vec::new();
    for (id, document) in seat.store.tasks(&seat.team).await? {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if !is_unfinished_of(&task, owner) {
            continue;
        }
        let mut changed = false;
        let release = |task: &Task<'_>| {
            changed = is_unfinished_of(task, owner);
            let status = Some(Status::Pending);
            let change = TaskChange { owner: Change::Clear, status, ..TaskChange::default() };
            Ok(if changed { task.with(&change).into_owned() } else { task.bytes().to_vec() })
        };
        edit(seat, id, release).await?;
        if changed {
            released.push(id);
        }
    }
    Ok(released)
}

fn is_unfinished_of(task: &Task<'_>, owner: &MemberName) -> bool {
    let open = matches!(task.status(), Some(Status::Pending | Status::InProgress));
    open && task.owner().is_some_and(|name| name == owner.as_str())
}

/// Fails if the task belongs to another member. Callers skip this check for the lead.
fn check_owner(seat: &Seat, id: TaskId, task: &Task<'_>) -> Result<(), BoardError> {
    match task.owner().filter(|owner| !owner.is_empty() && *owner != seat.name.as_str()) {
        Some(owner) => Err(BoardError::Taken { id, owner: owner.into_owned() }),
        None => Ok(()),
    }
}

/// Returns the seat's role. Fails if the seat is not a member: only members may change the board.
async fn role(seat: &Seat) -> Result<Role, BoardError> {
    Ok(authority::require_member(seat, &seat.roster().await?.team())?)
}

/// Changes a task by compare-and-set. Retries if another program changed the task in the meantime.
async fn edit(
    seat: &Seat,
    id: TaskId,
    mut change: impl FnMut(&Task<'_>) -> Result<Vec<u8>, BoardError>,
) -> Result<Vec<u8>, BoardError> {
    loop {
        let document = show(seat, id).await?;
        let edited = {
            let task = Task::read(&document.bytes).map_err(|damage| {
                let place = format!("task {id}");
                StoreError::Damaged { place, damage }
            })?;
            change(&task)?
        };
        match replace(seat, id, &document, &edited).await {
            Err(BoardError::Store(StoreError::Conflict)) => {}
            other => return other.map(|()| edited),
        }
    }
}

async fn replace(
    seat: &Seat,
    id: TaskId,
    document: &Document,
    edited: &[u8],
) -> Result<(), BoardError> {
    if edited == document.bytes {
        return Ok(());
    }
    let at = document.revision;
    match seat.store.replace_task(&seat.team, id, edited, at, &seat.actor()).await {
        Ok(_) => Ok(()),
        Err(StoreError::NoTask { id }) => Err(BoardError::NoTask(id)),
        Err(error) => Err(error.into()),
    }
}

async fn check_member(seat: &Seat, name: &MemberName) -> Result<(), BoardError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    if team.member(name.as_str()).is_some() {
        return Ok(());
    }
    let members = team.member_names();
    Err(BoardError::NoMember { name: name.to_string(), members })
}

fn as_deref(change: &Change<String>) -> Change<&str> {
    match change {
        Change::Keep => Change::Keep,
        Change::Set(text) => Change::Set(text),
        Change::Clear => Change::Clear,
    }
}
