//! The mail row of a member's lane: when the member sent and received messages.

use brigade_core::projection::{MemberIndex, MemberView, MessageKind, MessageRef, TeamProjection};

use super::axis::Axis;

/// Maximum number of messages to examine for one column.
const MAX_EXAMINED: usize = 64;
/// If there are more messages than this, sent and received messages are not counted separately, and only this
/// many of the latest messages are listed.
const MAX_COUNTED: usize = 10_000;

/// Whether a member sent or received mail in one column of the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MailMark {
    sent: bool,
    received: bool,
    /// Whether one of the messages is from or to the selected member.
    pub(super) involves_selected: bool,
}

impl MailMark {
    pub(super) fn symbol(self) -> &'static str {
        match (self.sent, self.received) {
            (false, false) => " ",
            (true, false) => "↑",
            (false, true) => "↓",
            (true, true) => "↕",
        }
    }
}

/// The number of messages that a member sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MailCount {
    Exact {
        sent: usize,
        received: usize,
    },
    /// The total of sent and received messages, if the total is greater than `MAX_COUNTED`.
    Many(usize),
}

/// Returns the numbers of the messages within a time range. Messages are nearly in time order.
fn within<'p>(
    projection: &TeamProjection,
    person: &'p MemberView,
    from: i64,
    to: i64,
) -> &'p [u32] {
    let is_before = |number: &u32, time: i64| {
        message(projection, *number).is_some_and(|message| message.at.0 < time)
    };
    let first = person.messages.partition_point(|number| is_before(number, from));
    let last = person.messages.partition_point(|number| is_before(number, to));
    person.messages.get(first..last).unwrap_or_default()
}

fn message(projection: &TeamProjection, number: u32) -> Option<&MessageRef> {
    projection.messages().get(usize::try_from(number).ok()?)
}

/// Leaves out idle notices, because the lane already shows when a member is idle.
fn without_idle_notices<'p>(
    projection: &'p TeamProjection,
    numbers: &'p [u32],
) -> impl DoubleEndedIterator<Item = &'p MessageRef> {
    let letters = numbers.iter().filter_map(move |number| message(projection, *number));
    letters.filter(|message| message.kind != MessageKind::Idle)
}

/// Returns the mail row of a lane. Messages from or to the selected member are highlighted.
pub(super) fn marks(
    projection: &TeamProjection,
    person: &MemberView,
    selected: MemberIndex,
    axis: &Axis,
) -> Vec<MailMark> {
    let mark = |column| {
        let numbers = within(projection, person, axis.start(column), axis.start(column + 1));
        let mut mark = MailMark::default();
        let numbers = numbers.get(..MAX_EXAMINED).unwrap_or(numbers);
        for message in without_idle_notices(projection, numbers) {
            mark.sent |= message.from == person.index;
            mark.received |= message.to == person.index;
            mark.involves_selected |= message.from == selected || message.to == selected;
        }
        mark
    };
    (0..axis.columns).map(mark).collect()
}

/// Counts a member's messages in a time range.
pub(super) fn count(
    projection: &TeamProjection,
    person: &MemberView,
    from: i64,
    to: i64,
) -> MailCount {
    let numbers = within(projection, person, from, to);
    if numbers.len() > MAX_COUNTED {
        return MailCount::Many(numbers.len());
    }
    let (mut sent, mut received) = (0, 0);
    for message in without_idle_notices(projection, numbers) {
        sent += usize::from(message.from == person.index);
        received += usize::from(message.to == person.index);
    }
    MailCount::Exact { sent, received }
}

/// Returns the messages in a time range, latest first.
pub(super) fn latest<'p>(
    projection: &'p TeamProjection,
    person: &'p MemberView,
    from: i64,
    to: i64,
) -> impl Iterator<Item = &'p MessageRef> {
    let numbers = within(projection, person, from, to);
    let recent = numbers.get(numbers.len().saturating_sub(MAX_COUNTED)..);
    without_idle_notices(projection, recent.unwrap_or_default()).rev()
}
