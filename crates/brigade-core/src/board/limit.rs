//! Limits on the number and the size of tasks, so that a member cannot make the board too large to list. The lead may add
//! more tasks than a member.

use thiserror::Error;

use crate::authority::Role;
use crate::seat::Seat;
use crate::store::BoardSize;

use super::BoardError;

/// A member may add tasks while the board has fewer tasks and bytes than this. A listing of this many tasks takes a small
/// part of a second.
const MEMBER_LIMIT: BoardSize = BoardSize { tasks: 2_000, bytes: 8 << 20 };
/// The lead may add tasks while the board has fewer tasks and bytes than this.
const LEAD_LIMIT: BoardSize = BoardSize { tasks: 20_000, bytes: 64 << 20 };
/// Tasks up to this length are only counted. The size of the board is checked only for longer tasks, because a store has to
/// list the whole board to find out its size.
const SMALL_TASK_BYTES: usize = 4096;

/// The board has no room for a task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BoardFull {
    /// The board has too many tasks.
    #[error("the board is full: it has {tasks} tasks, and {who} may add tasks up to {limit}")]
    Tasks {
        /// The number of tasks on the board.
        tasks: usize,
        /// The number of tasks up to which the caller may add tasks.
        limit: usize,
        /// "a member" or "the lead".
        who: &'static str,
    },
    /// The tasks are too long.
    #[error(
        "the board is full: its tasks have {kilobytes} kB, and {who} may add to them up to {limit} kB"
    )]
    Bytes {
        /// The size of all tasks in kilobytes.
        kilobytes: usize,
        /// The size in kilobytes up to which the caller may add to the board.
        limit: usize,
        /// "a member" or "the lead".
        who: &'static str,
    },
}

fn limit(role: Role) -> (BoardSize, &'static str) {
    match role {
        Role::Lead => (LEAD_LIMIT, "the lead"),
        Role::Teammate => (MEMBER_LIMIT, "a member"),
    }
}

/// Checks that the board has room for a new task of this length.
pub(super) async fn check_new_task(seat: &Seat, role: Role, len: usize) -> Result<(), BoardError> {
    let (limit, who) = limit(role);
    let (store, team) = (&seat.store, &seat.team);
    if store.estimated_task_count(team).await? >= limit.tasks {
        let tasks = store.board_size(team).await?.tasks;
        if tasks >= limit.tasks {
            return Err(BoardFull::Tasks { tasks, limit: limit.tasks, who }.into());
        }
    }
    check_longer_task(seat, role, 0, len).await
}

/// Checks that the board has room for a task whose length changes.
pub(super) async fn check_longer_task(
    seat: &Seat,
    role: Role,
    before: usize,
    after: usize,
) -> Result<(), BoardError> {
    if after <= SMALL_TASK_BYTES || after <= before {
        return Ok(());
    }
    let (limit, who) = limit(role);
    let bytes = seat.store.board_size(&seat.team).await?.bytes;
    if bytes + (after - before) > limit.bytes {
        let (kilobytes, limit) = (bytes / 1000, limit.bytes / 1000);
        return Err(BoardFull::Bytes { kilobytes, limit, who }.into());
    }
    Ok(())
}

/// Checks that the board has room for this many new tasks.
pub(super) async fn check_new_tasks(
    seat: &Seat,
    role: Role,
    count: usize,
) -> Result<(), BoardError> {
    let (limit, who) = limit(role);
    let tasks = seat.store.board_size(&seat.team).await?.tasks;
    if tasks + count > limit.tasks {
        return Err(BoardFull::Tasks { tasks, limit: limit.tasks, who }.into());
    }
    Ok(())
}
