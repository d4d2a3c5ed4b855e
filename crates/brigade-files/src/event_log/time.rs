//! Parses the time of a record from the beginning of its line.

use jiff::Timestamp;
use serde::Deserialize;

/// The start of every line that brigade writes.
const AT_PREFIX: &[u8] = b"{\"at\":\"";

/// Returns the time and the length of the prefix that contains it. Returns `None` if the line does
/// not begin in the form that brigade writes; the line may still be valid JSON.
pub(super) fn parse_prefix(line: &[u8]) -> Option<(Timestamp, usize)> {
    let text = line.strip_prefix(AT_PREFIX)?;
    let (fixed, rest) = text.split_first_chunk::<19>()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2] =
        *fixed
    else {
        return None;
    };
    let (year, month, day) = (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?, number(&[d1, d2])?);
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?);
    // Every month has days 1 to 28; `has_day` checks any other day.
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) && !has_day(year, month, day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, len) = fraction(rest)?;
    let after = rest.get(len..)?;
    if !after.starts_with(b"Z\",") {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let at = Timestamp::new(seconds, nanos).ok()?;
    Some((at, AT_PREFIX.len() + fixed.len() + len + 3))
}

/// Parses the time from a line in any valid JSON form.
pub(super) fn parse_json(line: &[u8]) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct AtOnly {
        at: Timestamp,
    }
    serde_json::from_slice::<AtOnly>(line).ok().map(|parsed| parsed.at)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, &digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Parses fractional seconds. Returns the nanoseconds and the length of the text; both are zero if
/// there is no fraction.
fn fraction(text: &[u8]) -> Option<(i32, usize)> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, 0)) };
    let mut nanos = 0;
    let mut count = 0;
    for digit in digits.iter().take_while(|digit| digit.is_ascii_digit()).take(10) {
        nanos = nanos * 10 + i64::from(digit - b'0');
        count += 1;
    }
    if !(1..=9).contains(&count) {
        return None;
    }
    for _ in count..9 {
        nanos *= 10;
    }
    Some((i32::try_from(nanos).ok()?, count + 1))
}

fn has_day(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=last).contains(&day)
}

/// Returns the number of days since 1970-01-01. Years are counted from March, so that the leap day
/// is the last day of a year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year
        - 719_468
}
