//! What mends: one safe step each. Nothing is deleted that could be missed: it is put aside in brigade's
//! own folder, or copied there before it is changed.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::pulse::Process;
use brigade_core::roster::{self, Activity};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, StoreError};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{Status, Task, TaskChange};
use brigade_wire::team::Team;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;

use super::backup::{Aside, failed};
use super::snapshot::House;
use crate::context::Context;
use crate::error::{CliError, Trouble};
use brigade_host::process::send_signal;
use brigade_host::process_lock;
use brigade_host::worktree::{Removed, Worktree};

/// One step.
#[derive(Debug)]
pub(crate) enum Deed {
    RemoveLock(PathBuf),
    MoveAside(PathBuf),
    /// The store looks at a mailbox: it mends what is torn, and clears up behind who was killed.
    Look {
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
    MendTask {
        team: TeamName,
        id: TaskId,
        mend: TaskMend,
    },
    Leave {
        team: TeamName,
        member: MemberName,
    },
    Idle {
        team: TeamName,
        member: MemberName,
    },
    RemoveEmpty(PathBuf),
    SetMode(PathBuf, u32),
    CloseWindow(String),
    End(Process),
    Supervise,
    RemoveWorktree(Worktree),
}

/// What is changed in a task.
#[derive(Debug)]
pub(crate) enum TaskMend {
    /// What it lacks is filled in.
    Complete,
    /// It is nobody's any more, if it is still this one's.
    Release(String),
    /// It does not wait for these any more.
    Forget(Vec<String>),
}

impl Deed {
    /// What would be done, and what was.
    pub(crate) fn words(&self) -> (String, String) {
        let both = |will: &str, did: &str| (will.to_owned(), did.to_owned());
        match self {
            Self::RemoveLock(_) => both("remove the lock", "removed the lock"),
            Self::MoveAside(_) => both("move it into brigade's own folder", "moved it"),
            Self::Look { .. } => both(
                "copy it aside, keep what is whole and put back what the journal knows",
                "copied it aside, kept what was whole and put back what the journal knew",
            ),
            Self::RestoreRoster { .. } | Self::RestoreTask { .. } => both(
                "copy it aside, and put back what brigade saw there last",
                "copied it aside, and put back what brigade had seen there last",
            ),
            Self::MendTask { mend: TaskMend::Complete, .. } => {
                both("fill in what it lacks", "filled in what it lacked")
            }
            Self::MendTask { mend: TaskMend::Release(_), .. } => {
                both("give it back to the board", "gave it back to the board")
            }
            Self::MendTask { mend: TaskMend::Forget(_), .. } => {
                both("let it wait for that no more", "it waits for that no more")
            }
            Self::Leave { .. } => both(
                "take it off the roster, and give its tasks back",
                "took it off the roster, and gave its tasks back",
            ),
            Self::Idle { .. } => both("write down that it is idle", "wrote down that it is idle"),
            Self::RemoveEmpty(_) => both("remove the empty folder", "removed the empty folder"),
            Self::SetMode(_, mode) => {
                (format!("set its mode to {mode:o}"), format!("set its mode to {mode:o}"))
            }
            Self::CloseWindow(_) => both("close the window", "closed the window"),
            Self::End(_) => both("tell the process to end", "told the process to end"),
            Self::Supervise => both(
                "start the supervising process, which starts who is missing",
                "started the supervising process, which starts who is missing",
            ),
            Self::RemoveWorktree(_) => both(
                "remove the worktree; a branch with commits stays",
                "removed the worktree; a branch with commits stays",
            ),
        }
    }
}

impl Deed {
    /// Does it, and tells what was done.
    pub(crate) async fn carry_out(
        self,
        context: &Context,
        house: &House,
        aside: &Aside,
    ) -> Result<String, CliError> {
        let (_, did) = self.words();
        match self {
            Self::RemoveLock(path) => {
                remove_lock(&path).map_err(|source| failed("remove", &path, source))?;
            }
            Self::MoveAside(path) => {
                // One deed may have done the work of another.
                if path.symlink_metadata().is_err() {
                    return Ok("nothing to do any more".to_owned());
                }
                let place = aside.take(&path);
                let place = place.map_err(|source| failed("move aside", &path, source))?;
                return Ok(format!("moved it to {}", place.display()));
            }
            Self::Look { team, member, path } => {
                aside.keep(&path)?;
                context.store.inbox(&team, &member).await?;
            }
            Self::RestoreRoster { team, bytes } => {
                let path = house.claude_dir.join("teams").join(team.as_str()).join("config.json");
                aside.keep(&path)?;
                let torn = context.store.team(&team).await?;
                let torn = torn.ok_or_else(|| StoreError::NoTeam { team: team.clone() })?;
                if Team::read(&torn.bytes).is_err() {
                    context.store.replace_team(&team, &bytes, torn.revision, &doctor()).await?;
                }
            }
            Self::RestoreTask { team, id, bytes } => {
                keep_task(house, aside, &team, id)?;
                let torn = context.store.task(&team, id).await?;
                let torn = torn.ok_or(StoreError::NoTask { id })?;
                if Task::read(&torn.bytes).is_err() {
                    context.store.replace_task(&team, id, &bytes, torn.revision, &doctor()).await?;
                }
            }
            Self::MendTask { team, id, mend } => {
                keep_task(house, aside, &team, id)?;
                let there = context.store.task(&team, id).await?;
                let there = there.ok_or(StoreError::NoTask { id })?;
                let damaged = |damage| StoreError::Damaged { place: format!("task {id}"), damage };
                let task = Task::read(&there.bytes).map_err(damaged)?;
                let mended = mended(&task, &mend);
                let by = match house.ills {
                    None => doctor(),
                    // In an engine who writes is a member.
                    Some(_) => Actor(MemberName::lead().to_string()),
                };
                context.store.replace_task(&team, id, &mended, there.revision, &by).await?;
            }
            Self::Leave { team, member } => {
                keep_roster(house, aside, &team)?;
                keep_tasks_of(house, aside, &team, &member)?;
                roster::leave(&seat_for(context, &team, &member).await?, &member).await?;
            }
            Self::Idle { team, member } => {
                // It may have been started meanwhile, and then knows better.
                let plays = process_lock::holder(&house.host.registry.seat(&team, &member));
                if matches!(plays, Ok(None)) {
                    keep_roster(house, aside, &team)?;
                    let seat = seat_for(context, &team, &member).await?;
                    roster::set_activity(&seat, &member, Activity::Idle).await?;
                }
            }
            Self::RemoveEmpty(path) => {
                // Nothing but empty folders is ever removed by this.
                let _absent = fs::remove_dir(path.join("inboxes"));
                fs::remove_dir(&path).map_err(|source| failed("remove", &path, source))?;
            }
            Self::SetMode(path, mode) => {
                let set = fs::set_permissions(&path, Permissions::from_mode(mode));
                set.map_err(|source| failed("set the mode of", &path, source))?;
            }
            Self::CloseWindow(window) => house.host.tmux().close(&window).map_err(|source| {
                CliError::failed(Trouble::Io { doing: format!("close {window}"), source })
            })?,
            Self::End(process) => end(&process).await,
            Self::Supervise => house.host.supervised().await?,
            Self::RemoveWorktree(worktree) => {
                if worktree.remove()? == Removed::Stays {
                    return Ok("it has changes that are not committed, and stays".to_owned());
                }
            }
        }
        Ok(did)
    }
}

fn doctor() -> Actor {
    Actor("brigade doctor".to_owned())
}

async fn seat_for(
    context: &Context,
    team: &TeamName,
    member: &MemberName,
) -> Result<Seat, CliError> {
    let lead = context.seat_of(team.clone(), MemberName::lead());
    context.host()?.acting(&lead, member).await
}

fn keep_roster(house: &House, aside: &Aside, team: &TeamName) -> Result<(), CliError> {
    aside.keep(&house.claude_dir.join("teams").join(team.as_str()).join("config.json"))
}

fn keep_task(house: &House, aside: &Aside, team: &TeamName, id: TaskId) -> Result<(), CliError> {
    aside.keep(&house.claude_dir.join("tasks").join(team.as_str()).join(format!("{id}.json")))
}

/// Keeps the tasks that a member would give back.
fn keep_tasks_of(
    house: &House,
    aside: &Aside,
    team: &TeamName,
    member: &MemberName,
) -> Result<(), CliError> {
    let folder = house.teams.iter().find(|folder| folder.name == team.as_str());
    for (id, paper) in folder.iter().flat_map(|folder| &folder.tasks) {
        let owner = |task: Task<'_>| task.owner().is_some_and(|owner| owner == member.as_str());
        if Task::read(&paper.bytes).is_ok_and(owner) {
            keep_task(house, aside, team, *id)?;
        }
    }
    Ok(())
}

fn mended(task: &Task<'_>, mend: &TaskMend) -> Vec<u8> {
    let change = match mend {
        TaskMend::Complete => TaskChange {
            description: task.description().is_none().then_some(""),
            status: task.status().is_none().then_some(Status::Pending),
            blocks: task.blocks().is_none().then(Vec::new),
            blocked_by: task.blocked_by().is_none().then(Vec::new),
            ..TaskChange::default()
        },
        TaskMend::Release(owner) if task.owner().is_some_and(|its| its == *owner) => TaskChange {
            owner: Change::Clear,
            status: (task.status() == Some(Status::InProgress)).then_some(Status::Pending),
            ..TaskChange::default()
        },
        TaskMend::Release(_) => TaskChange::default(),
        TaskMend::Forget(lost) => {
            let waits_for = task.blocked_by().unwrap_or_default().into_iter();
            let kept = waits_for.filter(|id| !lost.iter().any(|lost| *lost == **id)).collect();
            TaskChange { blocked_by: Some(kept), ..TaskChange::default() }
        }
    };
    task.with(&change).into_owned()
}

/// Removes a lock that was found stale, and no other that came into its place since: it is moved aside
/// first, and put back if it is another.
fn remove_lock(path: &Path) -> io::Result<()> {
    let is = |path: &Path| {
        path.symlink_metadata().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
    };
    let Ok(stale) = is(path) else { return Ok(()) };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp.brigade-{}-0", std::process::id()));
    let moved = path.with_file_name(name);
    match fs::rename(path, &moved) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    if is(&moved)? == stale && fs::remove_dir(&moved).is_ok() {
        return Ok(());
    }
    renameat_with(CWD, &moved, CWD, path, RenameFlags::NOREPLACE)?;
    Err(io::Error::other("somebody uses it again"))
}

/// Tells a process to end, and waits a little until it has.
async fn end(process: &Process) {
    send_signal(process, Signal::TERM);
    for _ in 0..100 {
        if !brigade_host::process::is_there(process) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
