//! The visible messages, grouped into entries: a single message, one message sent to several members, or
//! consecutive idle notices.
//!
//! Whether two neighbours belong together depends on these two alone. So the entry of any message can be
//! found from that message, without a scan from the first of possibly a million.

use brigade_core::event::Event;
use brigade_core::mail::with_message;
use brigade_core::picture::{Kind, Letter, Picture};
use brigade_wire::message::Message;

use crate::output::local;
use crate::ui::screen::Screen;

/// Copies of one message to several members are written within this time, in milliseconds.
const AT_ONCE: i64 = 1000;
/// Maximum number of messages in an entry.
const MOST: usize = 256;
/// Counting of newer messages stops at this number.
pub(super) const COUNTED: usize = 10_000;

/// The messages of the view, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread<'s> {
    screen: &'s Screen,
    /// Message numbers of the filtered member; `None` for all messages.
    of: Option<&'s [u32]>,
    hides_protocol: bool,
}

/// A range of messages that is shown as one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<'s> Thread<'s> {
    /// The messages that match the screen's filter.
    pub(super) fn of(screen: &'s Screen) -> Self {
        let state = &screen.states.mail;
        let letters = |name: &String| screen.picture.called(name).map(|person| &*person.letters);
        let of = state.filter.as_ref().map(|name| letters(name).unwrap_or_default());
        Self { screen, of, hides_protocol: state.hides_protocol }
    }

    /// The number of messages, including hidden protocol messages.
    pub(super) fn len(&self) -> usize {
        self.of.map_or(self.picture().letters().len(), <[u32]>::len)
    }

    pub(super) fn picture(&self) -> &'s Picture {
        &self.screen.picture
    }

    pub(super) fn screen(&self) -> &'s Screen {
        self.screen
    }

    /// The message number at an index.
    pub(super) fn number(&self, place: usize) -> Option<u32> {
        match self.of {
            Some(numbers) => numbers.get(place).copied(),
            None => u32::try_from(place).ok().filter(|_| place < self.len()),
        }
    }

    pub(super) fn letter(&self, place: usize) -> Option<&'s Letter> {
        self.picture().letters().get(usize::try_from(self.number(place)?).ok()?)
    }

    /// The messages of an entry.
    pub(super) fn letters(&self, entry: Entry) -> impl Iterator<Item = &'s Letter> + use<'s> {
        let thread = *self;
        (entry.from..entry.to).filter_map(move |place| thread.letter(place))
    }

    /// The entry of a message. If the message is hidden or filtered out, the nearest visible entry before
    /// it, else after it.
    pub(super) fn find(&self, number: u32) -> Option<Entry> {
        let end = match self.of {
            Some(numbers) => numbers.partition_point(|other| *other <= number),
            None => usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1).min(self.len()),
        };
        // Start from the end: a later message of the same entry counts as well.
        let seen = (0..end).rev().find(|place| self.is_seen(*place));
        seen.and_then(|place| self.around(place)).or_else(|| self.after(end))
    }

    pub(super) fn last(&self) -> Option<Entry> {
        self.before(self.len())
    }

    /// The last entry before this index.
    pub(super) fn before(&self, place: usize) -> Option<Entry> {
        self.around((0..place).rev().find(|place| self.is_seen(*place))?)
    }

    /// The first entry from this index on.
    pub(super) fn after(&self, place: usize) -> Option<Entry> {
        self.around((place..self.len()).find(|place| self.is_seen(*place))?)
    }

    /// The number of visible messages from this index on, counted up to a limit.
    pub(super) fn count_after(&self, place: usize) -> usize {
        let rest = place..self.len();
        if !self.hides_protocol {
            return rest.len();
        }
        rest.take(COUNTED).filter(|place| self.is_seen(*place)).count()
    }

    fn is_seen(&self, place: usize) -> bool {
        !self.hides_protocol || self.letter(place).is_some_and(|letter| letter.kind == Kind::Words)
    }

    fn around(&self, place: usize) -> Option<Entry> {
        self.letter(place)?;
        let (mut from, mut to) = (place, place + 1);
        while from > 0 && self.goes_on(from - 1) {
            from -= 1;
        }
        while self.goes_on(to - 1) {
            to += 1;
        }
        Some(Entry { from, to })
    }

    /// Whether the message at an index and the next one belong to one entry.
    fn goes_on(&self, place: usize) -> bool {
        let (Some(one), Some(next)) = (self.letter(place), self.letter(place + 1)) else {
            return false;
        };
        let is_one = match (one.kind, next.kind) {
            (Kind::Idle, Kind::Idle) => !self.hides_protocol,
            (Kind::Words, Kind::Words) => {
                one.from == next.from
                    && one.to != next.to
                    && (0..=AT_ONCE).contains(&next.at.0.saturating_sub(one.at.0))
                    && text(self.screen, one) == text(self.screen, next)
            }
            _ => false,
        };
        let day = |letter: &Letter| local(letter.at.timestamp()).date();
        // Split long entries at fixed indexes, so that the result is the same from either direction.
        is_one && !(place + 1).is_multiple_of(MOST) && day(one) == day(next)
    }
}

/// The text of a message.
pub(super) fn text(screen: &Screen, letter: &Letter) -> Option<String> {
    match &screen.record(letter.spot)?.event {
        Event::Sent { message, .. } | Event::Seen { message, .. } => {
            let text = |message: Option<Message<'_>>| Some(message?.text().into_owned());
            with_message(message.get().as_bytes(), text).ok()?
        }
        _ => None,
    }
}
