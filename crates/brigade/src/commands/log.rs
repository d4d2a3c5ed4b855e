//! `brigade log`

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_wire::name::TeamName;

use crate::context::Context;
use crate::error::CliError;
use crate::{exit, output};
use brigade_host::history_text::Story;
use jiff::tz::TimeZone;

/// How often to look whether anybody still reads, while nothing happens.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context, follow: bool, work: bool) -> Result<u8, CliError> {
    let team = team(context).await?;
    let (mut feed, _) = context.store.chronicle(&team).await?;
    let mut story =
        if work { Story::with_work(TimeZone::system()) } else { Story::new(TimeZone::system()) };
    // For people, what became of a message stands in its own line; so the past is told as a whole.
    let mut past = Vec::new();
    let mut empty = true;
    while let Some(batch) = feed.next().await {
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
        // If there is no such team it says so, with the teams there are.
        context.team().await?;
    }
    if !context.json {
        output::print(&story.tell(&past, output::width()))?;
    }
    drop(past);
    if !follow {
        return Ok(if empty { exit::NOTHING } else { exit::DONE });
    }
    loop {
        let batch = match tokio::time::timeout(LOOK, feed.next()).await {
            Ok(Some(batch)) => batch,
            Err(_) if !output::is_abandoned() => continue,
            // Of a deleted team nothing more comes.
            Ok(None) | Err(_) => return Ok(exit::DONE),
        };
        if context.json {
            output::print_raw(&lines(batch.records.iter().map(|(_, record)| record))?)?;
            continue;
        }
        for (_, record) in &batch.records {
            output::print(&story.go_on(record, output::width()))?;
        }
    }
}

/// The team, which may be one that was deleted.
async fn team(context: &Context) -> Result<TeamName, CliError> {
    match context.named_team() {
        Some(team) => Ok(team.clone()),
        None => context.team().await,
    }
}

/// Records as JSON lines.
fn lines<'r>(records: impl Iterator<Item = &'r Arc<Record>>) -> Result<Vec<u8>, CliError> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record.as_ref()).map_err(CliError::failed)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
