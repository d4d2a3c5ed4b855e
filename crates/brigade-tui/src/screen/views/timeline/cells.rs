//! The activity of a member in each column of the timeline.

use brigade_core::projection::{BusyKind, BusySpan, MemberActivity, MemberView};

use super::axis::Axis;

/// Maximum number of busy spans to examine in a column. If there are more, a sample is examined.
const MAX_SAMPLES: usize = 64;

/// The activity of a member in one column of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimelineCell {
    /// The member was not on the team, or the column is in the future.
    Away,
    /// The member joined the team.
    Joined,
    /// The member left the team.
    Left,
    /// The member was idle.
    Idle,
    /// The member was busy, for this many eighths of the column.
    Spent(BusyKind, u8),
}

/// Time that a member spent on each activity, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeSpent {
    pub(super) working: i64,
    pub(super) waiting: i64,
    pub(super) limited: i64,
}

impl TimeSpent {
    fn entry_mut(&mut self, span: BusyKind) -> &mut i64 {
        match span {
            BusyKind::Working => &mut self.working,
            BusyKind::Waiting => &mut self.waiting,
            BusyKind::Limited => &mut self.limited,
        }
    }

    pub(super) fn all(self) -> i64 {
        self.working + self.waiting + self.limited
    }

    /// Returns the activity to show for a column. Time spent waiting or rate-limited counts twice, because a
    /// person may have to act.
    fn dominant(self) -> Option<(BusyKind, i64)> {
        let each = [
            (BusyKind::Working, self.working, self.working),
            (BusyKind::Waiting, self.waiting, 2 * self.waiting),
            (BusyKind::Limited, self.limited, 2 * self.limited),
        ];
        let largest = each.into_iter().max_by_key(|(.., weight)| *weight)?;
        Some((largest.0, largest.1)).filter(|(_, time)| *time > 0)
    }
}

/// Returns the busy spans that overlap a time range.
pub(super) fn within(stretches: &[BusySpan], from: i64, to: i64) -> &[BusySpan] {
    let first = stretches
        .partition_point(|stretch| stretch.to.is_some_and(|stretch_end| stretch_end.0 <= from));
    let last = stretches.partition_point(|stretch| stretch.from.0 < to);
    stretches.get(first..last).unwrap_or_default()
}

/// Returns the time spent on each activity in a range. An unfinished span is counted up to `to`.
pub(super) fn time_spent(stretches: &[BusySpan], from: i64, to: i64) -> TimeSpent {
    let mut spent = TimeSpent::default();
    for stretch in within(stretches, from, to) {
        let end = stretch.to.map_or(to, |end| end.0.min(to));
        *spent.entry_mut(stretch.kind) += end.saturating_sub(stretch.from.0.max(from)).max(0);
    }
    spent
}

/// Returns the time spent on each activity in a range, estimated from a sample if there are many spans.
fn estimated(stretches: &[BusySpan], from: i64, to: i64) -> TimeSpent {
    let inside = within(stretches, from, to);
    let every = inside.len().div_ceil(MAX_SAMPLES);
    if every < 2 {
        return time_spent(inside, from, to);
    }
    let mut estimate = TimeSpent::default();
    for stretch in inside.iter().step_by(every) {
        let sampled = time_spent(std::slice::from_ref(stretch), from, to);
        let times = i64::try_from(every).unwrap_or(1);
        *estimate.entry_mut(stretch.kind) += sampled.all().saturating_mul(times);
    }
    estimate
}

/// Returns when the member joined and left the team, if known. A current member counts as leaving at `end`.
pub(super) fn presence(person: &MemberView, end: i64) -> Option<(i64, i64)> {
    Some((person.joined?.0, person.left.map_or(end, |left| left.0)))
}

/// Returns the cell for each column. Columns after `end` are empty.
pub(super) fn cells(person: &MemberView, axis: &Axis, end: i64) -> Vec<TimelineCell> {
    let presence = presence(person, end);
    let cell = |column| {
        let from = axis.start(column);
        // In the current column, count only the time up to now.
        let to = axis.start(column + 1).min(end);
        if from >= to {
            return TimelineCell::Away;
        }
        if let Some((span, time)) = estimated(&person.busy_spans, from, to).dominant() {
            let eighths = (time * 8).div_euclid(to - from).clamp(1, 8);
            return TimelineCell::Spent(span, u8::try_from(eighths).unwrap_or(8));
        }
        match presence {
            Some((joined, _)) if (from..to).contains(&joined) => TimelineCell::Joined,
            Some((_, left)) if person.left.is_some() && (from..to).contains(&left) => {
                TimelineCell::Left
            }
            Some((joined, left)) if joined < to && from <= left => TimelineCell::Idle,
            _ => TimelineCell::Away,
        }
    };
    (0..axis.columns).map(cell).collect()
}

/// Returns whether the member reports its activity at all.
pub(super) fn reports_activity(person: &MemberView) -> bool {
    !person.busy_spans.is_empty()
        || !matches!(person.activity(), MemberActivity::Unknown | MemberActivity::Gone)
}

/// Returns the character of a cell. The height of a block shows how long the member worked.
pub(super) fn symbol(cell: TimelineCell, reports_activity: bool) -> &'static str {
    match cell {
        // If a member reports no activity, do not show it as idle: it may have been working.
        TimelineCell::Idle if !reports_activity => "·",
        TimelineCell::Away => " ",
        TimelineCell::Joined => "├",
        TimelineCell::Left => "┤",
        TimelineCell::Idle => "─",
        TimelineCell::Spent(BusyKind::Waiting, _) => "▲",
        TimelineCell::Spent(BusyKind::Limited, _) => "■",
        TimelineCell::Spent(BusyKind::Working, eighths) => match eighths {
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

/// Counts the turns that started in a range. Work after an answered request continues the same turn.
pub(super) fn count_turns(stretches: &[BusySpan], from: i64, to: i64) -> usize {
    let inside = within(stretches, from, to);
    let before = stretches.partition_point(|stretch| stretch.from.0 < from);
    let mut last = before.checked_sub(1).and_then(|index| stretches.get(index));
    let mut turns = 0;
    for stretch in inside.iter().filter(|stretch| stretch.from.0 >= from) {
        let continues_turn = last
            .is_some_and(|last| last.to == Some(stretch.from) && last.kind == BusyKind::Waiting);
        turns += usize::from(stretch.kind == BusyKind::Working && !continues_turn);
        last = Some(stretch);
    }
    turns
}
