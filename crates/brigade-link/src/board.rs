//! Synchronizes tasks. The shared board wins: a local change is kept only if the task was not
//! changed on the shared board since the last synchronization.

use std::collections::BTreeSet;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Task;

use super::pass::PendingSync;
use super::roster::MemberSides;
use super::saved_state::{SyncedTask, task_owner};
use super::task_decision::{TaskAction, TaskHistory, decide};
use super::{Link, LinkError, LinkEvent, link_actor};
use brigade_core::event::Event;
use brigade_core::store::{Actor, BoardStore, Document, EventLog, TeamStore};

/// How many times the link tries to synchronize one task. After the last attempt, the task waits
/// for the next synchronization.
const MAX_ATTEMPTS: usize = 10;
/// For this long after the link wrote a task, a native program may still write a change that is
/// based on the previous state, because Claude Code 2.1.50 takes no lock on tasks.
const LATE_WRITE: Duration = Duration::from_secs(2);

impl Link {
    /// Synchronizes the boards.
    pub(super) async fn sync_board(
        &mut self,
        work: &PendingSync,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        if !work.every_task && work.tasks.is_empty() {
            return Ok(());
        }
        let config = self.config.clone();
        self.recall().await?;
        let mut ids = work.tasks.clone();
        let local = config.local.tasks(&config.team).await.map_err(LinkError::Local)?;
        // First synchronize the tasks that were created on this host. Other tasks that refer to
        // these tasks need the new numbers.
        let mut new: BTreeSet<TaskId> = local.iter().map(|(id, _)| *id).collect();
        if work.every_task {
            let shared = config.call_shared(config.shared.tasks(&config.team)).await?;
            // Most tasks are the same on both boards and need no further check.
            for (id, document) in &shared {
                let same = local
                    .iter()
                    .any(|(other, local_task)| other == id && local_task.bytes == document.bytes);
                if same {
                    self.set_synced(*id, document);
                } else {
                    ids.insert(*id);
                }
            }
            let known = self.state.tasks.keys().copied().filter_map(TaskId::new);
            ids.extend(known.filter(|id| !shared.iter().any(|(other, _)| other == id)));
        }
        new.retain(|id| !self.state.tasks.contains_key(&id.get()));
        for id in new {
            let done = self.sync_task(id, sides).await;
            self.report_part(done, &format!("task {id}"))?;
        }
        ids.append(&mut self.recheck);
        for id in ids {
            let done = self.sync_task(id, sides).await;
            self.report_part(done, &format!("task {id}"))?;
        }
        Ok(())
    }

    /// If the saved state is lost, uses the local journal to find out which tasks a link has
    /// synchronized.
    async fn recall(&mut self) -> Result<(), LinkError> {
        if !self.state.fresh || self.synced_before.is_some() {
            return Ok(());
        }
        let config = &self.config;
        let history = config.local.team_history(&config.team).await.map_err(LinkError::Local)?;
        let mut synced = std::collections::HashSet::new();
        for record in history {
            match record.event {
                Event::TeamCreated { .. } => synced.clear(),
                Event::Task { id, .. } if record.by.as_deref() == Some(super::LINK_ACTOR) => {
                    synced.insert(id);
                }
                _ => {}
            }
        }
        self.synced_before = Some(synced);
        Ok(())
    }

    /// Synchronizes one task.
    pub(super) async fn sync_task(
        &mut self,
        id: TaskId,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let config = self.config.clone();
        for _ in 0..MAX_ATTEMPTS {
            let local = config.local.task(&config.team, id).await.map_err(LinkError::Local)?;
            let shared = config.call_shared(config.shared.task(&config.team, id)).await?;
            let recently_written =
                self.written_tasks.get(&id).is_some_and(|at| at.elapsed() < LATE_WRITE);
            let synced_before = self.was_synced(id, local.as_ref());
            let same = synced_before || self.is_same(local.as_ref(), shared.as_ref());
            let base = self.state.tasks.get(&id.get());
            let action = decide(
                local.as_ref(),
                shared.as_ref(),
                TaskHistory { base, same, synced_before, recently_written },
            );
            match self.apply_task(id, action, (local.as_ref(), shared.as_ref()), sides).await {
                Err(error) if error.is_conflict() || error.is_no_task() => {}
                done => return done,
            }
        }
        Ok(())
    }

    async fn apply_task(
        &mut self,
        id: TaskId,
        action: TaskAction,
        (local, shared): (Option<&Document>, Option<&Document>),
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let config = self.config.clone();
        let number = id.get();
        match (action, local, shared) {
            (TaskAction::Same, _, Some(shared)) => self.set_synced(id, shared),
            (TaskAction::New, Some(local), _) => {
                self.publish_task(id, local, shared, sides).await?;
            }
            (TaskAction::Out, Some(local), Some(shared)) => {
                let done = match self.author(id, [Some(local), Some(shared)], sides) {
                    Some(by) => {
                        let (task, at) = (&local.bytes, shared.revision);
                        let call = config.shared.replace_task(&config.team, id, task, at, &by);
                        config.call_shared(call).await.map(Some)
                    }
                    None => Ok(None),
                };
                match done {
                    Ok(Some(revision)) => {
                        self.state.tasks.insert(number, SyncedTask::new(&local.bytes, revision));
                        self.changed_by.remove(&id);
                        self.emit(&LinkEvent::TaskOut { id: number, was: None });
                    }
                    Ok(None) => self.reject_change(id, local, Some(shared), sides).await?,
                    Err(error) if error.is_forbidden() => {
                        self.report_problem(format!("task {id}: {error}"));
                        self.reject_change(id, local, Some(shared), sides).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
            (TaskAction::In { lost: true }, Some(local), Some(shared)) => {
                self.reject_change(id, local, Some(shared), sides).await?;
            }
            (TaskAction::In { .. }, Some(local), Some(shared)) => {
                self.write_task(id, local, shared).await?;
            }
            (TaskAction::Create, _, Some(shared)) => {
                let placed =
                    config.local.insert_task(&config.team, id, &shared.bytes, &link_actor()).await;
                placed.map_err(LinkError::Local)?;
                self.written_tasks.insert(id, tokio::time::Instant::now());
                self.set_synced(id, shared);
                self.emit(&LinkEvent::TaskIn { id: number });
            }
            (TaskAction::DeleteLocal { lost }, Some(local), _) => {
                if lost {
                    self.reject_change(id, local, None, sides).await?;
                } else {
                    self.delete_local(id).await?;
                }
            }
            (TaskAction::DeleteShared, _, Some(shared)) => {
                // If the whole team was deleted on this host, its tasks were deleted with it. In
                // that case, keep the tasks in the shared store.
                if config.local.team(&config.team).await.map_err(LinkError::Local)?.is_none() {
                    let team = config.team.clone();
                    return Err(LinkError::Local(brigade_core::store::StoreError::NoTeam { team }));
                }
                let by = self.author(id, [Some(shared), None], sides);
                let by = by.unwrap_or_else(|| Actor(config.host.clone()));
                match config.call_shared(config.shared.delete_task(&config.team, id, &by)).await {
                    Err(error) if error.is_forbidden() => {
                        self.report_problem(format!("task {id}: {error}"));
                        // The task still exists in the shared store, so the next attempt restores
                        // it on this host.
                        self.state.tasks.remove(&number);
                        return Err(LinkError::Local(brigade_core::store::StoreError::Conflict));
                    }
                    Err(error) if error.is_no_task() => {}
                    done => done?,
                }
                self.state.tasks.remove(&number);
                self.emit(&LinkEvent::TaskGone { id: number });
            }
            _ => {
                self.state.tasks.remove(&number);
                self.state.creating.remove(&number);
            }
        }
        Ok(())
    }

    pub(super) fn set_synced(&mut self, id: TaskId, shared: &Document) {
        self.state.tasks.insert(id.get(), SyncedTask::new(&shared.bytes, shared.revision));
        self.state.creating.remove(&id.get());
        self.changed_by.remove(&id);
    }

    /// Overwrites the task in the files with the task from the shared store.
    pub(super) async fn write_task(
        &mut self,
        id: TaskId,
        local: &Document,
        shared: &Document,
    ) -> Result<(), LinkError> {
        let Self { config, .. } = self;
        let written = config
            .local
            .replace_task(&config.team, id, &shared.bytes, local.revision, &link_actor())
            .await;
        written.map_err(LinkError::Local)?;
        self.written_tasks.insert(id, tokio::time::Instant::now());
        self.set_synced(id, shared);
        self.emit(&LinkEvent::TaskIn { id: id.get() });
        Ok(())
    }

    pub(super) async fn delete_local(&mut self, id: TaskId) -> Result<(), LinkError> {
        let config = &self.config;
        match config
            .local
            .delete_task(&config.team, id, &link_actor())
            .await
            .map_err(LinkError::Local)
        {
            Err(error) if !error.is_no_task() => return Err(error),
            _ => {}
        }
        self.state.tasks.remove(&id.get());
        self.emit(&LinkEvent::TaskGone { id: id.get() });
        Ok(())
    }

    /// Rejects a local change to a task: informs the author of the change, then restores the task
    /// from the shared store.
    async fn reject_change(
        &mut self,
        id: TaskId,
        local: &Document,
        shared: Option<&Document>,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        self.notify_loser(id, local, shared, sides).await?;
        match shared {
            Some(shared) => self.write_task(id, local, shared).await,
            None => self.delete_local(id).await,
        }
    }

    /// Informs the author of a local change that the change was rejected.
    pub(super) async fn notify_loser(
        &mut self,
        id: TaskId,
        local: &Document,
        shared: Option<&Document>,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let loser = self.loser(id, local, sides);
        if let Some(loser) = &loser {
            let text = rejection_text(id, loser.as_str(), local, shared);
            let at = shared.map_or_else(|| "gone".into(), |shared| shared.revision.0.to_string());
            self.notify(loser, &["lost", &id.to_string(), &at], &text, sides).await?;
        }
        self.emit(&LinkEvent::Lost { id: id.get(), told: loser.map(|loser| loser.to_string()) });
        Ok(())
    }

    /// Returns the likely author of a local change. The candidates are the known author, the owner in the files,
    /// the previous owner, and the lead, in this order. The first of them that is local is returned.
    fn loser(&self, id: TaskId, local: &Document, sides: &MemberSides) -> Option<MemberName> {
        let owner = task_owner(&local.bytes);
        let previous = self.state.tasks.get(&id.get()).and_then(|base| base.owner.clone());
        let candidates = [self.changed_by.get(&id).cloned(), owner, previous, sides.lead.clone()];
        let author = candidates.into_iter().flatten().find(|name| sides.is_local(name))?;
        author.parse().ok()
    }

    /// Returns the local member in whose name the link makes a change in the shared store, or
    /// `None` if no member is local.
    pub(super) fn author(
        &self,
        id: TaskId,
        states: [Option<&Document>; 2],
        sides: &MemberSides,
    ) -> Option<Actor> {
        let owners = states.into_iter().flatten();
        let owners = owners.filter_map(|document| task_owner(&document.bytes));
        let known = self.changed_by.get(&id).cloned();
        let candidates = known.into_iter().chain(owners).chain(sides.lead.clone());
        let first = sides.local.first().map(ToString::to_string);
        let author = candidates.into_iter().find(|name| sides.is_local(name)).or(first);
        author.map(Actor)
    }
}

/// Returns the text of the notice about a rejected change.
fn rejection_text(id: TaskId, loser: &str, local: &Document, shared: Option<&Document>) -> String {
    let Some(shared) = shared else {
        return format!("Your change to task {id} was rejected: the task was deleted.");
    };
    let owner = |document: &Document| task_owner(&document.bytes).filter(|owner| !owner.is_empty());
    let status = Task::read(&shared.bytes).ok().and_then(|task| task.status());
    let status = status.map_or_else(|| "without a status".into(), |status| status.to_string());
    match (owner(local), owner(shared)) {
        (Some(mine), Some(theirs)) if mine == loser && theirs != mine => {
            format!(
                "Your claim of task {id} was rejected: {theirs} claimed it first. It is {status}."
            )
        }
        (_, Some(theirs)) => format!(
            "Your change to task {id} was rejected: the task was changed on another host first. It is now {status} and belongs to {theirs}; read the task again."
        ),
        (_, None) => format!(
            "Your change to task {id} was rejected: the task was changed on another host first. It is now {status} and has no owner; read the task again."
        ),
    }
}
