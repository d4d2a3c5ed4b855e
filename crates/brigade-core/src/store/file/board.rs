//! The tasks of a team: one file each, numbered.

use brigade_wire::Damage;
use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::task::Task;
use rustix::fs::{Mode, OFlags};

use super::FileStore;
use super::dir::{Dir, Fsync};
use super::document::{self, DocumentId, TryOutcome};
use super::lock::{LockAttempt, LockWaiter};
use super::own::{LockSlot, SeenGuard};
use super::state::{self, TempFile};
use crate::store::{Document, Revision, StoreError};

/// The highest number ever given, where Claude Code keeps it.
const HIGH_WATER: &str = ".highwatermark";
/// What creating a task locks. Claude Code makes it an empty file.
const CREATE_LOCK: &str = ".lock";

const CREATE_DOCUMENT: DocumentId = DocumentId { slot: LockSlot::Create, task: 0 };

fn task_document(id: TaskId) -> DocumentId {
    DocumentId { slot: LockSlot::Task, task: id.get() }
}

/// The tasks of a team. Without a folder there are none.
#[derive(Debug)]
pub(crate) struct BoardDir(Option<Dir>);

impl FileStore {
    pub(super) fn board(&self, team: &TeamName) -> Result<BoardDir, StoreError> {
        let tasks = Dir::open(&self.options.claude_dir.join("tasks"))?;
        let dir = tasks.map(|tasks| tasks.child(team.as_str())).transpose()?.flatten();
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
        let path = self.options.claude_dir.join("tasks");
        let make = std::fs::create_dir_all(&path);
        make.map_err(|source| {
            let path = path.clone();
            StoreError::Io { doing: "make the directory", path, source }
        })?;
        let tasks = Dir::open(&path)?;
        let dir = tasks.map(|t| t.open_or_create_child(team.as_str(), Mode::from_raw_mode(0o777)));
        Ok(BoardDir(dir.transpose()?))
    }

    /// The tasks that an earlier team of this name left.
    pub(super) fn leftover_tasks(&self, team: &TeamName) -> Result<Vec<TaskId>, StoreError> {
        let board = self.open_or_create_board(team)?;
        let names = board.0.as_ref().map(Dir::names).transpose()?.unwrap_or_default();
        Ok(names.iter().filter_map(|name| task_id(name)).collect())
    }

    /// Takes such tasks away, as Claude Code does when it creates a team. Their numbers stay taken.
    pub(super) fn clear_board(
        &self,
        team: &TeamName,
        leftover: &[TaskId],
    ) -> Result<(), StoreError> {
        let board = self.open_or_create_board(team)?;
        let (Some(dir), Some(last)) = (&board.0, leftover.iter().max()) else { return Ok(()) };
        board.raise_high_water(dir, last.get())?;
        for &id in leftover {
            dir.remove(&task_file(id))?;
        }
        Ok(())
    }
}

impl BoardDir {
    /// Every task, by number.
    pub(crate) fn tasks(&self) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let Some(dir) = &self.0 else { return Ok(Vec::new()) };
        let names = dir.names()?;
        state::sweep(dir, &names, |file| {
            file.ends_with(".json") || file.ends_with(".lock") || file == HIGH_WATER
        });
        let mut ids: Vec<TaskId> = names.iter().filter_map(|name| task_id(name)).collect();
        ids.sort();
        let mut tasks = Vec::with_capacity(ids.len());
        for id in ids {
            // One that was deleted meanwhile is not there. One that is being written is given as it
            // is found: who reads it sees that, and asks for it alone.
            if let Some(contents) = dir.read(&task_file(id))? {
                tasks.push((id, document::document(contents)));
            }
        }
        Ok(tasks)
    }

    pub(crate) async fn task(&self, id: TaskId) -> Result<Option<Document>, StoreError> {
        match &self.0 {
            Some(dir) => {
                let task = document::read(dir, &task_file(id), None, check_task).await?;
                Ok(task.map(|(document, _)| document))
            }
            None => Ok(None),
        }
    }

    /// Makes a task under the next free number. One try.
    pub(crate) fn try_create(
        &self,
        task: &dyn Fn(TaskId) -> Vec<u8>,
        seen: Option<&SeenGuard<'_>>,
        waiter: &mut LockWaiter,
    ) -> Result<TryOutcome<(TaskId, Vec<u8>)>, StoreError> {
        // It was made a moment ago, and somebody took it away.
        let Some(dir) = &self.0 else { return Err(StoreError::Conflict) };
        if dir.stamp(CREATE_LOCK)?.is_none() {
            // Claude Code cannot lock without it.
            dir.touch(CREATE_LOCK)?;
        }
        let _lock = match document::try_lock(dir, CREATE_DOCUMENT, seen, waiter)? {
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
            // Claude Code counts from the highest file, and does not raise the mark when it adds
            // one: what it added since stands right above the mark.
            last += 1;
            let Some(id) = TaskId::new(last) else { return Err(StoreError::Conflict) };
            if dir.stamp(&task_file(id))?.is_some() {
                continue;
            }
            let bytes = task(id);
            if document::create(dir, &task_file(id), &bytes)? {
                self.raise_high_water(dir, last)?;
                return Ok(TryOutcome::Done((id, bytes)));
            }
        }
    }

    /// Puts a task under a number that another board gave it. One try.
    pub(crate) fn try_insert(
        &self,
        id: TaskId,
        task: &[u8],
        seen: Option<&SeenGuard<'_>>,
        waiter: &mut LockWaiter,
    ) -> Result<TryOutcome<()>, StoreError> {
        let Some(dir) = &self.0 else { return Err(StoreError::Conflict) };
        if dir.stamp(CREATE_LOCK)?.is_none() {
            dir.touch(CREATE_LOCK)?;
        }
        let _lock = match document::try_lock(dir, CREATE_DOCUMENT, seen, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        // First the mark: a number that is about to be taken is given to nobody.
        self.raise_high_water(dir, id.get())?;
        if document::create(dir, &task_file(id), task)? {
            Ok(TryOutcome::Done(()))
        } else {
            Err(StoreError::Conflict)
        }
    }

    /// Refuses to replace a task that is at another revision already.
    pub(crate) fn check_revision(&self, id: TaskId, at: Revision) -> Result<(), StoreError> {
        let dir = self.0.as_ref().ok_or(StoreError::NoTask { id })?;
        let contents = dir.read(&task_file(id))?.ok_or(StoreError::NoTask { id })?;
        if document::revision(&contents.bytes) == at { Ok(()) } else { Err(StoreError::Conflict) }
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
        // The lock of creating, for the mark; and that of the task, for whoever is changing it.
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

    /// The mark; `None` if there is none that can be read.
    fn high_water(&self, dir: &Dir) -> Result<Option<u64>, StoreError> {
        let Some(mark) = dir.read(HIGH_WATER)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&mark.bytes);
        Ok(text.trim().parse().ok())
    }

    /// Sees to it that the mark is at least this. Plain digits only grow, so they never get shorter
    /// and one write in place is enough; what else may stand there is replaced.
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
        let mode = Mode::from_raw_mode(0o644);
        let fd = rustix::fs::openat(dir.fd(), HIGH_WATER, flags, mode).map_err(io_error)?;
        rustix::io::pwrite(&fd, text.as_bytes(), 0).map_err(io_error)?;
        Ok(())
    }

    pub(super) fn dir(&self) -> Option<&Dir> {
        self.0.as_ref()
    }
}

fn check_task(bytes: &[u8]) -> Result<(), Damage> {
    Task::read(bytes).map(drop)
}

pub(super) fn task_file(id: TaskId) -> String {
    format!("{id}.json")
}

/// The number of the task in a file of this name.
pub(super) fn task_id(name: &str) -> Option<TaskId> {
    name.strip_suffix(".json")?.parse().ok()
}
