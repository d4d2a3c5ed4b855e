//! Local times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in the time zone of this machine; in UTC under test, so that tests draw the same everywhere.
pub(crate) fn local(at: Timestamp) -> jiff::Zoned {
    at.to_zoned(if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}
