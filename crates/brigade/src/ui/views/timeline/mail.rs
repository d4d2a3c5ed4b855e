//! The mail row of a lane: when a member sent and received messages.

use brigade_core::picture::{Kind, Letter, Person, Picture, Who};

use super::axis::Axis;

/// Maximum number of messages examined for a column.
const LOOKED_AT: usize = 64;
/// Above this number, sent and received messages are not counted separately.
const COUNTED: usize = 10_000;

/// The mail of a member in one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    wrote: bool,
    got: bool,
    /// Whether one of the messages is from or to the selected member.
    pub(super) concerns: bool,
}

impl Mark {
    pub(super) fn sign(self) -> &'static str {
        match (self.wrote, self.got) {
            (false, false) => " ",
            (true, false) => "↑",
            (false, true) => "↓",
            (true, true) => "↕",
        }
    }
}

/// Number of messages a member sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Exact {
        wrote: usize,
        got: usize,
    },
    /// Too many to count separately: the total.
    Many(usize),
}

/// The message numbers within a time range. Messages are nearly in time order.
fn within<'p>(picture: &Picture, person: &'p Person, from: i64, to: i64) -> &'p [u32] {
    let is_before =
        |number: &u32, time: i64| letter(picture, *number).is_some_and(|letter| letter.at.0 < time);
    let first = person.letters.partition_point(|number| is_before(number, from));
    let last = person.letters.partition_point(|number| is_before(number, to));
    person.letters.get(first..last).unwrap_or_default()
}

fn letter(picture: &Picture, number: u32) -> Option<&Letter> {
    picture.letters().get(usize::try_from(number).ok()?)
}

/// The messages without idle notices, which the lane itself shows.
fn told<'p>(
    picture: &'p Picture,
    numbers: &'p [u32],
) -> impl DoubleEndedIterator<Item = &'p Letter> {
    let letters = numbers.iter().filter_map(move |number| letter(picture, *number));
    letters.filter(|letter| letter.kind != Kind::Idle)
}

/// The mail row of a lane. Messages from or to the selected member are highlighted.
pub(super) fn marks(picture: &Picture, person: &Person, chosen: Who, axis: &Axis) -> Vec<Mark> {
    let mark = |column| {
        let numbers = within(picture, person, axis.start(column), axis.start(column + 1));
        let mut mark = Mark::default();
        let numbers = numbers.get(..LOOKED_AT).unwrap_or(numbers);
        for letter in told(picture, numbers) {
            mark.wrote |= letter.from == person.who;
            mark.got |= letter.to == person.who;
            mark.concerns |= letter.from == chosen || letter.to == chosen;
        }
        mark
    };
    (0..axis.columns).map(mark).collect()
}

/// Counts the messages of a member in a time range.
pub(super) fn count(picture: &Picture, person: &Person, from: i64, to: i64) -> Count {
    let numbers = within(picture, person, from, to);
    if numbers.len() > COUNTED {
        return Count::Many(numbers.len());
    }
    let (mut wrote, mut got) = (0, 0);
    for letter in told(picture, numbers) {
        wrote += usize::from(letter.from == person.who);
        got += usize::from(letter.to == person.who);
    }
    Count::Exact { wrote, got }
}

/// The messages of a time range, latest first.
pub(super) fn latest<'p>(
    picture: &'p Picture,
    person: &'p Person,
    from: i64,
    to: i64,
) -> impl Iterator<Item = &'p Letter> {
    let numbers = within(picture, person, from, to);
    let recent = numbers.get(numbers.len().saturating_sub(COUNTED)..);
    told(picture, recent.unwrap_or_default()).rev()
}
