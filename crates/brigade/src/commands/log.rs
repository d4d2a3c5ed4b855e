//! `brigade log`

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::text::count;
use brigade_wire::name::TeamName;

use crate::context::CliContext;
use crate::error::CliError;
use crate::{exit, output};
use brigade_host::history_text::LogFormatter;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// While there are no events, check this often whether standard output is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &CliContext, follow: bool, work: bool) -> Result<u8, CliError> {
    let team = team(context).await?;
    let (mut events, _) = context.event_stream(&team).await?;
    let mut formatter = if work {
        LogFormatter::with_work(TimeZone::system())
    } else {
        LogFormatter::new(TimeZone::system())
    };
    // In text output, the line of a message includes when it was read, so collect the whole history first.
    let mut past = Vec::new();
    let mut empty = true;
    while let Some(batch) = events.next().await {
        empty &= batch.records.is_empty();
        if context.json {
            output::print_raw(&lines(batch.records.iter().map(|(_, record)| record))?)?;
        } else {
            past.extend(batch.records.into_iter().map(|(_, record)| record));
        }
        if batch.caught_up {
            break;
        }
    }
    if empty {
        // If the team does not exist, fail with an error that lists the existing teams.
        context.team().await?;
    }
    if !context.json {
        output::print(&formatter.format_history(&past, output::width()))?;
    }
    for note in context.refused_event_notes(&team) {
        output::note(&note);
    }
    if let Some(note) = deleted_note(context, &team)? {
        output::note(&note);
    }
    drop(past);
    if !follow {
        return Ok(if empty { exit::NOTHING } else { exit::DONE });
    }
    loop {
        let batch = match tokio::time::timeout(POLL_INTERVAL, events.next()).await {
            Ok(Some(batch)) => batch,
            Err(_) if !output::is_stdout_closed() => continue,
            // A deleted team has no further events.
            Ok(None) | Err(_) => return Ok(exit::DONE),
        };
        if context.json {
            output::print_raw(&lines(batch.records.iter().map(|(_, record)| record))?)?;
            continue;
        }
        for (_, record) in &batch.records {
            output::print(&formatter.format_record(record, output::width()))?;
        }
    }
}

/// Returns the team to show, which may have been deleted.
pub(super) async fn team(context: &CliContext) -> Result<TeamName, CliError> {
    match context.named_team() {
        Some(team) => Ok(team.clone()),
        None => context.team_or_ended().await,
    }
}

/// Formats records as JSON lines.
pub(super) fn lines<'r>(
    records: impl Iterator<Item = &'r Arc<Record>>,
) -> Result<Vec<u8>, CliError> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record.as_ref()).map_err(CliError::failed)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Returns a note about the history that was deleted, if any was.
fn deleted_note(context: &CliContext, team: &TeamName) -> Result<Option<String>, CliError> {
    if context.location().nats().is_some() {
        return Ok(None);
    }
    let found = context.files.history_size(team)?;
    Ok(found.filter(|found| found.deleted_records > 0).map(|found| {
        let records = count(usize::try_from(found.deleted_records).unwrap_or(usize::MAX), "record");
        let before = found.deleted_before.map(date).unwrap_or_default();
        let were = if found.deleted_records == 1 { "was" } else { "were" };
        format!("{records} from before {before} {were} deleted (`brigade history`)")
    }))
}

/// Formats the day of a time, in the user's time zone.
pub(super) fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string()
}
