//! Tasks. The far board is right; what was changed here counts if it was changed there by nobody since.

use std::collections::BTreeSet;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Task;

use super::memory::Base;
use super::pass::Work;
use super::roster::Sides;
use super::step::{Past, Step, decide};
use super::{Link, LinkError, News, link};
use brigade_core::event::Event;
use brigade_core::store::{Actor, Document, Store as _};

/// How often one task is looked at before the rest is left to the next time.
const TRIES: usize = 10;
/// How long after a task was written here a native program may still write what it made of the state
/// before: Claude Code 2.1.50 takes no lock on tasks.
const LATE_WRITE: Duration = Duration::from_secs(2);

impl Link {
    /// Brings the boards into step.
    pub(super) async fn board(&mut self, work: &Work, sides: &Sides) -> Result<(), LinkError> {
        if !work.every_task && work.tasks.is_empty() {
            return Ok(());
        }
        let ends = self.ends.clone();
        self.recall().await?;
        let mut ids = work.tasks.clone();
        let here = ends.local.tasks(&ends.team).await.map_err(LinkError::Here)?;
        // Those made here first: what names them has to know their numbers.
        let mut new: BTreeSet<TaskId> = here.iter().map(|(id, _)| *id).collect();
        if work.every_task {
            let there = ends.far(ends.far.tasks(&ends.team)).await?;
            // Most are in step, and need no second look.
            for (id, document) in &there {
                let same = here.iter().any(|(its, here)| its == id && here.bytes == document.bytes);
                if same {
                    self.in_step(*id, document);
                } else {
                    ids.insert(*id);
                }
            }
            let known = self.memory.tasks.keys().copied().filter_map(TaskId::new);
            ids.extend(known.filter(|id| !there.iter().any(|(its, _)| its == id)));
        }
        new.retain(|id| !self.memory.tasks.contains_key(&id.get()));
        for id in new {
            let done = self.settle_task(id, sides).await;
            self.pass_over(done, &format!("task {id}"))?;
        }
        ids.append(&mut self.again);
        for id in ids {
            let done = self.settle_task(id, sides).await;
            self.pass_over(done, &format!("task {id}"))?;
        }
        Ok(())
    }

    /// Without a memory, what the journal of the files knows of tasks that were in step.
    async fn recall(&mut self) -> Result<(), LinkError> {
        if !self.memory.fresh || self.once_in_step.is_some() {
            return Ok(());
        }
        let ends = &self.ends;
        let history = ends.local.proceedings(&ends.team).await.map_err(LinkError::Here)?;
        let mut once = std::collections::HashSet::new();
        for record in history {
            match record.event {
                Event::TeamCreated { .. } => once.clear(),
                Event::Task { id, .. } if record.by.as_deref() == Some(super::LINK) => {
                    once.insert(id);
                }
                _ => {}
            }
        }
        self.once_in_step = Some(once);
        Ok(())
    }

    /// Brings one task into step.
    pub(super) async fn settle_task(&mut self, id: TaskId, sides: &Sides) -> Result<(), LinkError> {
        let ends = self.ends.clone();
        for _ in 0..TRIES {
            let here = ends.local.task(&ends.team, id).await.map_err(LinkError::Here)?;
            let there = ends.far(ends.far.task(&ends.team, id)).await?;
            let late = self.placed.get(&id).is_some_and(|at| at.elapsed() < LATE_WRITE);
            let once = self.was_in_step(id, here.as_ref());
            let same = once || self.is_same(here.as_ref(), there.as_ref());
            let base = self.memory.tasks.get(&id.get());
            let step = decide(here.as_ref(), there.as_ref(), Past { base, same, once, late });
            match self.take_step(id, step, (here.as_ref(), there.as_ref()), sides).await {
                Err(error) if error.is_conflict() || error.is_no_task() => {}
                done => return done,
            }
        }
        Ok(())
    }

    async fn take_step(
        &mut self,
        id: TaskId,
        step: Step,
        (here, there): (Option<&Document>, Option<&Document>),
        sides: &Sides,
    ) -> Result<(), LinkError> {
        let ends = self.ends.clone();
        let number = id.get();
        match (step, here, there) {
            (Step::Same, _, Some(there)) => self.in_step(id, there),
            (Step::New, Some(here), _) => self.make_task(id, here, there, sides).await?,
            (Step::Out, Some(here), Some(there)) => {
                let done = match self.author(id, [Some(here), Some(there)], sides) {
                    Some(by) => {
                        let (task, at) = (&here.bytes, there.revision);
                        let call = ends.far.replace_task(&ends.team, id, task, at, &by);
                        ends.far(call).await.map(Some)
                    }
                    None => Ok(None),
                };
                match done {
                    Ok(Some(revision)) => {
                        self.memory.tasks.insert(number, Base::of(&here.bytes, revision));
                        self.changed_by.remove(&id);
                        self.say(&News::TaskOut { id: number, was: None });
                    }
                    Ok(None) => self.lose(id, here, Some(there), sides).await?,
                    Err(error) if error.is_forbidden() => {
                        self.complain(format!("task {id}: {error}"));
                        self.lose(id, here, Some(there), sides).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
            (Step::In { lost: true }, Some(here), Some(there)) => {
                self.lose(id, here, Some(there), sides).await?;
            }
            (Step::In { .. }, Some(here), Some(there)) => self.write_task(id, here, there).await?,
            (Step::Place, _, Some(there)) => {
                let placed = ends.local.place_task(&ends.team, id, &there.bytes, &link()).await;
                placed.map_err(LinkError::Here)?;
                self.placed.insert(id, tokio::time::Instant::now());
                self.in_step(id, there);
                self.say(&News::TaskIn { id: number });
            }
            (Step::DeleteHere { lost }, Some(here), _) => {
                if lost {
                    self.lose(id, here, None, sides).await?;
                } else {
                    self.delete_here(id).await?;
                }
            }
            (Step::DeleteThere, _, Some(there)) => {
                // With a team go its tasks, and nobody deleted those.
                if ends.local.team(&ends.team).await.map_err(LinkError::Here)?.is_none() {
                    let team = ends.team.clone();
                    return Err(LinkError::Here(brigade_core::store::StoreError::NoTeam { team }));
                }
                let by = self.author(id, [Some(there), None], sides);
                let by = by.unwrap_or_else(|| Actor(ends.host.clone()));
                match ends.far(ends.far.delete_task(&ends.team, id, &by)).await {
                    Err(error) if error.is_forbidden() => {
                        self.complain(format!("task {id}: {error}"));
                        // It is still there, so it comes back.
                        self.memory.tasks.remove(&number);
                        return Err(LinkError::Here(brigade_core::store::StoreError::Conflict));
                    }
                    Err(error) if error.is_no_task() => {}
                    done => done?,
                }
                self.memory.tasks.remove(&number);
                self.say(&News::TaskGone { id: number });
            }
            _ => {
                self.memory.tasks.remove(&number);
                self.memory.making.remove(&number);
            }
        }
        Ok(())
    }

    pub(super) fn in_step(&mut self, id: TaskId, there: &Document) {
        self.memory.tasks.insert(id.get(), Base::of(&there.bytes, there.revision));
        self.memory.making.remove(&id.get());
        self.changed_by.remove(&id);
    }

    /// Writes the far state of a task over the one here.
    pub(super) async fn write_task(
        &mut self,
        id: TaskId,
        here: &Document,
        there: &Document,
    ) -> Result<(), LinkError> {
        let Self { ends, .. } = self;
        let written =
            ends.local.replace_task(&ends.team, id, &there.bytes, here.revision, &link()).await;
        written.map_err(LinkError::Here)?;
        self.placed.insert(id, tokio::time::Instant::now());
        self.in_step(id, there);
        self.say(&News::TaskIn { id: id.get() });
        Ok(())
    }

    pub(super) async fn delete_here(&mut self, id: TaskId) -> Result<(), LinkError> {
        let ends = &self.ends;
        match ends.local.delete_task(&ends.team, id, &link()).await.map_err(LinkError::Here) {
            Err(error) if !error.is_no_task() => return Err(error),
            _ => {}
        }
        self.memory.tasks.remove(&id.get());
        self.say(&News::TaskGone { id: id.get() });
        Ok(())
    }

    /// What was done here did not count. First whoever did it is told, then it is as it is there.
    async fn lose(
        &mut self,
        id: TaskId,
        here: &Document,
        there: Option<&Document>,
        sides: &Sides,
    ) -> Result<(), LinkError> {
        self.tell_loser(id, here, there, sides).await?;
        match there {
            Some(there) => self.write_task(id, here, there).await,
            None => self.delete_here(id).await,
        }
    }

    /// Tells whoever changed a task here that it did not count.
    pub(super) async fn tell_loser(
        &mut self,
        id: TaskId,
        here: &Document,
        there: Option<&Document>,
        sides: &Sides,
    ) -> Result<(), LinkError> {
        let loser = self.loser(id, here, sides);
        if let Some(loser) = &loser {
            let text = lost_words(id, loser.as_str(), here, there);
            let at = there.map_or_else(|| "gone".into(), |there| there.revision.0.to_string());
            self.tell(loser, &["lost", &id.to_string(), &at], &text, sides).await?;
        }
        self.say(&News::Lost { id: id.get(), told: loser.map(|loser| loser.to_string()) });
        Ok(())
    }

    /// Who changed a task here, as far as that can be told: whoever is known to have, who has it here,
    /// who had it, the lead.
    fn loser(&self, id: TaskId, here: &Document, sides: &Sides) -> Option<MemberName> {
        let task = Task::read(&here.bytes).ok();
        let owner = task.as_ref().and_then(|task| Some(task.owner()?.into_owned()));
        let had = self.memory.tasks.get(&id.get()).and_then(|base| base.owner.clone());
        let who = [self.changed_by.get(&id).cloned(), owner, had, sides.lead.clone()];
        let local = who.into_iter().flatten().find(|who| sides.is_local(who))?;
        local.parse().ok()
    }

    /// In whose name a change is made in the far store; nobody's if nobody lives here.
    pub(super) fn author(
        &self,
        id: TaskId,
        states: [Option<&Document>; 2],
        sides: &Sides,
    ) -> Option<Actor> {
        let owner = |document: &Document| {
            Task::read(&document.bytes).ok().and_then(|task| Some(task.owner()?.into_owned()))
        };
        let owners = states.into_iter().flatten().filter_map(owner);
        let known = self.changed_by.get(&id).cloned();
        let who = known.into_iter().chain(owners).chain(sides.lead.clone());
        let first = sides.local.first().map(ToString::to_string);
        let who = who.into_iter().find(|who| sides.is_local(who)).or(first);
        who.map(Actor)
    }
}

/// What the loser is told.
fn lost_words(id: TaskId, loser: &str, here: &Document, there: Option<&Document>) -> String {
    let Some(there) = there else {
        return format!("Your change to task {id} did not count: the task was deleted.");
    };
    let owner = |document: &Document| {
        let owner =
            Task::read(&document.bytes).ok().and_then(|task| Some(task.owner()?.into_owned()));
        owner.filter(|owner| !owner.is_empty())
    };
    let status = Task::read(&there.bytes).ok().and_then(|task| task.status());
    let status = status.map_or_else(|| "of no status".into(), |status| status.to_string());
    match (owner(here), owner(there)) {
        (Some(mine), Some(theirs)) if mine == loser && theirs != mine => {
            format!("Your claim of task {id} did not count: {theirs} was first. It is {status}.")
        }
        (_, Some(theirs)) => format!(
            "Your change to task {id} did not count: somebody changed it before you. It is {status} and belongs to {theirs}; look at it again."
        ),
        (_, None) => format!(
            "Your change to task {id} did not count: somebody changed it before you. It is {status} and belongs to nobody; look at it again."
        ),
    }
}
