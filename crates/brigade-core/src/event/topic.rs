//! Finds out which records belong to a request, an answer or an assignment, so that a store can find them again without reading
//! its whole history.

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::protocol::Protocol;

use super::Event;

/// The subject of a message that is more than a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The kind of message.
    pub kind: TopicKind,
    /// The id of the request, or the number of the task.
    pub id: String,
    /// The name that the message gives as its sender. It is not checked.
    pub sender: String,
}

/// The kinds of messages that can be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicKind {
    /// A request to shut down, to approve a plan, or for permission.
    Request,
    /// The answer to a request to shut down.
    ShutdownAnswer,
    /// The answer to a request to approve a plan.
    PlanAnswer,
    /// The answer to a request for permission.
    PermissionAnswer,
    /// The message to the new owner of a task.
    Assignment,
}

impl Topic {
    /// Returns the topic of the message that the event added to a mailbox. Returns `None` for a text, for a message of
    /// another kind, and for an event that added no message.
    pub fn of_event(event: &Event) -> Option<Self> {
        let (Event::Sent { message, .. } | Event::Seen { message, .. }) = event else {
            return None;
        };
        let topic = |message: Option<Message<'_>>| {
            let message = message?;
            let Body::Protocol(body) = message.body() else { return None };
            let (kind, id) = match body {
                Protocol::ShutdownRequest(asked) => (TopicKind::Request, asked.request_id),
                Protocol::PlanApprovalRequest(asked) => (TopicKind::Request, asked.request_id),
                Protocol::PermissionRequest(asked) => (TopicKind::Request, asked.request_id),
                Protocol::ShutdownApproved(answer) => {
                    (TopicKind::ShutdownAnswer, answer.request_id)
                }
                Protocol::ShutdownRejected(answer) => {
                    (TopicKind::ShutdownAnswer, answer.request_id)
                }
                Protocol::PlanApprovalResponse(answer) => {
                    (TopicKind::PlanAnswer, answer.request_id)
                }
                Protocol::PermissionResponse(answer) => {
                    (TopicKind::PermissionAnswer, answer.request_id)
                }
                Protocol::TaskAssignment(task) => (TopicKind::Assignment, task.task_id),
                _ => return None,
            };
            Some(Self { kind, id, sender: message.from().into_owned() })
        };
        with_message(message.get().as_bytes(), topic).ok().flatten()
    }
}
