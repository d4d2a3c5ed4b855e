//! Tells the new owner of a task about the assignment.

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::protocol::{Protocol, TaskAssignment};
use brigade_wire::task::Task;

use super::{BoardError, show};
use crate::clock::wire_time;
use crate::event::TopicKind;
use crate::mail;
use crate::seat::Seat;
use crate::store::MailQuery;

/// Sends the owner of a task the message about the assignment, unless the owner has received it. The message is missing
/// if a process died between the assignment and the message. Returns whether the message was sent.
pub async fn notify_owner_once(
    seat: &Seat,
    id: TaskId,
    owner: &MemberName,
) -> Result<bool, BoardError> {
    let created = seat.roster().await?.team().created_at().unwrap_or_default();
    let number = id.to_string();
    let query = MailQuery::About(TopicKind::Assignment, &[number.as_str()]);
    let records = seat.store.find_mail(&seat.team, owner, query).await?;
    if records.iter().any(|record| record.belongs_to_team(created)) {
        return Ok(false);
    }
    let document = show(seat, id).await?;
    notify_owner(seat, id, owner, &document.bytes).await?;
    Ok(true)
}

/// Sends the new owner of a task a message about the assignment.
pub(super) async fn notify_owner(
    seat: &Seat,
    id: TaskId,
    owner: &MemberName,
    document: &[u8],
) -> Result<(), BoardError> {
    let task = Task::read(document).map_err(|_| BoardError::NotATask(id))?;
    let assignment = TaskAssignment {
        task_id: id.to_string(),
        subject: task.subject().unwrap_or_default().into_owned(),
        description: task.description().unwrap_or_default().into_owned(),
        assigned_by: seat.name.to_string(),
        timestamp: wire_time(seat.clock.now()),
    };
    let text = Protocol::TaskAssignment(assignment).to_text();
    let sent = mail::send_protocol(seat, owner, &text).await;
    sent.map(drop).map_err(|source| {
        let (owner, source) = (owner.clone(), Box::new(source));
        BoardError::NotTold { id, owner, source }
    })
}
