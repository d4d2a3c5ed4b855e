//! Automatic fixes, one safe step each. A fix deletes nothing that the user could need: it moves a file into
//! brigade's state folder, or copies the file there before changing it.
//!
//! The caller runs the check again right before it applies a fix, while it holds the lock in `guard`. The fix itself
//! changes a document only if the document is still the one that was checked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_core::pulse::Process;
use brigade_core::roster::{self, Activity, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, StoreError};
use brigade_core::text;
use brigade_files::layout::{INBOXES, TASKS, config_path, task_file};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{Status, Task, TaskChange};
use brigade_wire::team::Team;
use rustix::process::Signal;

use super::anchored::{FileIdentity, FileRemoval};
use super::backup::{BackupFolder, failed};
use super::snapshot::DoctorSnapshot;
use crate::context::CliContext;
use crate::error::{CliError, Trouble};
use brigade_host::process::send_signal;
use brigade_host::process_lock;
use brigade_host::tmux::Window;
use brigade_host::worktree::{IgnoredFiles, Removed, Worktree};

/// The result of a fix whose problem is gone.
pub(crate) const SETTLED: &str = "already settled; nothing was changed";

/// An automatic fix.
#[derive(Debug)]
pub(crate) enum Fix {
    RemoveLock(PathBuf, FileIdentity),
    MoveAside(PathBuf, FileIdentity),
    /// Moves the inbox of a name that is not on the team.
    MoveInbox {
        team: TeamName,
        member: MemberName,
        path: PathBuf,
    },
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
        /// When the member joined. A member that joins again has another time.
        joined_at: Option<u64>,
    },
    MarkIdle {
        team: TeamName,
        member: MemberName,
    },
    RemoveEmptyFolder(PathBuf),
    /// Changes the mode of a file from the first to the second value.
    SetMode(PathBuf, u32, u32),
    CloseWindow(Window),
    /// Ends the process that holds this lock of a removed member.
    Terminate(Process, PathBuf),
    StartSupervisor,
    /// Removes the worktree of a member, if the member's name and team are known.
    RemoveWorktree(Worktree, Option<(TeamName, MemberName)>),
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
            Self::RemoveLock(..) => both("remove the lock", "removed the lock"),
            Self::MoveAside(..) | Self::MoveInbox { .. } => {
                both("move it into brigade's own folder", "moved it into brigade's own folder")
            }
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
            Self::SetMode(_, was, mode) => (
                format!("set its mode to {mode:o}"),
                format!("set its mode to {mode:o}; it was {was:o}"),
            ),
            Self::CloseWindow(_) => both("close the window", "closed the window"),
            Self::Terminate(..) => both("terminate the process", "terminated the process"),
            Self::StartSupervisor => both(
                "start the supervisor, which starts the missing members",
                "started the supervisor, which starts the missing members",
            ),
            Self::RemoveWorktree(..) => both(
                "remove the worktree; keep its branch if it has commits",
                "removed the worktree; kept its branch if it has commits",
            ),
        }
    }
}

impl Fix {
    /// Returns the team that the fix changes, if the check of this one team finds the same problem.
    pub(crate) fn team(&self) -> Option<&TeamName> {
        match self {
            Self::RepairMailbox { team, .. }
            | Self::MoveInbox { team, .. }
            | Self::RestoreRoster { team, .. }
            | Self::RestoreTask { team, .. }
            | Self::UpdateTask { team, .. }
            | Self::RemoveMember { team, .. }
            | Self::MarkIdle { team, .. } => Some(team),
            _ => None,
        }
    }

    /// Returns the member that no process may run while the fix is applied.
    pub(crate) fn idle_member(&self) -> Option<(&TeamName, &MemberName)> {
        match self {
            Self::RemoveMember { team, member, .. } | Self::MarkIdle { team, member } => {
                Some((team, member))
            }
            Self::RemoveWorktree(_, Some((team, member))) => Some((team, member)),
            _ => None,
        }
    }

    /// Applies the fix and returns what it did.
    pub(crate) async fn apply(
        self,
        context: &CliContext,
        snapshot: &DoctorSnapshot,
        backups: &BackupFolder,
    ) -> Result<String, CliError> {
        let (_, did) = self.description();
        match self {
            Self::RemoveLock(path, inspected) => {
                let removed =
                    backups.roots().anchor(&path).and_then(|lock| lock.remove_lock(inspected));
                if removed.map_err(|source| failed("remove", &path, source))? != FileRemoval::Done {
                    return Ok(SETTLED.to_owned());
                }
            }
            Self::MoveAside(path, inspected) => {
                let place = backups.move_here(&path, inspected);
                return match place.map_err(|source| failed("move", &path, source))? {
                    Some(place) => Ok(format!("moved it to {}", place.display())),
                    None => Ok(SETTLED.to_owned()),
                };
            }
            Self::MoveInbox { team, member, path } => {
                let keep = |bytes: &[u8]| backups.store(&path, bytes).map(drop);
                if !context.files.remove_inbox_of_nobody(&team, &member, &keep).await? {
                    return Ok(SETTLED.to_owned());
                }
            }
            Self::RepairMailbox { team, member, path } => {
                backups.back_up(&path)?;
                context.store.inbox(&team, &member).await?;
            }
            Self::RestoreRoster { team, bytes } => {
                back_up_roster(snapshot, backups, &team)?;
                let torn = context.store.team(&team).await?;
                let torn = torn.ok_or_else(|| StoreError::NoTeam { team: team.clone() })?;
                if Team::read(&torn.bytes).is_ok() {
                    return Ok(SETTLED.to_owned());
                }
                let (at, by) = (torn.revision, doctor_actor());
                context.store.replace_team(&team, &bytes, at, &by).await?;
            }
            Self::RestoreTask { team, id, bytes } => {
                back_up_task(snapshot, backups, &team, id)?;
                let torn = context.store.task(&team, id).await?;
                let torn = torn.ok_or(StoreError::NoTask { id })?;
                if Task::read(&torn.bytes).is_ok() {
                    return Ok(SETTLED.to_owned());
                }
                let (at, by) = (torn.revision, doctor_actor());
                context.store.replace_task(&team, id, &bytes, at, &by).await?;
            }
            Self::UpdateTask { team, id, fix } => {
                back_up_task(snapshot, backups, &team, id)?;
                let current = context.store.task(&team, id).await?;
                let current = current.ok_or(StoreError::NoTask { id })?;
                let damaged = |damage| StoreError::Damaged { place: format!("task {id}"), damage };
                let task = Task::read(&current.bytes).map_err(damaged)?;
                let fixed = fixed_task(&task, &fix);
                if fixed == current.bytes {
                    return Ok(SETTLED.to_owned());
                }
                let by = match snapshot.nats_findings {
                    None => doctor_actor(),
                    // In a NATS store, only members can write, so write as the lead.
                    Some(_) => Actor(MemberName::lead().to_string()),
                };
                context.store.replace_task(&team, id, &fixed, current.revision, &by).await?;
            }
            Self::RemoveMember { team, member, joined_at } => {
                back_up_roster(snapshot, backups, &team)?;
                back_up_tasks_of(snapshot, backups, &team, &member)?;
                let seat = seat_for(context, &team, &member).await?;
                match roster::leave_if_joined_at(&seat, &member, joined_at).await {
                    Err(RosterError::JoinedAgain { .. }) => return Ok(SETTLED.to_owned()),
                    left => drop(left?),
                }
            }
            Self::MarkIdle { team, member } => {
                back_up_roster(snapshot, backups, &team)?;
                let seat = seat_for(context, &team, &member).await?;
                roster::set_activity(&seat, &member, Activity::Idle).await?;
            }
            Self::RemoveEmptyFolder(path) => {
                // This is safe, because it only removes empty folders.
                let removed =
                    backups.roots().anchor(&path).and_then(|folder| folder.remove_empty(INBOXES));
                removed.map_err(|source| failed("remove", &path, source))?;
            }
            Self::SetMode(path, _, mode) => {
                let set = match path == snapshot.state_dir {
                    true => set_root_mode(&path, mode),
                    false => backups.roots().anchor(&path).and_then(|file| file.set_mode(mode)),
                };
                set.map_err(|source| failed("set the mode of", &path, source))?;
            }
            Self::CloseWindow(window) => {
                let closed = snapshot.host.tmux().close_if_same(&window).map_err(|source| {
                    let doing = format!("close {}", window.id);
                    CliError::failed(Trouble::Io { doing, source })
                });
                closed?;
            }
            Self::Terminate(process, lock) => terminate(&process, &lock).await?,
            Self::StartSupervisor => snapshot.host.ensure_supervisor().await?,
            Self::RemoveWorktree(worktree, _) => {
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

/// Sets the mode of the state folder itself, which may be a symbolic link.
fn set_root_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Sends SIGTERM to the process that holds a lock, and SIGKILL if it has not ended after five seconds. Fails if the process
/// still holds the lock after that, or if it cannot be identified.
async fn terminate(process: &Process, lock: &Path) -> Result<(), CliError> {
    let holder = || process_lock::holder(lock).map_err(|source| failed("read", lock, source));
    for signal in [Signal::TERM, Signal::KILL] {
        send_signal(process, signal);
        for _ in 0..100 {
            // The lock may have passed to another process.
            match holder()? {
                Some(holder) if holder.pid == process.pid => {}
                _ => return Ok(()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let why = match process.pid {
        0 => "brigade cannot identify the process".to_owned(),
        pid => format!("process {pid} survives SIGKILL"),
    };
    let member = lock.parent().and_then(Path::file_name).unwrap_or_default();
    let names = vec![member.to_string_lossy().into_owned()];
    let error = CliError::failed(Trouble::StillRunning { names, why });
    Err(error.hint(format!("find the process with `fuser {0}` or `lsof {0}`", lock.display())))
}
