//! Implements the `BoardStore` trait, and stores tasks from another store.

use async_trait::async_trait;
use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::task::Task;

use super::FileStore;
use super::board::CreatedTask;
use super::document;
use super::incomplete::{NOT_LOGGED, NOT_SYNCED};
use super::layout::CONFIG;
use super::lock::{LockWaiter, TryOutcome};
use super::revision::revision;
use super::team_state::intent::IntendedDocument;
use super::team_state::seen::LockKind;
use super::temp_file;
use brigade_core::store::{Actor, BoardSize, BoardStore, Document, Revision, StoreError, Written};

#[async_trait]
impl BoardStore for FileStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let board = self.board(team)?;
        if self.options.is_read_only {
            return board.tasks();
        }
        let team_state = self.readable_team_state(team)?;
        if let Some(team_state) = &team_state
            && let (Some(dir), Some(seen)) = (board.dir(), team_state.lock_seen()?)
        {
            document::clear_locks(dir, &[LockKind::Create, LockKind::Task], &seen)?;
            team_state.sweep()?;
            if let Ok(native) = self.native_dirs(team) {
                document::clear_locks(&native.team, &[LockKind::Roster], &seen)?;
                temp_file::sweep(&native.team, &native.team.names()?, |file| {
                    file.starts_with(CONFIG)
                });
            }
        }
        board.tasks()
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        self.board(team)?.task(id).await
    }

    async fn board_size(&self, team: &TeamName) -> Result<BoardSize, StoreError> {
        self.board(team)?.size()
    }

    async fn estimated_task_count(&self, team: &TeamName) -> Result<usize, StoreError> {
        match self.readable_team_state(team)? {
            Some(team_state) => team_state.seen_task_count(),
            None => Ok(self.board_size(team).await?.tasks),
        }
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let board = self.open_or_create_board(team)?;
        let team_state = self.team_state(team)?;
        let create = |waiter: &mut LockWaiter| {
            let seen = team_state.lock_seen()?;
            let tried = board.try_create(task, by, seen.as_ref(), waiter)?;
            if let (Some(seen), TryOutcome::Done(CreatedTask { id, bytes, .. })) = (seen, &tried) {
                let task = Some(bytes.as_slice());
                let recorded = seen.record_task(self.clock.as_ref(), Some(by), id.get(), task);
                self.after_commit(recorded, NOT_LOGGED, || format!("task {id} was added"));
            }
            Ok(tried)
        };
        let CreatedTask { id, bytes, raised } = self.retry(create).await?;
        let added = || format!("task {id} was added");
        self.after_commit(raised, "its number was not recorded as used", added);
        self.after_commit(self.sync_if_power_safe(board.dir()), NOT_SYNCED, added);
        Ok((id, revision(&bytes)))
    }

    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let board = self.board(team)?;
        let team_state = self.team_state(team)?;
        let replace = |waiter: &mut LockWaiter| {
            // Check the revision before waiting for the locks, so that a caller with an outdated
            // revision gets the conflict immediately.
            board.check_revision(id, at)?;
            let seen = team_state.lock_seen()?;
            // Another member may have changed the task meanwhile. Then write nothing, because other members wait for the lock.
            board.check_revision(id, at)?;
            if let Some(seen) = &seen {
                // Record the change that led to this version first, under the name of its author.
                if !seen.knows_task(id.get(), at)?
                    && let Some(now) = board.read(id)?
                    && now.revision == at
                    && Task::read(&now.bytes).is_ok()
                {
                    seen.record_task(self.clock.as_ref(), None, id.get(), Some(&now.bytes))?;
                }
                seen.intend(by, IntendedDocument::Task(id.get()), Some(task))?;
            }
            let tried = board.try_replace(id, task, at, seen.as_ref(), waiter, self.sync())?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                let task = Some(task);
                let recorded = seen.record_task(self.clock.as_ref(), Some(by), id.get(), task);
                self.after_commit(recorded, NOT_LOGGED, || format!("task {id} was changed"));
            }
            Ok(tried)
        };
        self.retry(replace).await?;
        let synced = self.sync_if_power_safe(board.dir());
        self.after_commit(synced, NOT_SYNCED, || format!("task {id} was changed"));
        Ok(revision(task))
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let board = self.board(team)?;
        let team_state = self.team_state(team)?;
        let mut task_waiter = LockWaiter::default();
        self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            if let Some(seen) = &seen {
                seen.intend(by, IntendedDocument::Task(id.get()), None)?;
            }
            let tried = board.try_delete(id, seen.as_ref(), [waiter, &mut task_waiter])?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                let recorded = seen.record_task(self.clock.as_ref(), Some(by), id.get(), None);
                self.after_commit(recorded, NOT_LOGGED, || format!("task {id} was deleted"));
            }
            Ok(tried)
        })
        .await?;
        let synced = self.sync_if_power_safe(board.dir());
        self.after_commit(synced, NOT_SYNCED, || format!("task {id} was deleted"));
        Ok(())
    }
}

impl FileStore {
    /// Stores a task from another store, with its number in that store. Returns a conflict if this
    /// store already has a task with that number.
    pub async fn insert_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        by: &Actor,
    ) -> Written {
        let board = self.open_or_create_board(team)?;
        let team_state = self.team_state(team)?;
        self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            if let Some(seen) = &seen {
                seen.intend(by, IntendedDocument::Task(id.get()), Some(task))?;
            }
            let tried = board.try_insert(id, task, seen.as_ref(), waiter)?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                let task = Some(task);
                let recorded = seen.record_task(self.clock.as_ref(), Some(by), id.get(), task);
                self.after_commit(recorded, NOT_LOGGED, || format!("task {id} was added"));
            }
            Ok(tried)
        })
        .await?;
        let synced = self.sync_if_power_safe(board.dir());
        self.after_commit(synced, NOT_SYNCED, || format!("task {id} was added"));
        Ok(revision(task))
    }
}
