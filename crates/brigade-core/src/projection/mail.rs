//! The messages of a team, and what became of each.

use std::collections::HashMap;

use super::{At, Who};
use crate::event::MessageKey;
use crate::event_log::Spot;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Letter {
    /// When it was written.
    pub at: At,
    /// Where its words stand.
    pub spot: Spot,
    /// Who wrote it.
    pub from: Who,
    /// To whom.
    pub to: Who,
    /// What it is.
    pub kind: Kind,
    read: At,
    shown: At,
}

/// A time that has not come.
const NEVER: At = At(i64::MIN);

/// How far a message has come, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits in the inbox.
    Written,
    /// Its reader took it.
    Read(At),
    /// Its reader's model saw it.
    Shown(At),
}

impl Letter {
    /// How far it has come.
    pub fn fate(&self) -> Fate {
        match (self.shown != NEVER, self.read != NEVER) {
            (true, _) => Fate::Shown(self.shown),
            (false, true) => Fate::Read(self.read),
            (false, false) => Fate::Written,
        }
    }

    /// When it was read.
    pub fn read(&self) -> Option<At> {
        (self.read != NEVER).then_some(self.read)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        /// What a message is: words, or one of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            /// Words.
            Words,
            $($(#[$doc])* $name,)*
            /// Of a type that is not known here.
            Other,
        }

        impl Kind {
            /// By its `type` on the wire.
            pub(super) fn of(kind: &str) -> Self {
                match kind {
                    $($kind => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

kinds! {
    /// Somebody has nothing to do.
    Idle = "idle_notification",
    /// A task has a new owner.
    Assignment = "task_assignment",
    /// Somebody is asked to stop.
    ShutdownRequest = "shutdown_request",
    /// It stops.
    ShutdownApproved = "shutdown_approved",
    /// It goes on.
    ShutdownRejected = "shutdown_rejected",
    /// A plan is submitted.
    PlanRequest = "plan_approval_request",
    /// The word on a plan.
    PlanResponse = "plan_approval_response",
    /// Leave is asked to use a tool.
    PermissionRequest = "permission_request",
    /// The answer to that.
    PermissionResponse = "permission_response",
    /// Somebody has gone.
    Terminated = "teammate_terminated",
}

/// All messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Mail {
    letters: Vec<Letter>,
    by_key: HashMap<(Who, MessageKey), u32>,
}

impl Mail {
    pub(super) fn letters(&self) -> &[Letter] {
        &self.letters
    }

    /// One more; its number, or `None` if it was there: what we sent may also be seen.
    pub(super) fn add(
        &mut self,
        at: At,
        spot: Spot,
        (from, to): (Who, Who),
        key: MessageKey,
        kind: Kind,
    ) -> Option<u32> {
        let number = u32::try_from(self.letters.len()).ok()?;
        match self.by_key.entry((to, key)) {
            std::collections::hash_map::Entry::Occupied(_) => return None,
            std::collections::hash_map::Entry::Vacant(free) => free.insert(number),
        };
        self.letters.push(Letter { at, spot, from, to, kind, read: NEVER, shown: NEVER });
        Some(number)
    }

    /// It was read; whether that is news.
    pub(super) fn read(&mut self, to: Who, key: MessageKey, at: At) -> bool {
        let Some(letter) = self.letter(to, key) else { return false };
        let is_news = letter.read == NEVER;
        if is_news {
            letter.read = at;
        }
        is_news && letter.shown == NEVER
    }

    /// It was shown; whether it was unread until then.
    pub(super) fn shown(&mut self, to: Who, key: MessageKey, at: At) -> bool {
        let Some(letter) = self.letter(to, key) else { return false };
        let was_unread = letter.read == NEVER && letter.shown == NEVER;
        if letter.shown == NEVER {
            letter.shown = at;
        }
        was_unread
    }

    /// Nothing more is heard of what was written so far.
    pub(super) fn close(&mut self) {
        self.by_key.clear();
    }

    fn letter(&mut self, to: Who, key: MessageKey) -> Option<&mut Letter> {
        let number = *self.by_key.get(&(to, key))?;
        self.letters.get_mut(usize::try_from(number).ok()?)
    }
}
