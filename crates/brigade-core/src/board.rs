//! The shared task board: add, claim, finish, what is ready.
//!
//! ```
//! use brigade_core::board::{self, BoardError, TaskPlan};
//! use brigade_core::graph::State;
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let design = board::add(&lead, &TaskPlan::new("design it")).await?;
//! let plan = TaskPlan { blocked_by: vec![design], ..TaskPlan::new("build it") };
//! let build = board::add(&lead, &plan).await?;
//!
//! board::claim(&bob, design).await?;
//! assert!(matches!(board::claim(&bob, build).await, Err(BoardError::Blocked { .. })));
//! board::done(&bob, design).await?;
//! let (_, graph) = board::list(&lead).await?;
//! assert_eq!(graph.state(build), Some(State::Ready));
//! # Ok(())
//! # }
//! ```

mod dependency;
mod error;
mod plan;

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::protocol::{Protocol, TaskAssignment};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};

use self::dependency::{depend, mirror, waits_for, without};
pub use self::error::BoardError;
pub use self::plan::{MAX_TASK, TaskPlan, Update};
use crate::authority::{self, Role};
use crate::clock::wire_time;
use crate::graph::Graph;
use crate::mail;
use crate::seat::Seat;
use crate::store::{Document, StoreError};

/// Every task, by number, as its bytes; and the graph of those Claude Code would show.
pub async fn list(seat: &Seat) -> Result<(Vec<(TaskId, Document)>, Graph), BoardError> {
    let mut tasks = seat.store.tasks(&seat.team).await?;
    let mut graph = Graph::default();
    for (id, document) in &mut tasks {
        if let Ok(task) = Task::read(&document.bytes) {
            graph.add(*id, &task);
        } else if let Some(whole) = seat.store.task(&seat.team, *id).await? {
            *document = whole;
            if let Ok(task) = Task::read(&document.bytes) {
                graph.add(*id, &task);
            }
        }
    }
    Ok((tasks, graph.finish()))
}

/// One task.
pub async fn show(seat: &Seat, id: TaskId) -> Result<Document, BoardError> {
    seat.store.task(&seat.team, id).await?.ok_or(BoardError::NoTask(id))
}

/// Adds a task.
pub async fn add(seat: &Seat, plan: &TaskPlan) -> Result<TaskId, BoardError> {
    if plan.subject.trim().is_empty() {
        return Err(BoardError::NoSubject);
    }
    let len = plan.len();
    if len > MAX_TASK {
        return Err(BoardError::TooLong { len });
    }
    leads(seat).await?;
    let blocked_by: BTreeSet<TaskId> = plan.blocked_by.iter().copied().collect();
    for &blocker in &blocked_by {
        show(seat, blocker).await?;
    }
    let blocked_by: Vec<TaskId> = blocked_by.into_iter().collect();
    let write = |id: TaskId| {
        let task = NewTask {
            id,
            subject: &plan.subject,
            description: &plan.description,
            active_form: plan.active_form.as_deref(),
            owner: None,
            status: Status::Pending,
            blocks: &[],
            blocked_by: &blocked_by,
            metadata: &plan.metadata,
        };
        task.to_bytes()
    };
    let (id, _) = seat.store.create_task(&seat.team, &write, &seat.actor()).await?;
    // A new task is in nobody's way, so this cannot close a circle. `blockedBy` is what counts; if
    // we die here, only its mirror image is missing.
    for &blocker in &blocked_by {
        match edit(seat, blocker, |task| Ok(mirror(task, id))).await {
            // Deleted meanwhile; then the new task does not wait for it.
            Ok(_) | Err(BoardError::NoTask(_)) => {}
            Err(error) => return Err(error),
        }
    }
    tracing::info!(team = %seat.team, task = %id, "added");
    Ok(id)
}

/// Changes a task. A new owner is told, as Claude Code does, unless it took the task itself.
pub async fn update(seat: &Seat, id: TaskId, update: &Update) -> Result<(), BoardError> {
    let lead = leads(seat).await?;
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
        active_form: borrow(&update.active_form),
        owner,
        status: update.status,
        blocks: None,
        blocked_by: None,
        metadata: &update.metadata,
    };
    // First what may be refused.
    for &blocker in &update.add_blocked_by {
        depend(seat, id, blocker).await?;
    }
    for &blocked in &update.add_blocks {
        depend(seat, blocked, id).await?;
    }
    let moves = update.status.is_some() || update.owner != Change::Keep;
    let grows = update.says_more();
    let mut before = None;
    let document = edit(seat, id, |task| {
        if moves && !lead {
            theirs(seat, id, task)?;
        }
        before = task.owner().map(Cow::into_owned);
        let edited = task.with(&change).into_owned();
        let len = edited.len();
        // One that another program made too long may still be made shorter, or moved.
        if len > MAX_TASK && grows { Err(BoardError::TooLong { len }) } else { Ok(edited) }
    });
    let document = document.await?;
    match &update.owner {
        Change::Set(name) if before.as_deref() != Some(name.as_str()) && *name != seat.name => {
            assign(seat, id, name, &document).await
        }
        _ => Ok(()),
    }
}

/// Takes a task nobody has: afterwards it is the seat's and in progress, or somebody was first.
/// Taking again what one has already changes nothing.
pub async fn claim(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let me = seat.name.as_str();
    loop {
        // At once: in an engine each is a way there and back.
        let (document, is_member) = tokio::join!(show(seat, id), leads(seat));
        let document = document?;
        // What it waits for and whose it is are of one revision: if either changes before we have
        // written, the write is refused and we look again.
        let waits_for = waits_for(seat, id, &document).await?;
        let edited = take(id, &document, me, waits_for)?;
        is_member?;
        match replace(seat, id, &document, &edited).await {
            Err(BoardError::Store(StoreError::Conflict)) => {}
            other => {
                if other.is_ok() {
                    tracing::info!(team = %seat.team, member = me, task = %id, "claimed");
                }
                return other;
            }
        }
    }
}

/// The task as `me` has it after claiming it.
fn take(
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

/// Marks a task completed. Only its own file changes: whether others wait for it is computed.
pub async fn done(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    let lead = leads(seat).await?;
    let finish = |task: &Task<'_>| {
        if !task.is_visible() {
            return Err(BoardError::NotATask(id));
        }
        if !lead {
            theirs(seat, id, task)?;
        }
        let change = TaskChange { status: Some(Status::Completed), ..TaskChange::default() };
        Ok(task.with(&change).into_owned())
    };
    edit(seat, id, finish).await?;
    tracing::info!(team = %seat.team, task = %id, "completed");
    Ok(())
}

/// Deletes a task, and takes it out of the dependencies of others.
pub async fn delete(seat: &Seat, id: TaskId) -> Result<(), BoardError> {
    if !leads(seat).await?
        && let Ok(task) = Task::read(&show(seat, id).await?.bytes)
    {
        theirs(seat, id, &task)?;
    }
    seat.store.delete_task(&seat.team, id, &seat.actor()).await.map_err(|error| match error {
        StoreError::NoTask { id } => BoardError::NoTask(id),
        error => error.into(),
    })?;
    let number = id.to_string();
    for (other, document) in seat.store.tasks(&seat.team).await? {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if without(&task, &number) != document.bytes {
            let out = edit(seat, other, |task| Ok(without(task, &number))).await;
            // Somebody deleted it meanwhile, and with it what it waited for.
            match out {
                Ok(_) | Err(BoardError::NoTask(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Gives back the unfinished tasks of a member that is gone: no owner, pending. Tells which. For the
/// member itself to do, or for the lead.
pub async fn release(seat: &Seat, owner: &MemberName) -> Result<Vec<TaskId>, BoardError> {
    let config = seat.config().await?;
    authority::lead_or(seat, &seat.read(&config)?, owner, "give back its tasks")?;
    let mut released = Vec::new();
    for (id, document) in seat.store.tasks(&seat.team).await? {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if !is_open_of(&task, owner) {
            continue;
        }
        let mut changed = false;
        let give_back = |task: &Task<'_>| {
            changed = is_open_of(task, owner);
            let status = Some(Status::Pending);
            let change = TaskChange { owner: Change::Clear, status, ..TaskChange::default() };
            Ok(if changed { task.with(&change).into_owned() } else { task.bytes().to_vec() })
        };
        edit(seat, id, give_back).await?;
        if changed {
            released.push(id);
        }
    }
    Ok(released)
}

fn is_open_of(task: &Task<'_>, owner: &MemberName) -> bool {
    let open = matches!(task.status(), Some(Status::Pending | Status::InProgress));
    open && task.owner().is_some_and(|its| its == owner.as_str())
}

/// Refuses a task that is somebody else's. Only its owner and the lead move it.
fn theirs(seat: &Seat, id: TaskId, task: &Task<'_>) -> Result<(), BoardError> {
    match task.owner().filter(|owner| !owner.is_empty() && *owner != seat.name.as_str()) {
        Some(owner) => Err(BoardError::Taken { id, owner: owner.into_owned() }),
        None => Ok(()),
    }
}

/// Whether the seat leads. It has to be a member's: nobody else's hand is on the board.
async fn leads(seat: &Seat) -> Result<bool, BoardError> {
    let config = seat.config().await?;
    Ok(authority::member(seat, &seat.read(&config)?)? == Role::Lead)
}

/// Changes a task by compare-and-set, as often as it takes.
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

/// Tells the new owner.
async fn assign(
    seat: &Seat,
    id: TaskId,
    owner: &MemberName,
    document: &[u8],
) -> Result<(), BoardError> {
    let task = Task::read(document).map_err(|_| BoardError::NotATask(id))?;
    let assignment = TaskAssignment {
        task_id: id.to_string(),
        subject: task.subject().unwrap_or_default().into_owned(),
        description: task.description().unwrap_or_default().into_owned(),
        assigned_by: seat.name.to_string(),
        timestamp: wire_time(seat.clock.now()),
    };
    let text = Protocol::TaskAssignment(assignment).to_text();
    let told = mail::send_protocol(seat, owner, &text).await;
    told.map(drop).map_err(|source| {
        let (owner, source) = (owner.clone(), Box::new(source));
        BoardError::NotTold { id, owner, source }
    })
}

async fn check_member(seat: &Seat, name: &MemberName) -> Result<(), BoardError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    if team.member(name.as_str()).is_some() {
        return Ok(());
    }
    let members = mail::member_names(&team);
    Err(BoardError::NoMember { name: name.to_string(), members })
}

fn borrow(change: &Change<String>) -> Change<&str> {
    match change {
        Change::Keep => Change::Keep,
        Change::Set(text) => Change::Set(text),
        Change::Clear => Change::Clear,
    }
}
