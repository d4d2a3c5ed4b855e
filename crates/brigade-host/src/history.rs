//! How long the history of the teams on this host is kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use brigade_core::event::{MessageKey, Record, TopicKind};
use brigade_core::store::{EventLog as _, MailQuery, MailStore as _, RequestQuery, TeamStore as _};
use brigade_files::{DeletedRecords, FileStore};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
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
    /// The answer to the plan of a member that may work only with an approved plan.
    Plan(Timestamp),
}

impl StillNeeded {
    /// Returns when the record was made.
    pub fn at(self) -> Timestamp {
        match self {
            Self::Unread(at) | Self::Request(at) | Self::Plan(at) => at,
        }
    }

    /// Names the record in words, such as `unread message`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unread(_) => "unread message",
            Self::Request(_) => "open request",
            Self::Plan(_) => "answer to a plan",
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
/// Keeps everything since the oldest unread message or open request. Deletes everything about a team that does not exist any more
/// and in which nothing has happened for as long as history is kept. Returns `None` if another process is deleting records.
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
        Keep::Bytes(bytes) => files.time_for_size(team, bytes)?.map(|time| time.min(now)),
    };
    let Some(cutoff) = cutoff else { return Ok(Some(Compaction::default())) };
    if matches!(keep, Keep::Days(_))
        && let Some(deleted) = files.delete_ended_team(team, cutoff)?
    {
        return Ok(Some(Compaction { deleted, needed: None }));
    }
    // A team that was deleted can still be resumed, with all of its mail.
    let Some(roster) = files.roster(team).await? else { return Ok(Some(Compaction::default())) };
    let roster = roster.team();
    let oldest = still_needed(files, team, &roster).await?;
    let needed = oldest.filter(|needed| needed.at() < cutoff);
    let before = needed.map_or(cutoff, StillNeeded::at);
    let created = roster.created_at().unwrap_or_default();
    let deleted = files.delete_records(team, before, created, progress)?;
    Ok(deleted.map(|deleted| Compaction { deleted, needed }))
}

/// Returns the oldest record that the members of a team still need.
async fn still_needed(
    files: &FileStore,
    team: &TeamName,
    roster: &Team<'_>,
) -> Result<Option<StillNeeded>, HostError> {
    let created = roster.created_at().unwrap_or_default();
    let members = roster.members().filter_map(|member| {
        let plans = member.plan_mode_required().unwrap_or_default();
        Some((member.name()?.parse::<MemberName>().ok()?, plans))
    });
    let members: Vec<(MemberName, bool)> = members.collect();
    let names: Vec<MemberName> = members.iter().map(|(name, _)| name.clone()).collect();
    let unread = files.unread_history(team, &names).await?;
    let mut needed: Vec<StillNeeded> =
        oldest(&unread).map(StillNeeded::Unread).into_iter().collect();
    for (name, plans) in &members {
        // A process may have died after it recorded that a message was read, and before it marked the message.
        let inbox = files.inbox(team, name).await?;
        let keys: Vec<MessageKey> =
            inbox.iter().filter(|mail| mail.is_unread()).map(|mail| mail.key).collect();
        let unread = files.find_mail(team, name, MailQuery::Messages(&keys)).await?;
        needed.extend(oldest(&unread).map(StillNeeded::Unread));
        let open = files.find_requests(team, name, created, RequestQuery::Unsettled).await?;
        let open: Vec<Record> = open.into_iter().map(|found| found.record).collect();
        needed.extend(oldest(&open).map(StillNeeded::Request));
        if *plans {
            let answers = MailQuery::Topic(TopicKind::PlanAnswer);
            let answers = files.find_mail(team, name, answers).await?;
            needed.extend(answers.last().map(|record| StillNeeded::Plan(record.at)));
        }
    }
    Ok(needed.into_iter().min_by_key(|needed| needed.at()))
}

fn oldest(records: &[Record]) -> Option<Timestamp> {
    records.iter().map(|record| record.at).min()
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
