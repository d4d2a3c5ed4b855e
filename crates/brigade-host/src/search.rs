//! Searches for a text in the history of teams, and names the command that shows each record.

mod excerpt;
mod repeated_replies;

use brigade_core::event::{Event, Record, RecordKind};
use brigade_core::policy::shell::quote;
use brigade_core::search_text::SearchText;
use brigade_core::store::{IndexingProgress, RecordPlace, SearchHit, SearchQuery};
use brigade_core::text::one_line;
use brigade_wire::name::{MemberName, TeamName};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub use self::excerpt::{ExcerptPart, excerpt};
use crate::context::Context;
use crate::error::HostError;
use crate::{history_text, known_members, origin};

/// A search by a person.
#[derive(Clone, Debug)]
pub struct HistorySearch {
    /// The text to search for.
    pub text: SearchText,
    /// Whether to search all teams, although one is chosen.
    pub all_teams: bool,
    /// Only records about these members; empty for all members.
    pub members: Vec<MemberName>,
    /// Only records of these kinds; empty for all kinds.
    pub kinds: Vec<RecordKind>,
    /// Only records at this time or later.
    pub since: Option<Timestamp>,
    /// Only records before this time.
    pub until: Option<Timestamp>,
    /// How many records to return at most.
    pub limit: usize,
}

/// A record that was found.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    /// Its team.
    pub team: TeamName,
    /// Its kind.
    pub kind: RecordKind,
    /// The member that acted; for a message, sender and recipient.
    pub who: String,
    /// Its text, on one line.
    pub text: String,
    /// The command that shows it.
    pub open: String,
    /// Where it is stored; `None` if the store has no journal files.
    pub place: Option<RecordPlace>,
    /// The record.
    pub record: Record,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct FoundHistory {
    /// The teams that were searched.
    pub teams: Vec<TeamName>,
    /// The records, newest first.
    pub records: Vec<FoundRecord>,
    /// Whether there are older records.
    pub has_more: bool,
    /// Lines of the journals that are not records, for each team that has any.
    pub unreadable: Vec<(TeamName, u64)>,
    /// The teams whose index could not be used, and why. Their records were read instead.
    pub without_index: Vec<(TeamName, String)>,
    /// The teams that could not be searched, and why.
    pub failed: Vec<(TeamName, HostError)>,
}

/// Receives the progress of building an index, with the team.
pub type ReportTeamIndexing<'r> = &'r (dyn Fn(&TeamName, IndexingProgress) + Send + Sync);

/// Searches the chosen team, or all teams that this host can read. A team is chosen by an option, a variable or the `brigade.toml` of the
/// current folder.
pub async fn search(
    context: &Context,
    search: &HistorySearch,
    zone: &TimeZone,
    report: ReportTeamIndexing<'_>,
) -> Result<FoundHistory, HostError> {
    let teams = teams(context, search.all_teams).await?;
    let query = SearchQuery {
        text: search.text.clone(),
        members: search.members.clone(),
        kinds: search.kinds.clone(),
        since: search.since,
        until: search.until,
        // One more, to know whether there are more. Each reply may be found twice.
        limit: Some(search.limit.saturating_add(1).saturating_mul(2)),
    };
    let mut found = FoundHistory::default();
    for team in teams {
        match context.store.search(&team, &query, &|progress| report(&team, progress)).await {
            Ok(results) => {
                let created = match results.hits.is_empty() {
                    true => None,
                    false => created(context, &team).await?,
                };
                let place = OpenContext { team: &team, created, zone, text: &search.text };
                found.records.extend(results.hits.into_iter().map(|hit| place.found(hit)));
                if results.unreadable > 0 {
                    found.unreadable.push((team.clone(), results.unreadable));
                }
                found.without_index.extend(results.index_error.map(|why| (team.clone(), why)));
            }
            Err(error) => found.failed.push((team.clone(), error.into())),
        }
        found.teams.push(team);
    }
    found.records.sort_by_key(|found| std::cmp::Reverse(found.record.at));
    repeated_replies::remove(&mut found.records);
    found.has_more = found.records.len() > search.limit;
    found.records.truncate(search.limit);
    let is_found = |name: &MemberName| {
        found.records.iter().any(|found| found.record.is_about_member(name.as_str()))
    };
    let not_found: Vec<MemberName> =
        search.members.iter().filter(|name| !is_found(name)).cloned().collect();
    if !not_found.is_empty() && found.failed.is_empty() {
        known_members::check(context, &found.teams, &not_found).await?;
    }
    Ok(found)
}

/// Returns the teams to search.
async fn teams(context: &Context, all: bool) -> Result<Vec<TeamName>, HostError> {
    let recorded = context.store.recorded_teams().await?;
    if all {
        return Ok(recorded);
    }
    match context.named_team() {
        Some(team) if recorded.contains(team) => Ok(vec![team.clone()]),
        // Fails with an error that lists the existing teams.
        Some(_) => Ok(vec![context.team().await?]),
        None if origin::folder_team(&context.cwd)?.is_some() => {
            let team = context.team_with_history().await;
            let team = team.map_err(|error| error.hint("`--all` searches every team"))?;
            if !recorded.contains(&team) {
                // Fails with an error that says how to start the team.
                context.team().await?;
            }
            Ok(vec![team])
        }
        None => Ok(recorded),
    }
}

/// Returns when the team was created, in milliseconds; `None` if it does not exist.
async fn created(context: &Context, team: &TeamName) -> Result<Option<u64>, HostError> {
    let roster = context.store.roster(team).await?;
    Ok(roster.map(|roster| roster.team().created_at().unwrap_or_default()))
}

/// The facts on which the commands that show a record depend.
struct OpenContext<'c> {
    team: &'c TeamName,
    /// When the team with this name was created, in milliseconds; `None` if there is none.
    created: Option<u64>,
    zone: &'c TimeZone,
    /// The text that was searched for.
    text: &'c SearchText,
}

impl OpenContext<'_> {
    fn found(&self, hit: SearchHit) -> FoundRecord {
        let SearchHit { record, place } = hit;
        let kind = record.event.record_kind();
        FoundRecord {
            team: self.team.clone(),
            kind,
            who: who(&record),
            text: one_line(&self.shown_text(&record.event)),
            open: self.command(&record, kind),
            place,
            record,
        }
    }

    /// Returns the text of an event as the log shows it. If that text does not contain the text that was searched for, returns the
    /// text that was searched.
    fn shown_text(&self, event: &Event) -> String {
        let shown = match event {
            Event::Sent { message, .. } | Event::Seen { message, .. } => {
                history_text::full_text(message)
            }
            _ => None,
        };
        shown.filter(|shown| self.text.matches(shown)).unwrap_or_else(|| event.search_text())
    }

    /// Returns the command that shows a record.
    fn command(&self, record: &Record, kind: RecordKind) -> String {
        let team = quote(self.team.as_str());
        // The history of a deleted team may begin with another team of the same name.
        let is_present = self.created.is_some_and(|created| record.belongs_to_team(created));
        if let (RecordKind::Task, Some(id), true) = (kind, record.event.task_number(), is_present) {
            return format!("brigade task show {id} --team {team}");
        }
        let second = |at: Timestamp| at.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S");
        let since = second(record.at);
        let until =
            second(record.at.saturating_add(SignedDuration::from_secs(1)).unwrap_or(record.at));
        let mut command = format!("brigade logs --team {team}");
        let member = match &record.event {
            Event::Sent { to, .. } | Event::Seen { to, .. } => Some(to),
            Event::Worked { name, .. } => Some(name),
            _ => record.by.as_ref(),
        };
        // The name in a record of another program may not be a member's.
        if let Some(member) = member.filter(|name| name.parse::<MemberName>().is_ok()) {
            command.push_str(" --member ");
            command.push_str(&quote(member));
        }
        match &record.event {
            Event::Worked { .. } => command.push_str(" --work"),
            // With `--work`, the text of a message is shown in full.
            Event::Sent { .. } | Event::Seen { .. } => {
                command.push_str(" --work --kind ");
                command.push_str(kind.as_str());
            }
            _ => {}
        }
        if !is_present {
            command.push_str(" --all-teams");
        }
        format!("{command} --since {since} --until {until}")
    }
}

/// Returns the member that acted; for a message, sender and recipient.
fn who(record: &Record) -> String {
    let who = match &record.event {
        Event::Sent { to, .. } | Event::Seen { to, .. } => {
            let from = record.event.sender().unwrap_or_else(|| "(unknown)".to_owned());
            format!("{from} → {to}")
        }
        Event::Worked { name, .. } => name.clone(),
        _ => record.by.clone().unwrap_or_else(|| "Claude Code".to_owned()),
    };
    one_line(&who)
}
