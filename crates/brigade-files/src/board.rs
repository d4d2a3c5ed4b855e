//! A team's tasks, stored as one numbered file each.

use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::task::Task;
use rustix::fs::OFlags;

use super::dir::{self, Dir, Fsync, PRIVATE};
use super::document::{self, DocumentId};
use super::layout::{CREATE_LOCK, DAMAGED_COPIES, HIGH_WATER, TASKS, task_file, task_id};
use super::lock::{LockAttempt, LockWaiter, TryOutcome};
use super::revision::revision;
use super::team_state::TeamStateDir;
use super::team_state::intent::IntendedDocument;
use super::team_state::seen::{LockKind, SeenGuard};
use super::temp_file::{self, TempFile};
use super::{FileStore, lock_mutex};
use brigade_core::store::{Actor, BoardSize, Document, MovedTasks, Revision, StoreError};

const CREATE_DOCUMENT: DocumentId = DocumentId { kind: LockKind::Create, task: 0 };

fn task_document(id: TaskId) -> DocumentId {
    DocumentId { kind: LockKind::Task, task: id.get() }
}

/// The task folder of a team. If the folder does not exist, there are no tasks.
#[derive(Debug)]
pub(crate) struct BoardDir(Option<Dir>);

/// A task that was just created.
#[derive(Debug)]
pub(crate) struct CreatedTask {
    pub(crate) id: TaskId,
    pub(crate) bytes: Vec<u8>,
    /// Whether the high-water mark was raised.
    pub(crate) raised: Result<(), StoreError>,
}

impl FileStore {
    pub(super) fn board(&self, team: &TeamName) -> Result<BoardDir, StoreError> {
        let tasks = Dir::open(&self.options.claude_dir.join(TASKS))?;
        let list = self.task_list(team)?;
        let dir = tasks.map(|tasks| tasks.child(list.as_str())).transpose()?.flatten();
        if dir.is_none() {
            self.team_dir(team)?;
        }
        Ok(BoardDir(dir))
    }

    pub(super) fn open_or_create_board(&self, team: &TeamName) -> Result<BoardDir, StoreError> {
        let board = self.board(team)?;
        if board.0.is_some() {
            return Ok(board);
        }
        let path = self.options.claude_dir.join(TASKS);
        dir::create_all(&path)?;
        let tasks = Dir::open(&path)?;
        let list = self.task_list(team)?;
        let dir = tasks.map(|t| t.open_or_create_child(list.as_str()));
        Ok(BoardDir(dir.transpose()?))
    }

    /// Returns the tasks that an earlier team of this name left behind.
    pub(super) fn leftover_tasks(&self, team: &TeamName) -> Result<Vec<TaskId>, StoreError> {
        let board = self.open_or_create_board(team)?;
        let names = board.0.as_ref().map(Dir::names).transpose()?.unwrap_or_default();
        Ok(names.iter().filter_map(|name| task_id(name)).collect())
    }

    /// Moves leftover tasks to the `aside` folder. Claude Code deletes them when it creates a team, but they may be
    /// a person's own task list of that name. The numbers of these tasks are not used again.
    pub(super) fn clear_board(
        &self,
        team: &TeamName,
        team_state: &TeamStateDir,
        leftover: &[TaskId],
    ) -> Result<(), StoreError> {
        let board = self.open_or_create_board(team)?;
        let (Some(dir), Some(last)) = (&board.0, leftover.iter().max()) else { return Ok(()) };
        board.raise_high_water(dir, last.get())?;
        let aside = team_state.dir.private_child(DAMAGED_COPIES)?;
        let folder = format!("tasks-{}", self.clock.now().as_millisecond());
        let aside = aside.private_child(&folder)?;
        let mut moved = 0;
        for &id in leftover {
            let file = task_file(id);
            let Some(contents) = dir.read(&file)? else { continue };
            aside.write_temp(&file, &contents.bytes, Some(PRIVATE), Fsync::Yes)?;
            dir.remove(&file)?;
            moved += 1;
        }
        aside.sync()?;
        let from = dir.dir_path().to_owned();
        let to = aside.dir_path().to_owned();
        if moved > 0 {
            lock_mutex(&self.moved).push(MovedTasks { tasks: moved, from, to });
        }
        Ok(())
    }
}

impl BoardDir {
    /// Returns all tasks, sorted by number.
    pub(crate) fn tasks(&self) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let Some(dir) = &self.0 else { return Ok(Vec::new()) };
        let names = dir.names()?;
        temp_file::sweep(dir, &names, |file| {
            file.ends_with(".json") || file.ends_with(".lock") || file == HIGH_WATER
        });
        let mut ids: Vec<TaskId> = names.iter().filter_map(|name| task_id(name)).collect();
        ids.sort();
        let mut tasks = Vec::with_capacity(ids.len());
        for id in ids {
            // Skip a task that was deleted meanwhile. Do not skip a half-written task: a caller
            // that cannot parse the task reads it again with `task`.
            if let Some(contents) = dir.read(&task_file(id))? {
                tasks.push((id, document::from_contents(contents)));
            }
        }
        Ok(tasks)
    }

    /// Returns the number and the size of the task files.
    pub(crate) fn size(&self) -> Result<BoardSize, StoreError> {
        let Some(dir) = &self.0 else { return Ok(BoardSize::default()) };
        let mut lengths = Vec::new();
        for name in dir.names()?.iter().filter(|name| task_id(name).is_some()) {
            if let Some(stamp) = dir.stamp(name)? {
                lengths.push(usize::try_from(stamp.size).unwrap_or(usize::MAX));
            }
        }
        Ok(BoardSize::total(lengths))
    }

    pub(crate) async fn task(&self, id: TaskId) -> Result<Option<Document>, StoreError> {
        match &self.0 {
            Some(dir) => {
                let check = |bytes: &[u8]| Task::read(bytes).map(drop);
                document::read(dir, &task_file(id), check).await
            }
            None => Ok(None),
        }
    }

    /// Tries once to create a task under the next free number. The task exists even if raising the
    /// high-water mark failed.
    pub(crate) fn try_create(
        &self,
        task: &dyn Fn(TaskId) -> Vec<u8>,
        by: &Actor,
        seen: Option<&SeenGuard<'_>>,
        waiter: &mut LockWaiter,
    ) -> Result<TryOutcome<CreatedTask>, StoreError> {
        // The task folder was created a moment ago, but another program has removed it.
        let Some(dir) = &self.0 else { return Err(StoreError::Conflict) };
        let _lock = match try_creation_lock(dir, seen, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        let mut last = match self.high_water(dir)? {
            Some(last) => last,
            None => {
                let names = dir.names()?;
                names.iter().filter_map(|name| task_id(name)).map(TaskId::get).max().unwrap_or(0)
            }
        };
        loop {
            // Skip the numbers of existing tasks. When Claude Code adds a task, it uses the number
            // after the highest task file and does not raise the high-water mark.
            let next = last.checked_add(1).and_then(TaskId::new);
            let Some(id) = next else { return Err(StoreError::Conflict) };
            last = id.get();
            if dir.stamp(&task_file(id))?.is_some() {
                continue;
            }
            let bytes = task(id);
            if let Some(seen) = seen {
                seen.intend(by, IntendedDocument::Task(last), Some(&bytes))?;
            }
            if document::create(dir, &task_file(id), &bytes)? {
                let raised = self.raise_high_water(dir, last);
                return Ok(TryOutcome::Done(CreatedTask { id, bytes, raised }));
            }
        }
    }

    /// Tries once to store a task under a number that another board assigned.
    pub(crate) fn try_insert(
        &self,
        id: TaskId,
        task: &[u8],
        seen: Option<&SeenGuard<'_>>,
        waiter: &mut LockWaiter,
    ) -> Result<TryOutcome<()>, StoreError> {
        let Some(dir) = &self.0 else { return Err(StoreError::Conflict) };
        let _lock = match try_creation_lock(dir, seen, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        // Raise the high-water mark first, so that no other process assigns this number meanwhile.
        self.raise_high_water(dir, id.get())?;
        if document::create(dir, &task_file(id), task)? {
            Ok(TryOutcome::Done(()))
        } else {
            Err(StoreError::Conflict)
        }
    }

    /// Reads a task once. The task may be torn.
    pub(crate) fn read(&self, id: TaskId) -> Result<Option<Document>, StoreError> {
        let Some(dir) = &self.0 else { return Ok(None) };
        Ok(dir.read(&task_file(id))?.map(document::from_contents))
    }

    /// Returns a conflict unless the task is at revision `at`.
    pub(crate) fn check_revision(&self, id: TaskId, at: Revision) -> Result<(), StoreError> {
        let dir = self.0.as_ref().ok_or(StoreError::NoTask { id })?;
        let contents = dir.read(&task_file(id))?.ok_or(StoreError::NoTask { id })?;
        if revision(&contents.bytes) == at { Ok(()) } else { Err(StoreError::Conflict) }
    }

    pub(crate) fn try_replace(
        &self,
        id: TaskId,
        task: &[u8],
        at: Revision,
        seen: Option<&SeenGuard<'_>>,
        waiter: &mut LockWaiter,
        sync: Fsync,
    ) -> Result<TryOutcome<()>, StoreError> {
        let dir = self.0.as_ref().ok_or(StoreError::NoTask { id })?;
        document::try_replace(dir, task_document(id), (task, at), seen, waiter, sync)
    }

    pub(crate) fn try_delete(
        &self,
        id: TaskId,
        seen: Option<&SeenGuard<'_>>,
        [waiter, task_waiter]: [&mut LockWaiter; 2],
    ) -> Result<TryOutcome<()>, StoreError> {
        let dir = self.0.as_ref().ok_or(StoreError::NoTask { id })?;
        if dir.stamp(&task_file(id))?.is_none() {
            return Err(StoreError::NoTask { id });
        }
        // The creation lock protects the high-water mark, and the task lock keeps other processes
        // from changing the task.
        let _create = match document::try_lock(dir, CREATE_DOCUMENT, seen, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        let _task = match document::try_lock(dir, task_document(id), seen, task_waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        self.raise_high_water(dir, id.get())?;
        dir.remove(&task_file(id))?;
        Ok(TryOutcome::Done(()))
    }

    /// Returns the high-water mark, or `None` if its file is missing or not a number.
    fn high_water(&self, dir: &Dir) -> Result<Option<u64>, StoreError> {
        let Some(mark) = dir.read(HIGH_WATER)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&mark.bytes);
        Ok(text.trim().parse().ok())
    }

    /// Raises the high-water mark to at least `to`. A file that holds only digits is overwritten in
    /// place: the number only grows, so the new text covers the old text. A file with other
    /// contents is replaced.
    fn raise_high_water(&self, dir: &Dir, to: u64) -> Result<(), StoreError> {
        let current = dir.read(HIGH_WATER)?.map(|mark| mark.bytes);
        let digits_only = current.as_ref().is_none_or(|mark| mark.iter().all(u8::is_ascii_digit));
        if self.high_water(dir)?.is_some_and(|mark| mark >= to) {
            return Ok(());
        }
        let text = to.to_string();
        if !digits_only {
            let temp = TempFile::next().name(HIGH_WATER);
            dir.write_temp(&temp, text.as_bytes(), None, Fsync::No)?;
            return dir.rename(&temp, HIGH_WATER);
        }
        let io_error = |error| dir.io_error("write", HIGH_WATER, error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir.fd(), HIGH_WATER, flags, PRIVATE).map_err(io_error)?;
        rustix::io::pwrite(&fd, text.as_bytes(), 0).map_err(io_error)?;
        Ok(())
    }

    pub(super) fn dir(&self) -> Option<&Dir> {
        self.0.as_ref()
    }
}

/// Tries once to acquire the lock that a process needs to create a task.
fn try_creation_lock<'d>(
    dir: &'d Dir,
    seen: Option<&'d SeenGuard<'d>>,
    waiter: &mut LockWaiter,
) -> Result<LockAttempt<'d>, StoreError> {
    if dir.stamp(CREATE_LOCK)?.is_none() {
        // Claude Code cannot take the creation lock if the file `.lock` is missing.
        dir.touch(CREATE_LOCK)?;
    }
    document::try_lock(dir, CREATE_DOCUMENT, seen, waiter)
}
