//! `brigade logs`

use brigade_core::event::RecordKind;
use brigade_host::log_query::LogQuery;
use brigade_wire::name::{MemberName, TaskId};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use jiff::civil::{Date, DateTime, Time};
use jiff::{Timestamp, Zoned};

use super::duration::time;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade logs -n 20                         the last 20 events
  brigade logs bob --since 10m -f            what bob does, from 10 minutes ago on
  brigade logs bob --work                    the whole conversation of bob
  brigade logs --kind approval --since 2026-11-18
  brigade logs --grep parser --json | jq -r .at";

/// Arguments of `brigade logs`.
#[derive(Args, Debug)]
pub(crate) struct LogsArgs {
    /// Only events of these members, and messages to them
    #[arg(value_name = "MEMBER")]
    names: Vec<MemberName>,
    /// Only events of this member, as if it was named without an option
    #[arg(long, short, value_name = "NAME", num_args = 1..)]
    member: Vec<MemberName>,
    /// Only events of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<TaskId>,
    /// Only events from this time on: 10m (ago), 14:00, 2026-11-18 or 2026-11-18T14:00
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    pub(crate) since: Option<Timestamp>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    pub(crate) until: Option<Timestamp>,
    /// Only events of these kinds
    #[arg(long, value_name = "KIND", num_args = 1..)]
    pub(crate) kind: Vec<LogKindWord>,
    /// Only events whose text contains this, in upper or lower case
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) grep: Option<String>,
    /// Only the last N of these events
    #[arg(long = "last", short = 'n', visible_alias = "tail", value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Keep printing new events until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Include what agents say and do; with a member or --grep, print whole texts
    #[arg(long)]
    pub(crate) work: bool,
    /// Include earlier teams with the same name
    #[arg(long)]
    pub(crate) all_teams: bool,
}

impl LogsArgs {
    /// Returns the selection of events. `created` is when the team was created.
    pub(crate) fn query(&self, created: Option<u64>) -> LogQuery {
        LogQuery {
            members: self.members().cloned().collect(),
            task: self.task,
            since: self.since,
            until: self.until,
            kinds: self.kind.iter().map(|kind| RecordKind::from(*kind)).collect(),
            text: self.grep.clone(),
            created: created.filter(|_| !self.all_teams),
        }
    }

    /// Returns the members whose events to show; none for all members.
    pub(crate) fn members(&self) -> impl Iterator<Item = &MemberName> {
        self.names.iter().chain(&self.member)
    }

    /// Returns whether to show what agents say and do.
    pub(crate) fn shows_work(&self) -> bool {
        self.work || self.kind.contains(&LogKindWord::Work)
    }
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogKindWord {
    /// Messages
    Mail,
    /// Changes of tasks
    Task,
    /// Requests and answers
    Approval,
    /// Members that join, change and leave
    Member,
    /// The creation and deletion of the team
    Team,
    /// The words and actions of agents
    Work,
}

impl From<LogKindWord> for RecordKind {
    fn from(word: LogKindWord) -> Self {
        match word {
            LogKindWord::Mail => Self::Mail,
            LogKindWord::Task => Self::Task,
            LogKindWord::Approval => Self::Approval,
            LogKindWord::Member => Self::Member,
            LogKindWord::Team => Self::Team,
            LogKindWord::Work => Self::Work,
        }
    }
}

/// Parses a point in time: a duration before now, a time of the last 24 hours, a day, or a day and a time.
pub(super) fn point_in_time(text: &str) -> Result<Timestamp, String> {
    resolve(text, &Zoned::now())
}

fn resolve(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let form = || "use 10m, 2h, 1d, yesterday, 14:00, 2026-11-18 or 2026-11-18T14:00".to_owned();
    if let Ok(ago) = time(text) {
        return now.timestamp().checked_sub(ago).map_err(|_| form());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let zone = now.time_zone().clone();
    let zoned = if text == "today" || text == "yesterday" {
        let today = now.date();
        let day = if text == "today" { Ok(today) } else { today.yesterday() };
        day.and_then(|day| day.to_zoned(zone))
    } else if let Ok(time) = text.parse::<Time>()
        // A date and a time are also accepted as a time.
        && text.contains(':')
        && !text.contains('-')
    {
        let today = now.date().to_datetime(time).to_zoned(zone.clone()).map_err(|_| form())?;
        let yesterday = || now.date().yesterday().map(|day| day.to_datetime(time));
        match today.timestamp() > now.timestamp() {
            true => yesterday().and_then(|at| at.to_zoned(zone)),
            false => Ok(today),
        }
    } else if let Ok(day) = text.parse::<Date>()
        && text.len() <= 10
    {
        day.to_zoned(zone)
    } else {
        text.parse::<DateTime>().and_then(|at| at.to_zoned(zone))
    };
    zoned.map(|at| at.timestamp()).map_err(|_| form())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_time_zone_of_the_person() {
        let now: Zoned = "2026-11-18T15:30:00+01:00[Europe/Berlin]".parse().unwrap();
        for (text, expected) in [
            ("10m", "2026-11-18T14:20:00Z"),
            ("14:00", "2026-11-18T13:00:00Z"),
            ("today", "2026-11-17T23:00:00Z"),
            ("yesterday", "2026-11-16T23:00:00Z"),
            ("16:00", "2026-11-17T15:00:00Z"),
            ("2026-11-18", "2026-11-17T23:00:00Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-11-18T14:00", "2026-11-18T13:00:00Z"),
            ("2026-11-18T16:00", "2026-11-18T15:00:00Z"),
            ("2026-11-10T14:00", "2026-11-10T13:00:00Z"),
            ("2026-11-18 14:00:30", "2026-11-18T13:00:30Z"),
            ("2026-11-18T14:00:00Z", "2026-11-18T14:00:00Z"),
        ] {
            assert_eq!(
                resolve(text, &now).map(|at| at.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
        for text in ["", "tomorrow", "10", "25:00", "2026-13-01"] {
            assert!(resolve(text, &now).is_err(), "{text}");
        }
    }
}
