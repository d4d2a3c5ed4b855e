//! The messages of a team, and their delivery status.

use std::collections::HashMap;

use super::{MemberIndex, Millis};
use crate::event::MessageKey;
use crate::store::event_log::RecordRef;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageRef {
    /// When it was written.
    pub at: Millis,
    /// Position of the record with its text.
    pub record: RecordRef,
    /// The sender.
    pub from: MemberIndex,
    /// The recipient.
    pub to: MemberIndex,
    /// The type of message.
    pub kind: MessageKind,
    read: Millis,
    shown: Millis,
}

/// Marks a time that is not set.
const NEVER: Millis = Millis(i64::MIN);

/// How far a message has been delivered, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// In the inbox, unread.
    Written,
    /// Read by the recipient's program.
    Read(Millis),
    /// Shown to the recipient's model.
    Shown(Millis),
}

impl MessageRef {
    /// The delivery status.
    pub fn status(&self) -> DeliveryStatus {
        match (self.shown != NEVER, self.read != NEVER) {
            (true, _) => DeliveryStatus::Shown(self.shown),
            (false, true) => DeliveryStatus::Read(self.read),
            (false, false) => DeliveryStatus::Written,
        }
    }

    /// When it was read.
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
            /// From the `type` on the wire.
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
    /// The answer to a plan.
    PlanResponse = "plan_approval_response",
    /// Permission to use a tool is requested.
    PermissionRequest = "permission_request",
    /// The answer to a permission request.
    PermissionResponse = "permission_response",
    /// A member has terminated.
    Terminated = "teammate_terminated",
}

/// All messages.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageLog {
    messages: Vec<MessageRef>,
    by_key: HashMap<(MemberIndex, MessageKey), u32>,
}

impl MessageLog {
    pub(super) fn letters(&self) -> &[MessageRef] {
        &self.messages
    }

    /// Adds a message and returns its number; `None` if it is known: a sent message may also be found in the inbox.
    pub(super) fn add(
        &mut self,
        at: Millis,
        spot: RecordRef,
        (from, to): (MemberIndex, MemberIndex),
        key: MessageKey,
        kind: MessageKind,
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
            read: NEVER,
            shown: NEVER,
        });
        Some(number)
    }

    /// Marks it read. Returns whether it was unread until now.
    pub(super) fn read(&mut self, to: MemberIndex, key: MessageKey, at: Millis) -> bool {
        let Some(message) = self.message_mut(to, key) else { return false };
        let is_news = message.read == NEVER;
        if is_news {
            message.read = at;
        }
        is_news && message.shown == NEVER
    }

    /// Marks it shown. Returns whether it was unread until now.
    pub(super) fn shown(&mut self, to: MemberIndex, key: MessageKey, at: Millis) -> bool {
        let Some(message) = self.message_mut(to, key) else { return false };
        let was_unread = message.read == NEVER && message.shown == NEVER;
        if message.shown == NEVER {
            message.shown = at;
        }
        was_unread
    }

    /// Forgets the keys, so that later events do not change the messages so far.
    pub(super) fn forget_keys(&mut self) {
        self.by_key.clear();
    }

    fn message_mut(&mut self, to: MemberIndex, key: MessageKey) -> Option<&mut MessageRef> {
        let number = *self.by_key.get(&(to, key))?;
        self.messages.get_mut(usize::try_from(number).ok()?)
    }
}
