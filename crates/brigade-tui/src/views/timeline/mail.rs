//! The messages of a lane: when somebody wrote and was written to.

use brigade_core::projection::{Kind, Letter, Person, Picture, Who};

use super::axis::Axis;

/// How many messages of a column are looked at.
const LOOKED_AT: usize = 64;
/// How many messages are counted one by one.
const COUNTED: usize = 10_000;

/// What a column says of somebody's mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    wrote: bool,
    got: bool,
    /// Whether one of them was from or to who is looked at.
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

/// How many messages somebody wrote and got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Exact {
        wrote: usize,
        got: usize,
    },
    /// Too many to be told apart.
    Many(usize),
}

/// The messages of a time, by number. They come in order of time, more or less.
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

/// Those that somebody else wants to know of: that one is idle is seen anyhow.
fn told<'p>(
    picture: &'p Picture,
    numbers: &'p [u32],
) -> impl DoubleEndedIterator<Item = &'p Letter> {
    let letters = numbers.iter().filter_map(move |number| letter(picture, *number));
    letters.filter(|letter| letter.kind != Kind::Idle)
}

/// The marks of somebody's lane; those of messages from or to `chosen` are its own concern.
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

/// How many messages somebody wrote and got in a time.
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

/// The messages of a time, the latest first.
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
