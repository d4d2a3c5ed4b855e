//! `brigade search`

use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use brigade_core::event::Record;
use brigade_core::search_text::SearchText;
use brigade_core::store::{IndexingProgress, RecordPlace};
use brigade_core::text::count;
use brigade_host::search::{self, FoundHistory, FoundRecord};
use brigade_wire::name::TeamName;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::cli::SearchArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, FAINT, STRONG};

/// How long building an index may take before its progress is printed, and how often it is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The width of the text of a record if the width of the terminal is not known.
const DEFAULT_WIDTH: usize = 100;

/// The match in a text.
const MATCH: anstyle::Style = STRONG.underline();

/// A record as JSON.
#[derive(Serialize)]
struct FoundJson<'f> {
    team: &'f str,
    kind: &'static str,
    who: &'f str,
    text: &'f str,
    open: &'f str,
    place: Option<&'f RecordPlace>,
    record: &'f Record,
}

pub(crate) async fn run(context: &CliContext, args: &SearchArgs) -> Result<u8, CliError> {
    let text = args.text();
    let wanted = SearchText::parse(&text).map_err(|error| {
        let hint = "`brigade logs --grep` finds any characters, but reads the whole history";
        CliError::usage(error).hint(hint)
    })?;
    let request = args.search(wanted.clone());
    let last_report = Mutex::new(Instant::now());
    let report = |team: &TeamName, progress: IndexingProgress| {
        let mut last = last_report.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.elapsed() >= PROGRESS_INTERVAL {
            *last = Instant::now();
            output::eprint_line(&indexing(team, progress));
        }
    };
    let found = search::search(context, &request, &TimeZone::system(), &report).await?;
    if context.json {
        for record in &found.records {
            output::print_json(&json(record))?;
        }
    } else {
        let shows_team = found.teams.len() > 1;
        let lines: Vec<String> =
            found.records.iter().map(|record| lines(record, &wanted, shows_team)).collect();
        output::print(&lines.join("\n"))?;
    }
    let period =
        if request.since.is_some() || request.until.is_some() { " in this period" } else { "" };
    print_notes(&found, &format!("{text}{period}"), args.last);
    Ok(match (found.failed.is_empty(), found.records.is_empty()) {
        (false, _) => exit::FAILED,
        (true, true) => exit::NOTHING,
        (true, false) => exit::DONE,
    })
}

fn json(found: &FoundRecord) -> FoundJson<'_> {
    FoundJson {
        team: found.team.as_str(),
        kind: found.kind.as_str(),
        who: &found.who,
        text: &found.text,
        open: &found.open,
        place: found.place.as_ref(),
        record: &found.record,
    }
}

/// Formats a record in three lines: when and who, the text, and the command that shows it.
fn lines(found: &FoundRecord, wanted: &SearchText, shows_team: bool) -> String {
    let FoundRecord { team, kind, who, text, open, record, .. } = found;
    let at = output::local(record.at).strftime("%Y-%m-%d %H:%M:%S");
    let team = if shows_team { format!("{team}  ") } else { String::new() };
    let mut lines =
        format!("{team}{at}  {STRONG}{who}{STRONG:#}  {FAINT}{}{FAINT:#}\n  ", kind.as_str());
    let width = output::width().unwrap_or(DEFAULT_WIDTH).saturating_sub(2);
    for part in search::excerpt(text, wanted, width) {
        let _infallible = match part.is_match {
            true => write!(lines, "{MATCH}{}{MATCH:#}", part.text),
            false => write!(lines, "{}", part.text),
        };
    }
    let _infallible = writeln!(lines, "\n  {FAINT}{open}{FAINT:#}");
    lines
}

/// `wanted` is the text that was searched for, and the period.
fn print_notes(found: &FoundHistory, wanted: &str, limit: usize) {
    if found.has_more {
        output::note(&format!("showing the newest {limit}; `-n` shows more"));
    }
    for (team, why) in &found.without_index {
        output::warning(&format!(
            "the search index of team {team} cannot be used, so all of its records were read: {why}"
        ));
    }
    for (team, lines) in &found.unreadable {
        let lines = count(usize::try_from(*lines).unwrap_or(usize::MAX), "line");
        output::warning(&format!(
            "{lines} in the journals of team {team} cannot be read and were not searched"
        ));
    }
    for (team, error) in &found.failed {
        output::warning(&format!("team {team} was not searched: {error}"));
    }
    if found.records.is_empty() && found.failed.is_empty() {
        let teams = match found.teams.as_slice() {
            [team] => format!("team {team}"),
            teams => count(teams.len(), "team"),
        };
        output::note(&format!("no record of {teams} matches {wanted}"));
    }
}

fn indexing(team: &TeamName, progress: IndexingProgress) -> String {
    let IndexingProgress { records, bytes, total_bytes } = progress;
    let percent = bytes.min(total_bytes) * 100 / total_bytes.max(1);
    format!("indexing the history of team {team}: {records} records, {percent} %")
}
