//! `brigade history`

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use brigade_core::text::{count, size};
use brigade_files::HistorySize;
use brigade_host::error::file_failed;
use brigade_host::history::{Compaction, Keep, StillNeeded, compact};
use brigade_host::link_registry;
use brigade_wire::name::TeamName;
use serde_json::json;

use super::logs;
use crate::cli::{HistoryCommand, HistoryCompactArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::exit;
use crate::location::profiles;
use crate::output::{self, Cell, FAINT, STRONG, Table};

/// How often to print progress.
const PROGRESS: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &CliContext, command: HistoryCommand) -> Result<u8, CliError> {
    match command {
        HistoryCommand::Keep { keep } => keep_history(context.json, keep),
        HistoryCommand::Export { file } => export(context, &file).await,
        _ if context.location().nats().is_some() => {
            Err(CliError::usage(CliTrouble::HistoryOnServer)
                .hint("`brigade org retention` sets how long the servers keep messages"))
        }
        HistoryCommand::Size => show_sizes(context).await,
        HistoryCommand::Compact(asked) => compact_teams(context, &asked).await,
    }
}

/// Returns the named team, or all teams that have a history.
fn teams(context: &CliContext) -> Result<Vec<TeamName>, CliError> {
    let all = context.files.teams_with_history()?;
    Ok(match context.named_team() {
        Some(team) => all.into_iter().filter(|found| found == team).collect(),
        None => all,
    })
}

fn keep_history(json: bool, keep: Option<Keep>) -> Result<u8, CliError> {
    let mut profiles = profiles()?;
    if let Some(keep) = keep {
        profiles.set_keep(keep)?;
    }
    let now = profiles.keep();
    if json {
        output::print_json(&json!({ "keep": now }))?;
        return Ok(exit::DONE);
    }
    output::print(&format!("{}\n", keep_text(now)))?;
    if keep.is_some() && now != Keep::All {
        output::hint("`brigade history compact` deletes older history now");
    }
    Ok(exit::DONE)
}

fn keep_text(keep: Keep) -> String {
    match keep {
        Keep::All => "all history is kept".to_owned(),
        Keep::Days(days) => {
            format!(
                "history is kept for {}",
                count(usize::try_from(days).unwrap_or_default(), "day")
            )
        }
        Keep::Bytes(bytes) => format!("up to {} of history is kept for each team", size(bytes)),
    }
}

async fn show_sizes(context: &CliContext) -> Result<u8, CliError> {
    let mut sizes: Vec<(TeamName, bool, HistorySize)> = Vec::new();
    for team in teams(context)? {
        if let Some(found) = context.files.history_size(&team)? {
            let exists = context.team_exists(&team).await?;
            sizes.push((team, exists, found));
        }
    }
    if context.json {
        let documents: Vec<_> = sizes.iter().map(size_document).collect();
        output::print_json(&documents)?;
    } else if sizes.is_empty() {
        output::print("there is no history\n")?;
    } else {
        output::print(&table(&sizes).render("", output::width()))?;
    }
    Ok(if sizes.is_empty() { exit::NOTHING } else { exit::DONE })
}

fn size_document((team, exists, found): &(TeamName, bool, HistorySize)) -> serde_json::Value {
    let deleted = found.deleted_before.map(|before| {
        json!({ "before": before, "records": found.deleted_records, "bytes": found.deleted_bytes })
    });
    json!({
        "team": team,
        "exists": exists,
        "mail_bytes": found.mail,
        "work_bytes": found.work,
        "team_bytes": found.team,
        "index_bytes": found.index,
        "oldest": found.oldest,
        "newest": found.newest,
        "deleted": deleted,
    })
}

fn table(sizes: &[(TeamName, bool, HistorySize)]) -> Table {
    let mut table = Table::new(&["TEAM", "SIZE", "MAIL", "WORK", "TEAM LOG", "INDEX", "SINCE", ""]);
    for (team, exists, found) in sizes {
        let mut notes = Vec::new();
        if !exists {
            notes.push("the team was deleted".to_owned());
        }
        if found.deleted_records > 0 {
            let records = usize::try_from(found.deleted_records).unwrap_or(usize::MAX);
            notes.push(format!("{} deleted so far", count(records, "record")));
        }
        let since = found.oldest.map(logs::date).unwrap_or_default();
        table.row([
            Cell::new(STRONG, team.as_str()),
            size(found.journals() + found.index).into(),
            size(found.mail).into(),
            size(found.work).into(),
            size(found.team).into(),
            size(found.index).into(),
            since.into(),
            Cell::new(FAINT, &notes.join(", ")),
        ]);
    }
    table
}

async fn compact_teams(context: &CliContext, asked: &HistoryCompactArgs) -> Result<u8, CliError> {
    let keep = match asked.keep {
        Some(keep) => keep,
        None => profiles()?.keep(),
    };
    if keep == Keep::All {
        return Err(CliError::usage(CliTrouble::NoHistoryLimit)
            .hint("use --keep 90d, or set a limit with `brigade history keep 90d`"));
    }
    let (mut documents, mut total) = (Vec::new(), 0);
    let links = link_registry::list(&context.host()?.registry)?;
    for team in teams(context)? {
        if links.iter().any(|link| link.team == team) {
            output::note(&format!(
                "team {team} is linked to NATS servers, and its link needs the history"
            ));
            continue;
        }
        let mut progress = ExaminedBytes::new(&team);
        let now = context.clock.now();
        let done =
            compact(&context.files, &team, keep, now, &mut |bytes| progress.add(bytes)).await?;
        let Some(done) = done else {
            output::note(&format!("another process is deleting history of team {team}"));
            continue;
        };
        total += done.deleted.records;
        if context.json {
            documents.push(compaction_document(&team, &done));
        } else {
            output::print(&compaction_lines(&team, &done))?;
        }
    }
    if context.json {
        output::print_json(&documents)?;
    } else if total == 0 {
        output::print(
            "nothing was deleted: no history is over the limit, or it is still needed\n",
        )?;
    }
    Ok(if total == 0 { exit::NOTHING } else { exit::DONE })
}

fn compaction_document(team: &TeamName, done: &Compaction) -> serde_json::Value {
    let needed = done.needed.map(|needed| json!({ "kind": needed.label(), "at": needed.at() }));
    let (records, bytes) = (done.deleted.records, done.deleted.bytes);
    json!({ "team": team, "records": records, "bytes": bytes, "needed": needed })
}

fn compaction_lines(team: &TeamName, done: &Compaction) -> String {
    let mut lines = String::new();
    if done.deleted.records > 0 {
        let records = count(usize::try_from(done.deleted.records).unwrap_or(usize::MAX), "record");
        lines =
            format!("{STRONG}{team}{STRONG:#}: deleted {records}, {}\n", size(done.deleted.bytes));
    }
    if let Some(needed) = done.needed {
        let day = logs::date(needed.at());
        let why = match needed {
            StillNeeded::Unread(_) => "a message from that day is unread",
            StillNeeded::Request(_) => "a request from that day has no answer",
            StillNeeded::Plan(_) => "a member works with a plan that was answered on that day",
        };
        lines += &format!("{STRONG}{team}{STRONG:#}: kept everything since {day}, because {why}\n");
    }
    lines
}

/// Prints the progress of a deletion, once a second.
struct ExaminedBytes<'t> {
    team: &'t TeamName,
    bytes: u64,
    printed: Instant,
}

impl<'t> ExaminedBytes<'t> {
    fn new(team: &'t TeamName) -> Self {
        Self { team, bytes: 0, printed: Instant::now() }
    }

    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.printed.elapsed() >= PROGRESS {
            self.printed = Instant::now();
            output::eprint_line(&format!("{}: examined {}", self.team, size(self.bytes)));
        }
    }
}

async fn export(context: &CliContext, file: &Path) -> Result<u8, CliError> {
    let team = logs::team(context).await?;
    let (mut events, _) = context.event_stream(&team).await?;
    let failed = |source| file_failed("write", file, source);
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|source| failed(source).hint("choose a file that does not exist yet"))?;
    let mut records = 0;
    while let Some(batch) = events.next().await {
        records += batch.records.len();
        out.write_all(&logs::lines(batch.records.iter().map(|(_, record)| record))?)
            .map_err(failed)?;
        if batch.caught_up {
            break;
        }
    }
    out.sync_all().map_err(failed)?;
    if context.json {
        output::print_json(&json!({ "team": team, "file": file, "records": records }))?;
    } else {
        let records = count(records, "record");
        output::print(&format!("wrote {records} of team {team} to {}\n", file.display()))?;
    }
    Ok(if records == 0 { exit::NOTHING } else { exit::DONE })
}
