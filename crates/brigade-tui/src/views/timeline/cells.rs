//! What somebody was at, column by column.

use brigade_core::projection::{Doing, Person, Span, Stretch};

use super::axis::Axis;

/// Of more stretches than this in a column only some are looked at.
const LOOKED_AT: usize = 64;

/// What a column says of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// It was not there, or that has not come.
    Away,
    /// It joined.
    Joined,
    /// It left.
    Left,
    /// It had nothing to do.
    Idle,
    /// It was at something, for so many eighths of the time.
    Spent(Span, u8),
}

/// How long somebody was at what, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) working: i64,
    pub(super) waiting: i64,
    pub(super) limited: i64,
}

impl Spent {
    fn of(&mut self, span: Span) -> &mut i64 {
        match span {
            Span::Working => &mut self.working,
            Span::Waiting => &mut self.waiting,
            Span::Limited => &mut self.limited,
        }
    }

    pub(super) fn all(self) -> i64 {
        self.working + self.waiting + self.limited
    }

    /// What is said of a time that was spent so. What a person has to know of counts twice.
    fn most(self) -> Option<(Span, i64)> {
        let each = [
            (Span::Working, self.working, self.working),
            (Span::Waiting, self.waiting, 2 * self.waiting),
            (Span::Limited, self.limited, 2 * self.limited),
        ];
        let most = each.into_iter().max_by_key(|(.., weight)| *weight)?;
        Some((most.0, most.1)).filter(|(_, time)| *time > 0)
    }
}

/// The stretches that lie in a time, or partly.
pub(super) fn within(stretches: &[Stretch], from: i64, to: i64) -> &[Stretch] {
    let first = stretches
        .partition_point(|stretch| stretch.to.is_some_and(|stretch_end| stretch_end.0 <= from));
    let last = stretches.partition_point(|stretch| stretch.from.0 < to);
    stretches.get(first..last).unwrap_or_default()
}

/// How a time was spent; what is not over goes on until `to`.
pub(super) fn spent(stretches: &[Stretch], from: i64, to: i64) -> Spent {
    let mut spent = Spent::default();
    for stretch in within(stretches, from, to) {
        let end = stretch.to.map_or(to, |end| end.0.min(to));
        *spent.of(stretch.span) += end.saturating_sub(stretch.from.0.max(from)).max(0);
    }
    spent
}

/// The same, guessed from some of them where there are many.
fn guessed(stretches: &[Stretch], from: i64, to: i64) -> Spent {
    let inside = within(stretches, from, to);
    let every = inside.len().div_ceil(LOOKED_AT);
    if every < 2 {
        return spent(inside, from, to);
    }
    let mut guess = Spent::default();
    for stretch in inside.iter().step_by(every) {
        let its = spent(std::slice::from_ref(stretch), from, to);
        let times = i64::try_from(every).unwrap_or(1);
        *guess.of(stretch.span) += its.all().saturating_mul(times);
    }
    guess
}

/// When somebody was there, as far as it is known, until `end`.
pub(super) fn presence(person: &Person, end: i64) -> Option<(i64, i64)> {
    Some((person.joined?.0, person.left.map_or(end, |left| left.0)))
}

/// What somebody was at in every column; nothing has happened yet after `end`.
pub(super) fn cells(person: &Person, axis: &Axis, end: i64) -> Vec<Cell> {
    let presence = presence(person, end);
    let cell = |column| {
        let from = axis.start(column);
        // What has only begun counts as much as there is of it.
        let to = axis.start(column + 1).min(end);
        if from >= to {
            return Cell::Away;
        }
        if let Some((span, time)) = guessed(&person.stretches, from, to).most() {
            let eighths = (time * 8).div_euclid(to - from).clamp(1, 8);
            return Cell::Spent(span, u8::try_from(eighths).unwrap_or(8));
        }
        match presence {
            Some((joined, _)) if (from..to).contains(&joined) => Cell::Joined,
            Some((_, left)) if person.left.is_some() && (from..to).contains(&left) => Cell::Left,
            Some((joined, left)) if joined < to && from <= left => Cell::Idle,
            _ => Cell::Away,
        }
    };
    (0..axis.columns).map(cell).collect()
}

/// Whether somebody's doings are told at all.
pub(super) fn is_told(person: &Person) -> bool {
    !person.stretches.is_empty() || !matches!(person.doing(), Doing::Unknown | Doing::Gone)
}

/// How it is drawn. How high a block stands says how much of the time it is.
pub(super) fn sign(cell: Cell, is_told: bool) -> &'static str {
    match cell {
        // Of whom one does not know what it does, one does not know that it was idle.
        Cell::Idle if !is_told => "·",
        Cell::Away => " ",
        Cell::Joined => "├",
        Cell::Left => "┤",
        Cell::Idle => "─",
        Cell::Spent(Span::Waiting, _) => "▲",
        Cell::Spent(Span::Limited, _) => "■",
        Cell::Spent(Span::Working, eighths) => match eighths {
            0 | 1 => "▁",
            2 => "▂",
            3 => "▃",
            4 => "▄",
            5 => "▅",
            6 => "▆",
            7 => "▇",
            _ => "█",
        },
    }
}

/// How many turns were begun in a time. Whoever waited for an answer goes on with the same turn.
pub(super) fn turns(stretches: &[Stretch], from: i64, to: i64) -> usize {
    let inside = within(stretches, from, to);
    let before = stretches.partition_point(|stretch| stretch.from.0 < from);
    let mut last = before.checked_sub(1).and_then(|place| stretches.get(place));
    let mut turns = 0;
    for stretch in inside.iter().filter(|stretch| stretch.from.0 >= from) {
        let goes_on =
            last.is_some_and(|last| last.to == Some(stretch.from) && last.span == Span::Waiting);
        turns += usize::from(stretch.span == Span::Working && !goes_on);
        last = Some(stretch);
    }
    turns
}
