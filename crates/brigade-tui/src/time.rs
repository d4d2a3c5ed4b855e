//! Local times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Converts a time to this machine's time zone. Tests use UTC, so that their output is always the same.
pub(crate) fn local(at: Timestamp) -> jiff::Zoned {
    at.to_zoned(if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}
