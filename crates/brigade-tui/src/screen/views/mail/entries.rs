//! Groups the visible messages into entries. An entry is a single message, one message sent to several
//! members, or several consecutive idle notices.
//!
//! Whether two neighbouring messages belong to one entry depends on these two messages alone. So the entry of
//! a message can be found without a scan of all earlier messages. There may be a million of them.

use brigade_core::projection::{MessageKind, MessageRef, TeamProjection};

use crate::screen::{Screen, record_text};
use crate::time::local;

/// Maximum time, in milliseconds, between two copies of the same message to different members.
pub(crate) const BROADCAST_WINDOW_MS: i64 = 1000;
/// Maximum number of messages in an entry.
const MAX_ENTRY_LEN: usize = 256;
/// Messages below the visible part are counted only up to this number.
pub(super) const MAX_COUNTED: usize = 10_000;

/// The messages of the mail view, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageList<'s> {
    screen: &'s Screen,
    /// Numbers of the messages from or to the member whose mail is shown; `None` if all mail is shown.
    numbers: Option<&'s [u32]>,
    hides_protocol: bool,
}

/// A range of messages that are shown as one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MailEntry {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<'s> MessageList<'s> {
    /// Lists the messages that match the mail filter of the screen.
    pub(super) fn new(screen: &'s Screen) -> Self {
        let state = &screen.states.mail;
        let numbers_of =
            |name: &String| screen.projection.member_named(name).map(|person| &*person.messages);
        let numbers = state.filter.as_ref().map(|name| numbers_of(name).unwrap_or_default());
        Self { screen, numbers, hides_protocol: state.hides_protocol }
    }

    /// Returns the number of messages, including hidden protocol messages.
    pub(super) fn len(&self) -> usize {
        self.numbers.map_or(self.projection().messages().len(), <[u32]>::len)
    }

    pub(super) fn projection(&self) -> &'s TeamProjection {
        &self.screen.projection
    }

    pub(super) fn screen(&self) -> &'s Screen {
        self.screen
    }

    /// Returns the number of the message at an index of this list.
    pub(super) fn number(&self, index: usize) -> Option<u32> {
        match self.numbers {
            Some(numbers) => numbers.get(index).copied(),
            None => u32::try_from(index).ok().filter(|_| index < self.len()),
        }
    }

    pub(super) fn message(&self, index: usize) -> Option<&'s MessageRef> {
        self.projection().messages().get(usize::try_from(self.number(index)?).ok()?)
    }

    /// Returns the messages of an entry.
    pub(super) fn messages(
        &self,
        entry: MailEntry,
    ) -> impl Iterator<Item = &'s MessageRef> + use<'s> {
        let list = *self;
        (entry.from..entry.to).filter_map(move |index| list.message(index))
    }

    /// Returns the entry that contains a message. If the message is hidden or filtered out, returns the
    /// nearest visible entry before the message. If there is none, returns the nearest one after the message.
    pub(super) fn find(&self, number: u32) -> Option<MailEntry> {
        let end = match self.numbers {
            Some(numbers) => numbers.partition_point(|other| *other <= number),
            None => usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1).min(self.len()),
        };
        // Search backwards for a visible message. It may be in the middle of its entry.
        let visible = (0..end).rev().find(|index| self.is_visible(*index));
        visible.and_then(|index| self.entry_at(index)).or_else(|| self.after(end))
    }

    pub(super) fn last(&self) -> Option<MailEntry> {
        self.before(self.len())
    }

    /// Returns the last entry before this index.
    pub(super) fn before(&self, index: usize) -> Option<MailEntry> {
        self.entry_at((0..index).rev().find(|index| self.is_visible(*index))?)
    }

    /// Returns the first entry at or after this index.
    pub(super) fn after(&self, index: usize) -> Option<MailEntry> {
        self.entry_at((index..self.len()).find(|index| self.is_visible(*index))?)
    }

    /// Counts the visible messages at or after this index, up to a limit.
    pub(super) fn count_after(&self, index: usize) -> usize {
        let rest = index..self.len();
        if !self.hides_protocol {
            return rest.len();
        }
        rest.take(MAX_COUNTED).filter(|index| self.is_visible(*index)).count()
    }

    fn is_visible(&self, index: usize) -> bool {
        !self.hides_protocol
            || self.message(index).is_some_and(|message| message.kind == MessageKind::Text)
    }

    fn entry_at(&self, index: usize) -> Option<MailEntry> {
        self.message(index)?;
        let (mut from, mut to) = (index, index + 1);
        while from > 0 && self.joins_next(from - 1) {
            from -= 1;
        }
        while self.joins_next(to - 1) {
            to += 1;
        }
        Some(MailEntry { from, to })
    }

    /// Returns whether the message at an index and the next message belong to one entry.
    fn joins_next(&self, index: usize) -> bool {
        let (Some(one), Some(next)) = (self.message(index), self.message(index + 1)) else {
            return false;
        };
        let is_one = match (one.kind, next.kind) {
            (MessageKind::Idle, MessageKind::Idle) => !self.hides_protocol,
            (MessageKind::Text, MessageKind::Text) => {
                one.from == next.from
                    && one.to != next.to
                    && (0..=BROADCAST_WINDOW_MS).contains(&next.at.0.saturating_sub(one.at.0))
                    && text(self.screen, one) == text(self.screen, next)
            }
            _ => false,
        };
        let day = |message: &MessageRef| local(message.at.timestamp()).date();
        // Split long entries at fixed indexes, so that forward and backward searches find the same entries.
        is_one && !(index + 1).is_multiple_of(MAX_ENTRY_LEN) && day(one) == day(next)
    }
}

/// Returns the text of a message.
pub(super) fn text(screen: &Screen, message: &MessageRef) -> Option<String> {
    record_text(&*screen.record(message.record)?)
}
