//! `brigade logs`

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::text::count;
use brigade_wire::name::TeamName;

use crate::cli::LogsArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::{exit, output};
use brigade_host::history_text::LogFormatter;
use brigade_host::log_query::{LogQuery, LogSelection, team_created};
use brigade_host::{known_members, recent_log};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// While there are no events, check this often whether standard output is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &CliContext, args: &LogsArgs) -> Result<u8, CliError> {
    let team = team(context).await?;
    let created = match args.all_teams {
        true => None,
        false => team_created(context, &team).await?,
    };
    let query = args.query(created);
    let shows_work = args.shows_work();
    let mut formatter = LogFormatter::new(TimeZone::system());
    if shows_work {
        formatter = LogFormatter::with_work(TimeZone::system());
        if args.members().next().is_some() || args.grep.is_some() {
            formatter = formatter.with_all_text();
        }
    }
    let mut printer = LogPrinter {
        is_json: context.json,
        formatter,
        last: VecDeque::new(),
        limit: args.last,
        is_empty: true,
        query,
        selection: LogSelection::new(args.query(created), args.last),
        shows_work,
    };
    // Later lines may be about older messages, so `--follow` needs the whole history.
    if !args.follow && (args.last.is_some() || args.since.is_some()) {
        printer.print_recent(context, &team).await?;
        print_notes(context, &team)?;
        return printer.exit_code(context, &team).await;
    }
    let (mut events, _) = context.event_stream(&team).await?;
    let mut has_history = false;
    while let Some(batch) = events.next().await {
        has_history |= !batch.records.is_empty();
        for (_, record) in batch.records {
            printer.add(record)?;
        }
        if batch.caught_up {
            break;
        }
    }
    if !has_history {
        // If the team does not exist, fail with an error that lists the existing teams.
        context.team().await?;
    }
    printer.finish()?;
    print_notes(context, &team)?;
    if !args.follow {
        return printer.exit_code(context, &team).await;
    }
    loop {
        let batch = match tokio::time::timeout(POLL_INTERVAL, events.next()).await {
            Ok(Some(batch)) => batch,
            Err(_) if !output::is_stdout_closed() => continue,
            // A deleted team has no further events.
            Ok(None) | Err(_) => return Ok(exit::DONE),
        };
        for (_, record) in batch.records {
            match (printer.query.matches(&record), context.json) {
                (true, true) => output::print_raw(&lines([&record].into_iter())?)?,
                (true, false) => {
                    let width = output::width();
                    output::print(&printer.formatter.format_record(&record, width))?;
                }
                (false, _) => printer.formatter.skip(&record),
            }
        }
    }
}

/// Prints the past events.
struct LogPrinter {
    is_json: bool,
    formatter: LogFormatter,
    /// The last records, if only some of them are printed as JSON.
    last: VecDeque<Arc<Record>>,
    limit: Option<usize>,
    /// Whether no event was printed.
    is_empty: bool,
    query: LogQuery,
    selection: LogSelection,
    shows_work: bool,
}

impl LogPrinter {
    /// Prints the last events. Reads only the end of the history.
    async fn print_recent(
        &mut self,
        context: &CliContext,
        team: &TeamName,
    ) -> Result<(), CliError> {
        let shows_work = (!self.is_json).then_some(self.shows_work);
        let log = recent_log::read(context, team, &self.query, self.limit, shows_work).await?;
        if log.is_empty {
            context.team().await?;
        }
        for record in &log.earlier {
            self.formatter.skip(record);
        }
        for record in log.records {
            self.add(record)?;
        }
        self.finish()
    }

    /// Adds a past event.
    fn add(&mut self, record: Arc<Record>) -> Result<(), CliError> {
        match self.is_json {
            true if self.query.matches(&record) => self.json(record),
            true => Ok(()),
            false => {
                let formatter = &mut self.formatter;
                self.selection.add(record, self.shows_work, |record| formatter.skip(record));
                Ok(())
            }
        }
    }

    /// Returns the exit code. If no event was printed, prints a note, or fails if a member is not known.
    async fn exit_code(&self, context: &CliContext, team: &TeamName) -> Result<u8, CliError> {
        if !self.is_empty {
            return Ok(exit::DONE);
        }
        known_members::check(context, std::slice::from_ref(team), &self.query.members).await?;
        if !self.is_json {
            output::note(&format!("no event of team {team} matches"));
        }
        Ok(exit::NOTHING)
    }

    /// Prints a record as JSON, or keeps it until it is known to be among the last.
    fn json(&mut self, record: Arc<Record>) -> Result<(), CliError> {
        let Some(limit) = self.limit else {
            self.is_empty = false;
            return output::print_raw(&lines([&record].into_iter())?);
        };
        self.last.push_back(record);
        if self.last.len() > limit {
            self.last.pop_front();
        }
        Ok(())
    }

    /// Prints the records that were kept.
    fn finish(&mut self) -> Result<(), CliError> {
        if self.is_json {
            self.is_empty &= self.last.is_empty();
            return output::print_raw(&lines(self.last.drain(..).collect::<Vec<_>>().iter())?);
        }
        let records = std::mem::take(&mut self.selection).into_records();
        self.is_empty = records.is_empty();
        output::print(&self.formatter.format_selected(&records, output::width()))
    }
}

/// Prints notes about events that are not shown.
fn print_notes(context: &CliContext, team: &TeamName) -> Result<(), CliError> {
    for note in context.refused_event_notes(team) {
        output::note(&note);
    }
    if let Some(note) = deleted_note(context, team)? {
        output::note(&note);
    }
    Ok(())
}

/// Returns the team to show, which may have been deleted.
pub(super) async fn team(context: &CliContext) -> Result<TeamName, CliError> {
    context.team_with_history().await
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
