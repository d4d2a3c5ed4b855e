//! `brigade wait`

use std::time::Duration;

use brigade_host::wait_for::{WaitCondition, WaitRequest};
use brigade_wire::name::{MemberName, TaskId};
use clap::Args;

use super::duration::wait;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade wait --task 3 4 --timeout 10m     until tasks 3 and 4 are done
  brigade wait --tasks                      until all tasks are done
  brigade wait --idle bob                   until bob has done what it was asked
  brigade wait --message --from bob         until a message from bob is unread
  brigade wait --any --approval --idle bob  until bob asks for something or is done
  brigade wait --tasks --timeout 0 || echo \"not yet\"

Exit codes:
    0  the conditions hold
    1  they can no longer hold: a task was deleted, a member stopped or its turn failed, the team ended
  124  the time is over";

/// Arguments of `brigade wait`.
///
/// The conditions are options and not subcommands (`wait task 3`), because a script combines several of them in one call.
#[derive(Args, Debug)]
pub(crate) struct WaitArgs {
    /// Wait until these tasks are done
    #[arg(long, value_name = "ID", num_args = 1..)]
    task: Vec<TaskId>,
    /// Wait until all tasks of the team are done
    #[arg(long)]
    tasks: bool,
    /// Wait until these members are idle, with no unread mail and no open request
    #[arg(long, value_name = "MEMBER", num_args = 1..)]
    idle: Vec<MemberName>,
    /// Wait until a plan or permission request waits for your answer
    #[arg(long)]
    approval: bool,
    /// Wait until you have an unread message (notices that a member is idle do not count)
    #[arg(long)]
    message: bool,
    /// With --message: only a message from this member
    #[arg(long, value_name = "MEMBER", requires = "message")]
    from: Option<MemberName>,
    /// Wait for one of the conditions instead of all
    #[arg(long)]
    any: bool,
    /// The longest time to wait, such as 30s or 10m; 0 only checks [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = wait)]
    timeout: Option<Duration>,
}

impl WaitArgs {
    /// Returns the conditions and the time limit.
    pub(crate) fn request(self) -> WaitRequest {
        let mut conditions = Vec::new();
        conditions.extend(self.task.into_iter().map(WaitCondition::TaskDone));
        conditions.extend(self.tasks.then_some(WaitCondition::AllTasksDone));
        conditions.extend(self.idle.into_iter().map(WaitCondition::MemberIdle));
        conditions.extend(self.approval.then_some(WaitCondition::ApprovalWaits));
        if self.message {
            conditions.push(WaitCondition::MessageArrived { from: self.from });
        }
        WaitRequest { conditions, any: self.any, timeout: self.timeout }
    }
}
