//! Durations on the command line, such as `30d` or `20s`.

use std::time::Duration;

/// Parses a duration such as `30d` or `12h`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let form = || "use a number and s, m, h or d, such as 30d".to_owned();
    let unit = text.chars().next_back().ok_or_else(form)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(form()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| form())?;
    // A longer time could overflow date arithmetic.
    if number == 0 || number > 36_500 * 24 * 60 * 60 / seconds {
        return Err("use a time between one second and a hundred years".to_owned());
    }
    Ok(Duration::from_secs(number * seconds))
}

/// Parses how long to wait: a duration, or `0` for not at all.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        text => time(text).map_err(|_| "use 0, or a number and s, m or h, such as 30s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations() {
        for (text, seconds) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5_400), ("2s", 2)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "3", "3w", "0d", "-1d", "1.5h", "99999999d", "3dd", "ä"] {
            assert!(time(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_wait_may_be_zero() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("30s", 30), ("2m", 120)] {
            assert_eq!(wait(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "30", "s", "-1s"] {
            assert!(wait(text).is_err(), "{text:?}");
        }
    }
}
