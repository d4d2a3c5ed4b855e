//! Automatic fixes, one safe step each. A fix deletes nothing that the user could need: it moves a file into
//! brigade's state folder, or copies the file there before changing it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::pulse::Process;
use brigade_core::roster::{self, Activity};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, StoreError};
use brigade_core::text;
use brigade_files::layout::{INBOXES, TASKS, config_path, task_file, temp_name};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{Status, Task, TaskChange};
use brigade_wire::team::Team;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;

use super::backup::{BackupFolder, failed};
use super::snapshot::DoctorSnapshot;
use crate::context::CliContext;
use crate::error::{CliError, Trouble};
use brigade_host::process::send_signal;
use brigade_host::process_lock;
use brigade_host::worktree::{IgnoredFiles, Removed, Worktree};

/// An automatic fix.
#[derive(Debug)]
pub(crate) enum Fix {
    RemoveLock(PathBuf),
    MoveAside(PathBuf),
    /// Reads a mailbox through the store, which repairs damaged files and cleans up after killed processes.
    RepairMailbox {
        team: TeamName,
        member: MemberName,
        path: PathBuf,
    },
    RestoreRoster {
        team: TeamName,
        bytes: Vec<u8>,
    },
    RestoreTask {
        team: TeamName,
        id: TaskId,
        bytes: Vec<u8>,
    },
    UpdateTask {
        team: TeamName,
        id: TaskId,
        fix: TaskFix,
    },
    RemoveMember {
        team: TeamName,
        member: MemberName,
    },
    MarkIdle {
        team: TeamName,
        member: MemberName,
    },
    RemoveEmptyFolder(PathBuf),
    SetMode(PathBuf, u32),
    CloseWindow(String),
    Terminate(Process),
    StartSupervisor,
    RemoveWorktree(Worktree),
}

/// A fix for a task.
#[derive(Debug)]
pub(crate) enum TaskFix {
    /// Add the missing fields.
    Complete,
    /// Remove the owner, if this member still owns the task.
    Release(String),
    /// Remove these ids from the list of tasks that the task waits for.
    Unblock(Vec<String>),
}

impl Fix {
    /// Describes the fix twice: as an instruction, and in the past tense.
    pub(crate) fn description(&self) -> (String, String) {
        let both = |will: &str, did: &str| (will.to_owned(), did.to_owned());
        match self {
            Self::RemoveLock(_) => both("remove the lock", "removed the lock"),
            Self::MoveAside(_) => both("move it into brigade's own folder", "moved it"),
            Self::RepairMailbox { .. } => both(
                "back it up, keep the readable messages and restore the others from the journal",
                "backed it up, kept the readable messages and restored the others from the journal",
            ),
            Self::RestoreRoster { .. } | Self::RestoreTask { .. } => both(
                "back it up and restore the last version that brigade read",
                "backed it up and restored the last version that brigade read",
            ),
            Self::UpdateTask { fix: TaskFix::Complete, .. } => {
                both("add the missing fields", "added the missing fields")
            }
            Self::UpdateTask { fix: TaskFix::Release(_), .. } => {
                both("remove its owner", "removed its owner")
            }
            Self::UpdateTask { fix: TaskFix::Unblock(_), .. } => {
                both("remove the missing dependency", "removed the missing dependency")
            }
            Self::RemoveMember { .. } => both(
                "remove it from the roster and unassign its tasks",
                "removed it from the roster and unassigned its tasks",
            ),
            Self::MarkIdle { .. } => both("mark it idle", "marked it idle"),
            Self::RemoveEmptyFolder(_) => {
                both("remove the empty folder", "removed the empty folder")
            }
            Self::SetMode(_, mode) => {
                (format!("set its mode to {mode:o}"), format!("set its mode to {mode:o}"))
            }
            Self::CloseWindow(_) => both("close the window", "closed the window"),
            Self::Terminate(_) => both("terminate the process", "terminated the process"),
            Self::StartSupervisor => both(
                "start the supervisor, which starts the missing members",
                "started the supervisor, which starts the missing members",
            ),
            Self::RemoveWorktree(_) => both(
                "remove the worktree; keep its branch if it has commits",
                "removed the worktree; kept its branch if it has commits",
            ),
        }
    }
}

impl Fix {
    /// Applies the fix and returns what it did.
    pub(crate) async fn apply(
        self,
        context: &CliContext,
        snapshot: &DoctorSnapshot,
        backups: &BackupFolder,
    ) -> Result<String, CliError> {
        let (_, did) = self.description();
        match self {
            Self::RemoveLock(path) => {
                remove_lock(&path).map_err(|source| failed("remove", &path, source))?;
            }
            Self::MoveAside(path) => {
                // An earlier fix may already have moved this file.
                if path.symlink_metadata().is_err() {
                    return Ok("already fixed".to_owned());
                }
                let place = backups.move_here(&path);
                let place = place.map_err(|source| failed("move", &path, source))?;
                return Ok(format!("moved it to {}", place.display()));
            }
            Self::RepairMailbox { team, member, path } => {
                backups.back_up(&path)?;
                context.store.inbox(&team, &member).await?;
            }
            Self::RestoreRoster { team, bytes } => {
                back_up_roster(snapshot, backups, &team)?;
                let torn = context.store.team(&team).await?;
                let torn = torn.ok_or_else(|| StoreError::NoTeam { team: team.clone() })?;
                if Team::read(&torn.bytes).is_err() {
                    context
                        .store
                        .replace_team(&team, &bytes, torn.revision, &doctor_actor())
                        .await?;
                }
            }
            Self::RestoreTask { team, id, bytes } => {
                back_up_task(snapshot, backups, &team, id)?;
                let torn = context.store.task(&team, id).await?;
                let torn = torn.ok_or(StoreError::NoTask { id })?;
                if Task::read(&torn.bytes).is_err() {
                    context
                        .store
                        .replace_task(&team, id, &bytes, torn.revision, &doctor_actor())
                        .await?;
                }
            }
            Self::UpdateTask { team, id, fix } => {
                back_up_task(snapshot, backups, &team, id)?;
                let current = context.store.task(&team, id).await?;
                let current = current.ok_or(StoreError::NoTask { id })?;
                let damaged = |damage| StoreError::Damaged { place: format!("task {id}"), damage };
                let task = Task::read(&current.bytes).map_err(damaged)?;
                let fixed = fixed_task(&task, &fix);
                let by = match snapshot.nats_findings {
                    None => doctor_actor(),
                    // In a NATS store, only members can write, so write as the lead.
                    Some(_) => Actor(MemberName::lead().to_string()),
                };
                context.store.replace_task(&team, id, &fixed, current.revision, &by).await?;
            }
            Self::RemoveMember { team, member } => {
                back_up_roster(snapshot, backups, &team)?;
                back_up_tasks_of(snapshot, backups, &team, &member)?;
                roster::leave(&seat_for(context, &team, &member).await?, &member).await?;
            }
            Self::MarkIdle { team, member } => {
                // Skip a member that was started meanwhile: its process updates the roster itself.
                let holder = process_lock::holder(&snapshot.host.registry.seat(&team, &member));
                if matches!(holder, Ok(None)) {
                    back_up_roster(snapshot, backups, &team)?;
                    let seat = seat_for(context, &team, &member).await?;
                    roster::set_activity(&seat, &member, Activity::Idle).await?;
                }
            }
            Self::RemoveEmptyFolder(path) => {
                // This is safe, because `remove_dir` only removes empty folders.
                let _absent = fs::remove_dir(path.join(INBOXES));
                fs::remove_dir(&path).map_err(|source| failed("remove", &path, source))?;
            }
            Self::SetMode(path, mode) => {
                let set = fs::set_permissions(&path, Permissions::from_mode(mode));
                set.map_err(|source| failed("set the mode of", &path, source))?;
            }
            Self::CloseWindow(window) => snapshot.host.tmux().close(&window).map_err(|source| {
                CliError::failed(Trouble::Io { doing: format!("close {window}"), source })
            })?,
            Self::Terminate(process) => terminate(&process).await,
            Self::StartSupervisor => snapshot.host.ensure_supervisor().await?,
            Self::RemoveWorktree(worktree) => {
                let why = match worktree.remove(IgnoredFiles::Keep)? {
                    Removed::None | Removed::Wholly | Removed::BranchStays => return Ok(did),
                    Removed::NewBranch(branch) => {
                        return Ok(format!("{did}; its commits are now on branch {branch}"));
                    }
                    Removed::Stays => "it has uncommitted changes".to_owned(),
                    Removed::Unfinished => "a merge or rebase is not finished".to_owned(),
                    Removed::Ignored(files) => {
                        format!("it contains {} that git ignores", text::count(files.len(), "file"))
                    }
                    Removed::Unclear => "git cannot read it".to_owned(),
                };
                return Ok(format!("kept it because {why}"));
            }
        }
        Ok(did)
    }
}

fn doctor_actor() -> Actor {
    Actor("brigade doctor".to_owned())
}

async fn seat_for(
    context: &CliContext,
    team: &TeamName,
    member: &MemberName,
) -> Result<Seat, CliError> {
    let lead = context.seat_of(team.clone(), MemberName::lead());
    context.host()?.acting_seat(&lead, member).await
}

fn back_up_roster(
    snapshot: &DoctorSnapshot,
    backups: &BackupFolder,
    team: &TeamName,
) -> Result<(), CliError> {
    backups.back_up(&config_path(&snapshot.claude_dir, team.as_str()))
}

fn back_up_task(
    snapshot: &DoctorSnapshot,
    backups: &BackupFolder,
    team: &TeamName,
    id: TaskId,
) -> Result<(), CliError> {
    backups.back_up(&snapshot.claude_dir.join(TASKS).join(team.as_str()).join(task_file(id)))
}

/// Backs up the tasks that a member owns.
fn back_up_tasks_of(
    snapshot: &DoctorSnapshot,
    backups: &BackupFolder,
    team: &TeamName,
    member: &MemberName,
) -> Result<(), CliError> {
    let folder = snapshot.teams.iter().find(|folder| folder.name == team.as_str());
    for (id, file) in folder.iter().flat_map(|folder| &folder.tasks) {
        let owner = |task: Task<'_>| task.owner().is_some_and(|owner| owner == member.as_str());
        if Task::read(&file.bytes).is_ok_and(owner) {
            back_up_task(snapshot, backups, team, *id)?;
        }
    }
    Ok(())
}

fn fixed_task(task: &Task<'_>, fix: &TaskFix) -> Vec<u8> {
    let change = match fix {
        TaskFix::Complete => TaskChange {
            description: task.description().is_none().then_some(""),
            status: task.status().is_none().then_some(Status::Pending),
            blocks: task.blocks().is_none().then(Vec::new),
            blocked_by: task.blocked_by().is_none().then(Vec::new),
            ..TaskChange::default()
        },
        TaskFix::Release(owner) if task.owner().is_some_and(|current| current == *owner) => {
            TaskChange {
                owner: Change::Clear,
                status: (task.status() == Some(Status::InProgress)).then_some(Status::Pending),
                ..TaskChange::default()
            }
        }
        TaskFix::Release(_) => TaskChange::default(),
        TaskFix::Unblock(lost) => {
            let waits_for = task.blocked_by().unwrap_or_default().into_iter();
            let kept = waits_for.filter(|id| !lost.iter().any(|lost| *lost == **id)).collect();
            TaskChange { blocked_by: Some(kept), ..TaskChange::default() }
        }
    };
    task.with(&change).into_owned()
}

/// Removes a stale lock, but not a new lock that another program took meanwhile. Renames the lock, and then
/// checks whether the renamed lock is the stale one. If not, restores the lock.
fn remove_lock(path: &Path) -> io::Result<()> {
    let identity = |path: &Path| {
        path.symlink_metadata().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
    };
    let Ok(stale) = identity(path) else { return Ok(()) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let moved = path.with_file_name(temp_name(&name, std::process::id(), 0));
    match fs::rename(path, &moved) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    if identity(&moved)? == stale && fs::remove_dir(&moved).is_ok() {
        return Ok(());
    }
    renameat_with(CWD, &moved, CWD, path, RenameFlags::NOREPLACE)?;
    Err(io::Error::other("another program has taken the lock again"))
}

/// Sends SIGTERM to a process and waits up to five seconds for it to exit.
async fn terminate(process: &Process) {
    send_signal(process, Signal::TERM);
    for _ in 0..100 {
        if !brigade_host::process::is_running(process) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
