//! Tasks that were made here, and get the number of the far board.
//!
//! The far copy bears a mark in its metadata, where Claude Code keeps what it does not know: the host
//! and the number the task had there. Whoever dies behind the making finds it by that.

use std::borrow::Cow;
use std::collections::BTreeSet;

use brigade_wire::name::TaskId;
use brigade_wire::task::{Task, TaskChange};
use serde_json::Value;

use super::roster::Sides;
use super::{Link, LinkError, News, link};
use brigade_core::store::{Document, Store as _, StoreError};

/// The mark's key in the metadata of a task.
const ORIGIN: &str = "brigadeOrigin";

/// The mark of a task, if it has one.
fn origin(bytes: &[u8]) -> Option<String> {
    let task = Task::read(bytes).ok()?;
    let metadata: Value = serde_json::from_str(task.field("metadata")?).ok()?;
    metadata.get(ORIGIN)?.as_str().map(str::to_owned)
}

/// The task with another number, this mark, and other names for the tasks it names; `rename` leaves out
/// what it gives no name.
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

/// The task `far`, with what `here` names besides: what had no number when it was made may have one now.
fn with_names(far: &[u8], here: &[u8]) -> Vec<u8> {
    let (Ok(far_task), Ok(here)) = (Task::read(far), Task::read(here)) else { return far.to_vec() };
    let both = |far: Option<Vec<Cow<'_, str>>>, here: Option<Vec<Cow<'_, str>>>| {
        let mut all: Vec<Cow<'static, str>> =
            far.unwrap_or_default().into_iter().map(|name| Cow::Owned(name.into_owned())).collect();
        for name in here.unwrap_or_default() {
            if !all.contains(&name) {
                all.push(Cow::Owned(name.into_owned()));
            }
        }
        all
    };
    let change = TaskChange {
        blocks: Some(both(far_task.blocks(), here.blocks())),
        blocked_by: Some(both(far_task.blocked_by(), here.blocked_by())),
        ..TaskChange::default()
    };
    far_task.with(&change).into_owned()
}

/// Whether two states of a task differ in what a member would mind.
fn says_otherwise(here: &[u8], far: &[u8]) -> bool {
    let (Ok(here), Ok(far)) = (Task::read(here), Task::read(far)) else { return false };
    here.owner() != far.owner()
        || here.status() != far.status()
        || here.subject() != far.subject()
        || here.description() != far.description()
}

impl Link {
    fn mark_of(&self, id: TaskId) -> String {
        format!("{}/{id}", self.ends.host)
    }

    /// Whether a task was in step at some time, where nothing is remembered of it.
    pub(super) fn was_in_step(&self, id: TaskId, here: Option<&Document>) -> bool {
        let marked = here.is_some_and(|here| origin(&here.bytes).is_some());
        marked || self.once_in_step.as_ref().is_some_and(|once| once.contains(&id.get()))
    }

    /// Whether both sides speak of one task, where nothing is remembered of it.
    pub(super) fn is_same(&self, here: Option<&Document>, there: Option<&Document>) -> bool {
        let (Some(here), Some(there)) = (here, there) else { return false };
        let mark = origin(&there.bytes);
        if mark.is_some() {
            return mark == origin(&here.bytes);
        }
        let subject = |document: &Document| {
            Task::read(&document.bytes).ok().and_then(|task| Some(task.subject()?.into_owned()))
        };
        // Only without a memory: otherwise two of one subject are two.
        self.memory.fresh && subject(here).is_some() && subject(here) == subject(there)
    }

    /// Puts a task that was made here on the far board.
    pub(super) async fn make_task(
        &mut self,
        id: TaskId,
        here: &Document,
        there: Option<&Document>,
        sides: &Sides,
    ) -> Result<(), LinkError> {
        let ends = self.ends.clone();
        let Some(by) = self.author(id, [Some(here), None], sides) else {
            self.complain(format!("task {id} was made here, where no member lives; it stays here"));
            return Ok(());
        };
        let mark = self.mark_of(id);
        // What is not on the far board has no number there yet; it is named when it has.
        let unmade = self.unmade().await?;
        let marked = there.is_some_and(|there| origin(&there.bytes).as_ref() == Some(&mark));
        let unsure = marked || self.memory.making.contains(&id.get()) || self.memory.fresh;
        let found = if unsure { self.find(&mark).await? } else { None };
        let is_new = found.is_none();
        let (number, far, whole) = match found {
            Some((number, far)) => {
                let whole = with_names(&far.bytes, &here.bytes);
                (number, far, whole)
            }
            None => {
                self.memory.making.insert(id.get());
                self.save()?;
                let write = |number: TaskId| {
                    let name = |name: &str| (!unmade.contains(name)).then(|| name.to_owned());
                    rewritten(&here.bytes, number, Some(&mark), name)
                };
                let call = ends.far.create_task(&ends.team, &write, &by);
                let (number, revision) = ends.far(call).await?;
                let whole =
                    rewritten(&here.bytes, number, Some(&mark), |name| Some(name.to_owned()));
                (number, Document { bytes: write(number), revision }, whole)
            }
        };
        if says_otherwise(&here.bytes, &far.bytes) {
            // It was made in an earlier life of the link, and then both sides changed it.
            self.tell_loser(id, here, Some(&far), sides).await?;
        }
        if number == id {
            if is_new {
                // A change that comes in between is one to this.
                self.in_step(id, &far);
            }
            let written =
                ends.local.replace_task(&ends.team, id, &whole, here.revision, &link()).await;
            written.map_err(LinkError::Here)?;
            self.in_step(id, &far);
        } else {
            self.move_task((id, number), (&far, &whole), &mark, (here, there), sides).await?;
        }
        self.memory.making.remove(&id.get());
        self.save()?;
        self.again.insert(number);
        let was = (number != id).then_some(id.get());
        self.say(&News::TaskOut { id: number.get(), was });
        Ok(())
    }

    /// The task with that mark on the far board.
    async fn find(&self, mark: &str) -> Result<Option<(TaskId, Document)>, LinkError> {
        let tasks = self.ends.far(self.ends.far.tasks(&self.ends.team)).await?;
        let mut tasks = tasks.into_iter();
        Ok(tasks.find(|(_, task)| origin(&task.bytes).as_deref() == Some(mark)))
    }

    /// The numbers of tasks that are here and not on the far board.
    async fn unmade(&self) -> Result<BTreeSet<String>, LinkError> {
        let ends = &self.ends;
        let here = ends.local.tasks(&ends.team).await.map_err(LinkError::Here)?;
        let unmade = here.iter().filter(|(id, _)| !self.memory.tasks.contains_key(&id.get()));
        Ok(unmade.map(|(id, _)| id.to_string()).collect())
    }

    /// Gives a task the number it has on the far board, here and where others of this host name it. Done
    /// again from any point, it comes to the same.
    async fn move_task(
        &mut self,
        (from, to): (TaskId, TaskId),
        (far, whole): (&Document, &[u8]),
        mark: &str,
        (here, there): (&Document, Option<&Document>),
        sides: &Sides,
    ) -> Result<(), LinkError> {
        let ends = self.ends.clone();
        let placed = ends.local.place_task(&ends.team, to, whole, &link()).await;
        if let Err(StoreError::Conflict) = placed {
            let taken = ends.local.task(&ends.team, to).await.map_err(LinkError::Here)?;
            // If it bears the mark, it was moved before. Otherwise it was made here as well and has a number
            // that is not its own: it moves first, and this one is looked at again.
            if let Some(taken) = taken.filter(|its| origin(&its.bytes).as_deref() != Some(mark)) {
                self.memory.tasks.remove(&to.get());
                Box::pin(self.make_task(to, &taken, None, sides)).await?;
                return Err(LinkError::Here(StoreError::Conflict));
            }
        } else {
            placed.map_err(LinkError::Here)?;
        }
        self.in_step(to, far);
        self.rename(from, to).await?;
        if let Some(author) = self.author(from, [Some(here), None], sides)
            && let Ok(author) = author.0.parse()
        {
            let text = format!(
                "Task {from}, which was made here, is number {to} on the board of the team: {from} was taken on another host."
            );
            let words = ["moved", &from.to_string(), &to.to_string()];
            self.tell(&author, &words, &text, sides).await?;
        }
        match there {
            Some(there) => self.write_task(from, here, there).await,
            None => self.delete_here(from).await,
        }
    }

    /// Has the tasks of this host that name one by its old number name it by the new one.
    async fn rename(&mut self, from: TaskId, to: TaskId) -> Result<(), LinkError> {
        let ends = &self.ends;
        let (old, new) = (from.to_string(), to.to_string());
        for (id, task) in ends.local.tasks(&ends.team).await.map_err(LinkError::Here)? {
            let base = self.memory.tasks.get(&id.get());
            // What it named when it was in step is a number of the far board.
            if id == from || base.is_some_and(|base| base.names.contains(&old)) {
                continue;
            }
            let name = |name: &str| Some(if name == old { new.clone() } else { name.to_owned() });
            let renamed = rewritten(&task.bytes, id, None, name);
            if renamed == task.bytes {
                continue;
            }
            match ends.local.replace_task(&ends.team, id, &renamed, task.revision, &link()).await {
                Ok(_) | Err(StoreError::Conflict | StoreError::NoTask { .. }) => {}
                Err(error) => return Err(LinkError::Here(error)),
            }
        }
        Ok(())
    }
}
