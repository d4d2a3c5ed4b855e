//! The messages of a team, and their delivery status.

use std::collections::HashMap;

use super::{MemberIndex, Millis};
use crate::event::MessageKey;
use crate::store::event_log::RecordRef;

/// A message, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageRef {
    /// When the message was written.
    pub at: Millis,
    /// The position of the journal record that contains the message's text.
    pub record: RecordRef,
    /// The sender.
    pub from: MemberIndex,
    /// The recipient.
    pub to: MemberIndex,
    /// The type of the message.
    pub kind: MessageKind,
    /// Whether the count of unread messages includes the message.
    is_counted: bool,
    read: Millis,
    shown: Millis,
}

/// The value of a time that is not set.
const NEVER: Millis = Millis(i64::MIN);

/// How far a message has been delivered, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// The message is in the inbox, unread.
    Written,
    /// The recipient's program has read the message.
    Read(Millis),
    /// The message was shown to the recipient's model.
    Shown(Millis),
}

impl MessageRef {
    /// Returns how far the message has been delivered.
    pub fn status(&self) -> DeliveryStatus {
        match (self.shown != NEVER, self.read != NEVER) {
            (true, _) => DeliveryStatus::Shown(self.shown),
            (false, true) => DeliveryStatus::Read(self.read),
            (false, false) => DeliveryStatus::Written,
        }
    }

    /// Returns when the message was read; `None` if it is unread.
    pub fn read(&self) -> Option<Millis> {
        (self.read != NEVER).then_some(self.read)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        /// The type of a message: plain text, or a protocol message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum MessageKind {
            /// Plain text.
            Text,
            $($(#[$doc])* $name,)*
            /// A protocol message of an unknown type.
            Other,
        }

        impl MessageKind {
            /// Converts the `type` of a protocol message.
            pub(super) fn from_wire(kind: &str) -> Self {
                match kind {
                    $($kind => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

kinds! {
    /// A member is idle.
    Idle = "idle_notification",
    /// A task was assigned.
    Assignment = "task_assignment",
    /// A member is asked to shut down.
    ShutdownRequest = "shutdown_request",
    /// The member agrees to shut down.
    ShutdownApproved = "shutdown_approved",
    /// The member declines to shut down.
    ShutdownRejected = "shutdown_rejected",
    /// A plan is submitted for approval.
    PlanRequest = "plan_approval_request",
    /// A plan is approved or rejected.
    PlanResponse = "plan_approval_response",
    /// Permission to use a tool is requested.
    PermissionRequest = "permission_request",
    /// A permission request is granted or denied.
    PermissionResponse = "permission_response",
    /// A member has terminated.
    Terminated = "teammate_terminated",
}

/// All messages of the team.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageLog {
    messages: Vec<MessageRef>,
    by_key: HashMap<(MemberIndex, MessageKey), u32>,
}

impl MessageLog {
    pub(super) fn letters(&self) -> &[MessageRef] {
        &self.messages
    }

    /// Adds a message and returns its number; `None` if it is already known. A sent message may be recorded again
    /// when it is found in the inbox.
    pub(super) fn add(
        &mut self,
        at: Millis,
        spot: RecordRef,
        (from, to): (MemberIndex, MemberIndex),
        key: MessageKey,
        (kind, is_counted): (MessageKind, bool),
    ) -> Option<u32> {
        let number = u32::try_from(self.messages.len()).ok()?;
        match self.by_key.entry((to, key)) {
            std::collections::hash_map::Entry::Occupied(_) => return None,
            std::collections::hash_map::Entry::Vacant(free) => free.insert(number),
        };
        self.messages.push(MessageRef {
            at,
            record: spot,
            from,
            to,
            kind,
            is_counted,
            read: NEVER,
            shown: NEVER,
        });
        Some(number)
    }

    /// Marks a message as read. Returns whether it was counted as unread before.
    pub(super) fn read(&mut self, to: MemberIndex, key: MessageKey, at: Millis) -> bool {
        let Some(message) = self.message_mut(to, key) else { return false };
        let is_news = message.read == NEVER;
        if is_news {
            message.read = at;
        }
        is_news && message.shown == NEVER && message.is_counted
    }

    /// Marks a message as shown. Returns whether it was counted as unread before.
    pub(super) fn shown(&mut self, to: MemberIndex, key: MessageKey, at: Millis) -> bool {
        let Some(message) = self.message_mut(to, key) else { return false };
        let was_unread = message.read == NEVER && message.shown == NEVER;
        if message.shown == NEVER {
            message.shown = at;
        }
        was_unread && message.is_counted
    }

    /// Forgets all message keys, so that later events do not change the messages recorded so far.
    pub(super) fn forget_keys(&mut self) {
        self.by_key.clear();
    }

    fn message_mut(&mut self, to: MemberIndex, key: MessageKey) -> Option<&mut MessageRef> {
        let number = *self.by_key.get(&(to, key))?;
        self.messages.get_mut(usize::try_from(number).ok()?)
    }
}
