//! The story of a task with the changes in its owner's worktree.

use brigade_core::seat::Seat;
use brigade_core::task_story::{self, TaskStory};
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Task;
use serde::Serialize;

use crate::HostError;
use crate::context::Context;
use crate::worktree::{DiffFormat, Worktree};

/// The changes in the worktree of a task's owner. They may belong to other tasks of the owner, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerWorktree {
    /// The owner.
    pub member: String,
    /// The folder.
    pub dir: std::path::PathBuf,
    /// The output of `git diff --stat` since the worktree was created.
    pub stat: String,
}

/// The facts about a task that this host knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostTaskStory {
    /// The changes, the mail and the turns.
    #[serde(flatten)]
    pub story: TaskStory,
    /// The worktree of the owner, if it is on this host.
    pub worktree: Option<OwnerWorktree>,
}

/// Reads the story of a task. `document` is the task's file.
pub async fn read(
    context: &Context,
    seat: &Seat,
    id: TaskId,
    document: &[u8],
) -> Result<HostTaskStory, HostError> {
    let story = task_story::read(seat, id).await?;
    let owner = Task::read(document).ok().and_then(|task| Some(task.owner()?.into_owned()));
    let worktree = owner.and_then(|owner| worktree(context, seat, &owner));
    Ok(HostTaskStory { story, worktree })
}

/// Returns the owner's worktree; `None` if there is none on this host or git cannot read it.
fn worktree(context: &Context, seat: &Seat, owner: &str) -> Option<OwnerWorktree> {
    let name: MemberName = owner.parse().ok()?;
    let host = context.host().ok()?;
    let spec = host.local_member(&seat.team, &name).ok()?;
    let worktree = host.worktree(&seat.team, &spec).filter(Worktree::exists)?;
    let stat = worktree.diff(DiffFormat::Stat, &[]).ok()?;
    Some(OwnerWorktree { member: owner.to_owned(), dir: worktree.dir, stat })
}
