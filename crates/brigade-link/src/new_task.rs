//! Copies tasks that were created on this host to the shared board, which assigns their numbers.
//!
//! The copy has an origin mark, which consists of the host and the task's original number on that
//! host. The mark is in the metadata, where Claude Code preserves unknown fields. If a link dies
//! after creating the copy, the next link finds the copy by this mark.

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Task, TaskChange};
use serde_json::Value;

use super::roster::MemberSides;
use super::{Link, LinkError, LinkEvent, link_actor};
use brigade_core::store::{BoardStore, Document, StoreError};

/// The metadata key of the origin mark.
const ORIGIN: &str = "brigadeOrigin";

/// Returns the origin mark of a task, if it has one.
fn origin(bytes: &[u8]) -> Option<String> {
    let task = Task::read(bytes).ok()?;
    let metadata: Value = serde_json::from_str(task.field("metadata")?).ok()?;
    metadata.get(ORIGIN)?.as_str().map(str::to_owned)
}

/// Changes the task's number to `id`, and sets its origin mark if `mark` is given. Replaces each reference to
/// another task with the result of `rename`, or drops the reference if the result is `None`.
fn rewritten(
    bytes: &[u8],
    id: TaskId,
    mark: Option<&str>,
    rename: impl Fn(&str) -> Option<String>,
) -> Vec<u8> {
    let Ok(task) = Task::read(bytes) else { return bytes.to_vec() };
    let renamed = |names: Option<Vec<Cow<'_, str>>>| -> Option<Vec<Cow<'static, str>>> {
        Some(names?.iter().filter_map(|name| rename(name)).map(Cow::Owned).collect())
    };
    let mark = mark.map(|mark| (ORIGIN.to_owned(), Some(Value::from(mark))));
    let metadata: Vec<(String, Option<Value>)> = mark.into_iter().collect();
    let change = TaskChange {
        blocks: renamed(task.blocks()),
        blocked_by: renamed(task.blocked_by()),
        metadata: &metadata,
        ..TaskChange::default()
    };
    let changed = task.with(&change).into_owned();
    match Task::read(&changed) {
        Ok(task) => task.numbered(id).into_owned(),
        Err(_) => changed,
    }
}

/// Adds the references in `local` to `shared_task`. When `shared_task` was created, some of the
/// referenced tasks had no number on the shared board. They may have one now.
fn with_references(shared_task: &[u8], local: &[u8]) -> Vec<u8> {
    let (Ok(parsed), Ok(local)) = (Task::read(shared_task), Task::read(local)) else {
        return shared_task.to_vec();
    };
    let both = |shared_task: Option<Vec<Cow<'_, str>>>, local: Option<Vec<Cow<'_, str>>>| {
        let mut all: Vec<Cow<'static, str>> = shared_task
            .unwrap_or_default()
            .into_iter()
            .map(|name| Cow::Owned(name.into_owned()))
            .collect();
        for name in local.unwrap_or_default() {
            if !all.contains(&name) {
                all.push(Cow::Owned(name.into_owned()));
            }
        }
        all
    };
    let change = TaskChange {
        blocks: Some(both(parsed.blocks(), local.blocks())),
        blocked_by: Some(both(parsed.blocked_by(), local.blocked_by())),
        ..TaskChange::default()
    };
    parsed.with(&change).into_owned()
}

/// Returns whether two versions of a task differ in a way that matters to members.
fn differs(local: &[u8], shared_task: &[u8]) -> bool {
    let (Ok(local), Ok(shared_task)) = (Task::read(local), Task::read(shared_task)) else {
        return false;
    };
    local.owner() != shared_task.owner()
        || local.status() != shared_task.status()
        || local.subject() != shared_task.subject()
        || local.description() != shared_task.description()
}

impl Link {
    /// Returns whether a task was ever synchronized. Needed only if the saved state is lost.
    pub(super) fn was_synced(&self, id: TaskId, local: Option<&Document>) -> bool {
        let marked = local.is_some_and(|local| origin(&local.bytes).is_some());
        marked || self.synced_before.as_ref().is_some_and(|synced| synced.contains(&id.get()))
    }

    /// Returns whether these are the same task, as opposed to two tasks with the same number.
    pub(super) fn is_same(&self, local: Option<&Document>, shared: Option<&Document>) -> bool {
        let (Some(local), Some(shared)) = (local, shared) else { return false };
        let mark = origin(&shared.bytes);
        if mark.is_some() {
            return mark == origin(&local.bytes);
        }
        let subject = |document: &Document| {
            Task::read(&document.bytes).ok().and_then(|task| Some(task.subject()?.into_owned()))
        };
        // Compare the subjects only if the saved state is lost. With a saved state, two tasks that
        // have only the subject in common are different tasks.
        self.state.fresh && subject(local).is_some() && subject(local) == subject(shared)
    }

    /// Copies a new local task to the shared board.
    pub(super) async fn publish_task(
        &mut self,
        id: TaskId,
        local: &Document,
        shared: Option<&Document>,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let config = self.config.clone();
        let Some(by) = self.author(id, [Some(local), None], sides) else {
            self.report_problem(format!(
                "task {id} was created on this host, which has no members; the task is not shared"
            ));
            return Ok(());
        };
        let mark = format!("{}/{id}", config.host);
        // Leave out references to tasks that are not on the shared board yet. These references are
        // added once the tasks have a number there.
        let unpublished = self.unpublished().await?;
        let marked = shared.is_some_and(|shared| origin(&shared.bytes).as_ref() == Some(&mark));
        let unsure = marked || self.state.creating.contains(&id.get()) || self.state.fresh;
        let found = if unsure { self.find(&mark).await? } else { None };
        let is_new = found.is_none();
        let (number, shared_task, complete) = match found {
            Some((number, shared_task)) => {
                let complete = with_references(&shared_task.bytes, &local.bytes);
                (number, shared_task, complete)
            }
            None => {
                self.state.creating.insert(id.get());
                self.save()?;
                let write = |number: TaskId| {
                    let name = |name: &str| (!unpublished.contains(name)).then(|| name.to_owned());
                    rewritten(&local.bytes, number, Some(&mark), name)
                };
                let call = config.shared.create_task(&config.team, &write, &by);
                let (number, revision) = config.call_shared(call).await?;
                let complete =
                    rewritten(&local.bytes, number, Some(&mark), |name| Some(name.to_owned()));
                (number, Document { bytes: write(number), revision }, complete)
            }
        };
        if differs(&local.bytes, &shared_task.bytes) {
            // An earlier link process created the copy, and then both the local task and the copy
            // were changed.
            self.notify_loser(id, local, Some(&shared_task), sides).await?;
        }
        if number == id {
            if is_new {
                // Record this version of the task as synchronized before writing the task. A local
                // change that is made meanwhile then counts as a change to this version.
                self.set_synced(id, &shared_task);
            }
            let written = config
                .local
                .replace_task(&config.team, id, &complete, local.revision, &link_actor())
                .await;
            written.map_err(LinkError::Local)?;
            self.set_synced(id, &shared_task);
        } else {
            self.move_task((id, number), (&shared_task, &complete), &mark, (local, shared), sides)
                .await?;
        }
        self.state.creating.remove(&id.get());
        self.save()?;
        self.recheck.insert(number);
        let was = (number != id).then_some(id.get());
        self.emit(&LinkEvent::TaskOut { id: number.get(), was });
        Ok(())
    }

    /// Returns the task on the shared board that has this origin mark.
    async fn find(&self, mark: &str) -> Result<Option<(TaskId, Document)>, LinkError> {
        let tasks = self.config.call_shared(self.config.shared.tasks(&self.config.team)).await?;
        let mut tasks = tasks.into_iter();
        Ok(tasks.find(|(_, task)| origin(&task.bytes).as_deref() == Some(mark)))
    }

    /// Returns the numbers of local tasks that are not on the shared board.
    async fn unpublished(&self) -> Result<BTreeSet<String>, LinkError> {
        let config = &self.config;
        let local = config.local.tasks(&config.team).await.map_err(LinkError::Local)?;
        let unpublished = local.iter().filter(|(id, _)| !self.state.tasks.contains_key(&id.get()));
        Ok(unpublished.map(|(id, _)| id.to_string()).collect())
    }

    /// Gives a task on this host its number on the shared board, and updates references to the
    /// task. This can be repeated after an interruption at any point.
    async fn move_task(
        &mut self,
        (from, to): (TaskId, TaskId),
        (shared_task, complete): (&Document, &[u8]),
        mark: &str,
        (local, shared): (&Document, Option<&Document>),
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let config = self.config.clone();
        let placed = config.local.insert_task(&config.team, to, complete, &link_actor()).await;
        if let Err(StoreError::Conflict) = placed {
            let taken = config.local.task(&config.team, to).await.map_err(LinkError::Local)?;
            // If the task at `to` has the origin mark, an earlier attempt has already renumbered our task.
            // Otherwise, another new task on this host has the number `to`. Publish the other task first, so that
            // it gets another number. The conflict makes the caller try our task again.
            if let Some(taken) = taken.filter(|task| origin(&task.bytes).as_deref() != Some(mark)) {
                self.state.tasks.remove(&to.get());
                Box::pin(self.publish_task(to, &taken, None, sides)).await?;
                return Err(LinkError::Local(StoreError::Conflict));
            }
        } else {
            placed.map_err(LinkError::Local)?;
        }
        self.set_synced(to, shared_task);
        self.rename(from, to).await?;
        if let Some(author) = self.author(from, [Some(local), None], sides)
            && let Ok(author) = author.0.parse()
        {
            let text = format!(
                "Task {from}, created on this host, is now task {to}: another host already used number {from}."
            );
            let subject = ["moved", &from.to_string(), &to.to_string()];
            self.notify(&author, &subject, &text, sides).await?;
        }
        match shared {
            Some(shared) => self.write_task(from, local, shared).await,
            None => self.delete_local(from).await,
        }
    }

    /// Updates references to the task `from`, which is now `to`, in all tasks on this host.
    async fn rename(&mut self, from: TaskId, to: TaskId) -> Result<(), LinkError> {
        let config = &self.config;
        let (old, new) = (from.to_string(), to.to_string());
        for (id, task) in config.local.tasks(&config.team).await.map_err(LinkError::Local)? {
            let base = self.state.tasks.get(&id.get());
            // A reference that the task had at the last synchronization already is the number on the
            // shared board. Do not change it.
            if id == from || base.is_some_and(|base| base.references.contains(&old)) {
                continue;
            }
            let name = |name: &str| Some(if name == old { new.clone() } else { name.to_owned() });
            let renamed = rewritten(&task.bytes, id, None, name);
            if renamed == task.bytes {
                continue;
            }
            match config
                .local
                .replace_task(&config.team, id, &renamed, task.revision, &link_actor())
                .await
            {
                Ok(_) | Err(StoreError::Conflict | StoreError::NoTask { .. }) => {}
                Err(error) => return Err(LinkError::Local(error)),
            }
        }
        Ok(())
    }
}
