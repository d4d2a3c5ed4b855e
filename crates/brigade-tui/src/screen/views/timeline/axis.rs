//! The time axis of the timeline: maps columns to times and places the clock labels.

use jiff::Timestamp;

use crate::time::local;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The zoom levels, in milliseconds per column, in ascending order.
#[rustfmt::skip]
pub(super) const STEPS: [i64; 32] = [
    100, 200, 300, 500, 700,
    SECOND, 2 * SECOND, 3 * SECOND, 5 * SECOND, 7 * SECOND, 10 * SECOND, 15 * SECOND, 20 * SECOND,
    30 * SECOND, 45 * SECOND,
    MINUTE, 90 * SECOND, 2 * MINUTE, 3 * MINUTE, 5 * MINUTE, 7 * MINUTE, 10 * MINUTE, 15 * MINUTE,
    20 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR,
    DAY, 2 * DAY, 7 * DAY,
];

/// Possible distances between clock labels, in milliseconds.
#[rustfmt::skip]
const TICKS: [i64; 21] = [
    SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 7 * DAY, 28 * DAY,
];

/// A range of time divided into columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Start time of the first column. Always a multiple of `step`, so that the axis moves in whole columns.
    pub(super) left: i64,
    /// Milliseconds per column.
    pub(super) step: i64,
    pub(super) columns: usize,
}

impl Axis {
    /// Returns an axis whose last column contains the time `right` or ends at `right`.
    pub(super) fn until(right: i64, step: i64, columns: usize) -> Self {
        let right = right.saturating_add(step - 1).div_euclid(step).saturating_mul(step);
        let wide = step.saturating_mul(i64::try_from(columns).unwrap_or(i64::MAX));
        Self { left: right.saturating_sub(wide), step, columns }
    }

    /// Returns the start time of a column. For column `columns`, that is the end of the axis.
    pub(super) fn start(&self, column: usize) -> i64 {
        let wide = self.step.saturating_mul(i64::try_from(column).unwrap_or(i64::MAX));
        self.left.saturating_add(wide)
    }

    pub(super) fn right(&self) -> i64 {
        self.start(self.columns)
    }

    /// Returns the columns that have a clock label, with their labels.
    pub(super) fn ticks(&self) -> Vec<(usize, String)> {
        let interval = tick_interval(self.step);
        let tick = |column| {
            let start = self.start(column);
            // Align the labels to local time, even if daylight-saving time starts or ends within the axis.
            let utc_offset = i64::from(local(time(start)).offset().seconds()) * SECOND;
            let local_start = start.saturating_add(utc_offset);
            let next = local_start
                .saturating_add(interval - 1)
                .div_euclid(interval)
                .saturating_mul(interval);
            let label = || label(time(next.saturating_sub(utc_offset)), interval);
            (next.saturating_sub(local_start) < self.step).then(|| (column, label()))
        };
        (0..self.columns).filter_map(tick).collect()
    }
}

/// Returns the smallest round number of milliseconds per column at which the whole time range fits.
pub(super) fn fitting_step(first: i64, last: i64, columns: usize) -> i64 {
    let columns = columns.max(1);
    let rough = last.saturating_sub(first).max(0) / i64::try_from(columns).unwrap_or(i64::MAX);
    // Round the step to a readable value. Without rounding, the step would change with every record.
    let round = match rough {
        ..500 => 100,
        500..MINUTE => SECOND,
        _ if rough < 5 * MINUTE => 10 * SECOND,
        MINUTE..HOUR => MINUTE,
        HOUR..DAY => 10 * MINUTE,
        _ => DAY,
    };
    let mut step = (rough / round).max(1).saturating_mul(round);
    while Axis::until(last, step, columns).left > first {
        step = step.saturating_add(round);
    }
    step
}

/// Returns the distance between clock labels for a number of milliseconds per column.
fn tick_interval(step: i64) -> i64 {
    let has_room = |every: &&i64| {
        let letters = if **every < MINUTE { 8 } else { 6 };
        **every >= step.saturating_mul(letters + 4)
    };
    TICKS.iter().find(has_room).copied().unwrap_or(28 * DAY)
}

/// Formats a clock label; the label for midnight is the date.
fn label(at: Timestamp, every: i64) -> String {
    let at = local(at);
    let is_midnight = at.hour() == 0 && at.minute() == 0 && at.second() == 0;
    let form = if every >= DAY || is_midnight {
        "%-d %b"
    } else if every >= MINUTE {
        "%H:%M"
    } else {
        "%H:%M:%S"
    };
    at.strftime(form).to_string()
}

/// Converts milliseconds since 1970 to a timestamp.
pub(super) fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or_default()
}

/// Formats the time per column as text.
pub(super) fn format_step(step: i64) -> String {
    let (days, hours) = (step / DAY, step / HOUR);
    let (minutes, seconds) = (step / MINUTE, step % MINUTE / SECOND);
    match step {
        ..SECOND => format!("0.{} s", step / 100),
        SECOND..MINUTE => format!("{seconds} s"),
        _ if step % DAY == 0 => format!("{days} d"),
        _ if step % HOUR == 0 => format!("{hours} h"),
        MINUTE..HOUR if seconds != 0 => format!("{minutes} min {seconds} s"),
        MINUTE..HOUR => format!("{minutes} min"),
        _ => format!("{hours} h {} min", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_772_539_200_000;

    #[test]
    fn the_axis_moves_in_whole_columns() {
        let check = |right: i64, left: i64| {
            assert_eq!(Axis::until(NOON + right, MINUTE, 10).left, NOON + left, "{right}");
        };
        check(0, -10 * MINUTE);
        check(1, -9 * MINUTE);
        check(MINUTE - 1, -9 * MINUTE);
        check(MINUTE, -9 * MINUTE);
    }

    #[test]
    fn clock_labels_do_not_overlap() {
        let check = |step: i64, between: i64| assert_eq!(tick_interval(step), between, "{step}");
        check(100, 2 * SECOND);
        check(SECOND, 15 * SECOND);
        check(5 * SECOND, MINUTE);
        check(30 * SECOND, 5 * MINUTE);
        check(MINUTE, 10 * MINUTE);
        check(15 * MINUTE, 3 * HOUR);
        check(HOUR, 12 * HOUR);
        check(4 * HOUR, 2 * DAY);
        check(7 * DAY, 28 * DAY);
        for step in STEPS.iter().filter(|step| **step < 2 * DAY) {
            let ticks = Axis::until(NOON, *step, 200).ticks();
            assert!(ticks.len() > 1, "{step}");
            for (one, next) in ticks.iter().zip(ticks.iter().skip(1)) {
                assert!(one.0 + one.1.len() + 2 <= next.0, "{step}: {one:?} {next:?}");
            }
        }
    }

    #[test]
    fn clock_labels_fit_the_zoom() {
        let check = |right: i64, step: i64, columns: usize, ticks: &[(usize, &str)]| {
            let axis = Axis::until(NOON + right, step, columns);
            let found = axis.ticks();
            let found: Vec<(usize, &str)> = found.iter().map(|(at, word)| (*at, &**word)).collect();
            assert_eq!(found, ticks, "{step}");
        };
        check(0, MINUTE, 30, &[(0, "11:30"), (10, "11:40"), (20, "11:50")]);
        check(0, SECOND, 20, &[(5, "11:59:45")]);
        // The time of a label lies within its column, but not always at the start of that column.
        check(0, 70 * SECOND, 30, &[(3, "11:30"), (16, "11:45"), (29, "12:00")]);
        check(13 * HOUR, 15 * MINUTE, 24, &[(8, "21:00"), (20, "4 Mar")]);
        check(2 * DAY, 2 * HOUR, 24, &[(6, "4 Mar"), (18, "5 Mar")]);
    }

    #[test]
    fn the_fitting_step_is_the_smallest_round_one() {
        let check = |length: i64, columns: usize, step: i64| {
            assert_eq!(fitting_step(NOON, NOON + length, columns), step, "{length} {columns}");
        };
        check(0, 60, 100);
        check(6 * SECOND, 60, 100);
        check(6 * SECOND + 1, 60, 200);
        check(59 * SECOND, 60, SECOND);
        check(45 * MINUTE, 60, 45 * SECOND);
        check(45 * MINUTE, 107, 26 * SECOND);
        check(2 * HOUR + 1, 60, 130 * SECOND);
        check(3 * DAY, 100, 44 * MINUTE);
        check(150 * DAY, 100, 2 * DAY);
        check(5, 0, 100);
    }

    #[test]
    fn steps_are_formatted_with_units() {
        let formatted: Vec<String> = STEPS.iter().map(|step| format_step(*step)).collect();
        assert_eq!(
            formatted.join(", "),
            "0.1 s, 0.2 s, 0.3 s, 0.5 s, 0.7 s, 1 s, 2 s, 3 s, 5 s, 7 s, 10 s, 15 s, 20 s, 30 s, 45 s, \
             1 min, 1 min 30 s, 2 min, 3 min, 5 min, 7 min, 10 min, 15 min, 20 min, 30 min, 1 h, 2 h, \
             4 h, 8 h, 1 d, 2 d, 7 d"
        );
    }
}
