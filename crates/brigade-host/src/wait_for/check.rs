//! Checks conditions.

use brigade_core::approvals::{self, ApprovalSubject};
use brigade_core::board::{self, BoardError};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::{Mail, StoreError};
use brigade_core::text;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task};

use super::{CheckedCondition, ConcernedMailboxes, WaitCondition, check_member};
use crate::Context;
use crate::error::{HostError, Trouble, no_member_hint};
use crate::rules;

/// Checks the conditions of one wait.
pub(super) struct Checker<'c> {
    context: &'c Context,
    /// For reading the team.
    reader: Seat,
    /// For reading the caller's own inbox.
    owner: Option<Seat>,
    /// For reading the requests to the lead.
    lead: Option<Seat>,
    /// When the team was created. Tells the team from a later team with the same name.
    created: u64,
}

impl<'c> Checker<'c> {
    /// Finds the seats that the conditions need. Fails if a condition names a task or a member that does not exist.
    pub(super) async fn new(
        context: &'c Context,
        reader: Seat,
        conditions: &[WaitCondition],
    ) -> Result<Self, HostError> {
        let (mut owner, mut lead) = (None, None);
        let created = created(&reader).await?.unwrap_or_default();
        for condition in conditions {
            match condition {
                WaitCondition::TaskDone(id) => drop(board::show(&reader, *id).await?),
                WaitCondition::AllTasksDone if board::list(&reader).await?.0.is_empty() => {
                    let error =
                        HostError::failed(Trouble::NoTasks { team: reader.team.to_string() });
                    return Err(error.hint("add one with `brigade task add`"));
                }
                WaitCondition::AllTasksDone => {}
                WaitCondition::MemberIdle(name) => check_known(context, &reader, name).await?,
                WaitCondition::ApprovalWaits => lead = Some(context.answering_seat().await?),
                WaitCondition::MessageArrived { from } => {
                    if let Some(from) = from {
                        check_known(context, &reader, from).await?;
                    }
                    owner = Some(context.seat().await?);
                }
            }
        }
        Ok(Self { context, reader, owner, lead, created })
    }

    /// Returns the members whose inboxes the conditions are about.
    pub(super) fn mailboxes(&self) -> ConcernedMailboxes {
        let name = |seat: &Option<Seat>| seat.as_ref().unwrap_or(&self.reader).name.to_string();
        ConcernedMailboxes { reader: name(&self.owner), lead: name(&self.lead) }
    }

    /// Checks all conditions.
    pub(super) async fn check_all(
        &self,
        conditions: &[WaitCondition],
    ) -> Result<Vec<CheckedCondition>, HostError> {
        let mut found = Vec::new();
        for condition in conditions {
            found.push(self.check(condition).await?);
        }
        // The team may have been deleted while the conditions were checked.
        if created(&self.reader).await? != Some(self.created) {
            let gone = CheckedCondition::failed(format!("team {} was deleted", self.reader.team));
            found = vec![gone; conditions.len()];
        }
        Ok(found)
    }

    async fn check(&self, condition: &WaitCondition) -> Result<CheckedCondition, HostError> {
        let checked = match condition {
            WaitCondition::TaskDone(id) => self.task(*id).await,
            WaitCondition::AllTasksDone => self.all_tasks().await,
            WaitCondition::MemberIdle(name) => check_member(self.context, &self.reader, name).await,
            WaitCondition::ApprovalWaits => self.approval().await,
            WaitCondition::MessageArrived { from } => self.message(from.as_ref()).await,
        };
        match checked {
            Err(error) if is_no_team(&error) => {
                Ok(CheckedCondition::failed(format!("team {} was deleted", self.reader.team)))
            }
            checked => checked,
        }
    }

    async fn task(&self, id: TaskId) -> Result<CheckedCondition, HostError> {
        let document = match board::show(&self.reader, id).await {
            Ok(document) => document,
            Err(BoardError::NoTask(_)) => {
                return Ok(CheckedCondition::failed(format!("task {id} was deleted")));
            }
            Err(error) => return Err(error.into()),
        };
        let task = Task::read(&document.bytes).map_err(HostError::failed)?;
        let owner = task.owner().map(|owner| format!(", owner {owner}")).unwrap_or_default();
        Ok(match task.status() {
            Some(Status::Completed) => CheckedCondition::met(format!("task {id} is done")),
            Some(Status::InProgress) => {
                CheckedCondition::unmet(format!("task {id} is in progress{owner}"))
            }
            _ => CheckedCondition::unmet(format!("task {id} is not started{owner}")),
        })
    }

    async fn all_tasks(&self) -> Result<CheckedCondition, HostError> {
        let (tasks, _) = board::list(&self.reader).await?;
        let is_done = |bytes: &[u8]| {
            Task::read(bytes).is_ok_and(|task| task.status() == Some(Status::Completed))
        };
        let done = tasks.iter().filter(|(_, document)| is_done(&document.bytes)).count();
        let all = text::count(tasks.len(), "task");
        Ok(match tasks.len() {
            0 => CheckedCondition::failed("all tasks were deleted"),
            total if total == done => CheckedCondition::met(format!("{all} done")),
            _ => CheckedCondition::unmet(format!("{done} of {all} done")),
        })
    }

    async fn approval(&self) -> Result<CheckedCondition, HostError> {
        let lead = self.lead.as_ref().unwrap_or(&self.reader);
        let mut waiting = approvals::waiting(lead).await?;
        rules::retain_unruled(self.context, lead, &mut waiting).await?;
        Ok(match waiting.first() {
            None => CheckedCondition::unmet("no request waits"),
            Some(first) => {
                let what = match &first.subject {
                    ApprovalSubject::Plan { .. } => "approval of a plan".to_owned(),
                    ApprovalSubject::Permission { action, .. } => {
                        format!("permission to {}", text::one_line(&action.summary()))
                    }
                };
                let (number, from) = (first.number, &first.from);
                CheckedCondition::met(format!("request {number}: {from} asks for {what}"))
            }
        })
    }

    async fn message(&self, from: Option<&MemberName>) -> Result<CheckedCondition, HostError> {
        let owner = self.owner.as_ref().unwrap_or(&self.reader);
        let mail = mail::inbox(owner, &owner.name, InboxFilter::Unread).await?;
        let is_wanted = |mail: &&Mail| {
            from.is_none_or(|from| mail.from() == from.as_str())
                && mail.content().is_some_and(|content| content.text().is_some())
        };
        Ok(match (mail.iter().find(is_wanted), from) {
            (Some(mail), _) => {
                let from = text::one_line(&mail.from());
                CheckedCondition::met(format!("{} has a message from {from}", owner.name))
            }
            (None, Some(from)) => CheckedCondition::unmet(format!("no unread message from {from}")),
            (None, None) => CheckedCondition::unmet("no unread message"),
        })
    }
}

/// Returns when the team was created; `None` if it does not exist.
async fn created(seat: &Seat) -> Result<Option<u64>, HostError> {
    let roster = seat.find_roster().await?;
    Ok(roster.map(|roster| roster.team().created_at().unwrap_or_default()))
}

/// Fails if the member is neither on the roster nor about to be started on this host.
async fn check_known(context: &Context, seat: &Seat, name: &MemberName) -> Result<(), HostError> {
    let roster = seat.roster().await?;
    let host = context.host()?;
    if roster.team().member(name.as_str()).is_some()
        || host.of_member(&seat.team, name)?.registry.member(&seat.team, name)?.is_some()
    {
        return Ok(());
    }
    let hint = no_member_hint(name.as_str(), &roster.team().member_names());
    let (name, team) = (name.to_string(), seat.team.to_string());
    Err(HostError::failed(Trouble::NoMember { name, team }).hint(hint))
}

fn is_no_team(error: &HostError) -> bool {
    matches!(error.source.downcast_ref(), Some(StoreError::NoTeam { .. }))
}
