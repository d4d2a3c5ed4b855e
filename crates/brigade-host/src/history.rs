//! How long the history of the teams on this host is kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::store::{EventLog as _, MailStore as _, RequestQuery, TeamStore as _};
use brigade_files::{DeletedRecords, FileStore};
use brigade_wire::name::{MemberName, TeamName};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::HostError;

const DAY: u64 = 24 * 60 * 60;
/// The units of a size.
const SIZES: [(&str, u64); 3] = [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

/// How much history of each team to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Keep {
    /// Everything.
    #[default]
    All,
    /// The records of this many days.
    Days(u32),
    /// The newest records, up to about this many bytes.
    Bytes(u64),
}

impl FromStr for Keep {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "use a number of days such as 90d, a size such as 10GB, or all";
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        if text == "all" {
            return Ok(Self::All);
        }
        if let Some(days) = text.strip_suffix('d') {
            let days = number(days).and_then(|days| u32::try_from(days).ok());
            return days.filter(|days| *days <= 36_500).map(Self::Days).ok_or(FORM);
        }
        let size = SIZES
            .iter()
            .find_map(|(unit, bytes)| number(text.strip_suffix(unit)?)?.checked_mul(*bytes));
        size.map(Self::Bytes).ok_or(FORM)
    }
}

impl TryFrom<String> for Keep {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Keep> for String {
    fn from(keep: Keep) -> Self {
        keep.to_string()
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Days(days) => write!(f, "{days}d"),
            Self::Bytes(bytes) => {
                let exact = SIZES.iter().rev().find(|(_, unit)| bytes % unit == 0);
                let (unit, size) = exact.copied().unwrap_or(("kB", 1_000));
                write!(f, "{}{unit}", bytes / size)
            }
        }
    }
}

/// A record that is older than the history to keep, but is still needed. Later records are kept with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillNeeded {
    /// A message that its recipient has not read.
    Unread(Timestamp),
    /// A request without an answer.
    Request(Timestamp),
}

impl StillNeeded {
    /// Returns when the record was made.
    pub fn at(self) -> Timestamp {
        match self {
            Self::Unread(at) | Self::Request(at) => at,
        }
    }
}

/// The result of deleting the old history of a team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// What was deleted.
    pub deleted: DeletedRecords,
    /// The oldest record that is kept because it is still needed, if there is one.
    pub needed: Option<StillNeeded>,
}

/// Deletes the history of a team that is older than the history to keep: read messages, settled requests and the members' work.
/// Keeps everything since the oldest unread message or open request. Returns `None` if another process is doing that.
pub async fn compact(
    files: &FileStore,
    team: &TeamName,
    keep: Keep,
    now: Timestamp,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Compaction>, HostError> {
    let cutoff = match keep {
        Keep::All => None,
        Keep::Days(days) => {
            let kept = SignedDuration::try_from(Duration::from_secs(u64::from(days) * DAY));
            kept.ok().and_then(|kept| now.checked_sub(kept).ok())
        }
        Keep::Bytes(bytes) => files.time_for_size(team, bytes)?,
    };
    let Some(cutoff) = cutoff else { return Ok(Some(Compaction::default())) };
    let (created, oldest) = still_needed(files, team).await?;
    let needed = oldest.filter(|needed| needed.at() < cutoff);
    let before = needed.map_or(cutoff, StillNeeded::at);
    let deleted = files.delete_records(team, before, created, progress)?;
    Ok(deleted.map(|deleted| Compaction { deleted, needed }))
}

/// Returns when the team was created, and the oldest record that its members still need. A team that was deleted needs none.
async fn still_needed(
    files: &FileStore,
    team: &TeamName,
) -> Result<(u64, Option<StillNeeded>), HostError> {
    let Some(roster) = files.roster(team).await? else { return Ok((0, None)) };
    let created = roster.team().created_at().unwrap_or_default();
    let members: Vec<MemberName> =
        roster.team().members().filter_map(|member| member.name()?.parse().ok()).collect();
    let oldest = |records: &mut dyn Iterator<Item = &Record>| records.map(|record| record.at).min();
    let unread = files.unread_history(team, &members).await?;
    let mut needed: Vec<StillNeeded> =
        oldest(&mut unread.iter()).map(StillNeeded::Unread).into_iter().collect();
    for member in &members {
        let open = files.find_requests(team, member, created, RequestQuery::Unsettled).await?;
        let first = oldest(&mut open.iter().map(|found| &found.record));
        needed.extend(first.map(StillNeeded::Request));
    }
    Ok((created, needed.into_iter().min_by_key(|needed| needed.at())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_one_form() {
        let check = |text: &str, keep: Keep| {
            assert_eq!(text.parse(), Ok(keep), "{text}");
            assert_eq!(keep.to_string(), text);
        };
        check("all", Keep::All);
        check("90d", Keep::Days(90));
        check("10GB", Keep::Bytes(10_000_000_000));
        check("1500MB", Keep::Bytes(1_500_000_000));
        check("12kB", Keep::Bytes(12_000));
        for text in ["", "90", "0d", "d", "-1d", "1.5GB", "10gb", "99999999d", "ALL", "0MB"] {
            assert!(text.parse::<Keep>().is_err(), "{text:?}");
        }
    }
}
