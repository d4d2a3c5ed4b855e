//! `brigade log`

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::store::StoreError;
use brigade_wire::name::TeamName;
use jiff::SignedDuration;

use crate::context::Context;
use crate::error::CliError;
use crate::log::Story;
use crate::{exit, output};

/// How far back what the watch tells may stand in the history already. A record's time is taken just
/// before it is written.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);

/// How often to look whether anybody still reads, while nothing happens.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context, follow: bool) -> Result<u8, CliError> {
    let team = team(context).await?;
    // A watch first writes down what other programs did meanwhile, so that the history has it; and
    // begun before the history is read, it misses nothing that comes after.
    let start = context.clock.now();
    let watch = match context.store.watch(&team).await {
        Ok(watch) => Some(watch),
        Err(StoreError::NoTeam { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let history = context.store.history(&team).await?;
    if watch.is_none() && history.is_empty() {
        // Says so, with the teams there are.
        context.team().await?;
    }
    let mut story = Story::default();
    if context.json {
        output::print_raw(&lines(&history)?)?;
    } else {
        output::print(&story.tell(&history, output::width()))?;
    }
    match watch {
        Some(mut watch) if follow => {
            let recent = start.saturating_sub(OVERLAP).unwrap_or(start);
            let recent = history.iter().filter(|record| record.at >= recent);
            let mut told: HashSet<Vec<u8>> = HashSet::new();
            for record in recent {
                told.insert(lines(std::slice::from_ref(record))?);
            }
            drop(history);
            loop {
                let record = match tokio::time::timeout(LOOK, watch.next()).await {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(_) if output::is_abandoned() => break,
                    Err(_) => continue,
                };
                let line = lines(std::slice::from_ref(&record))?;
                if told.remove(&line) {
                    continue;
                }
                if context.json {
                    output::print_raw(&line)?;
                } else {
                    output::print(&story.go_on(&record, output::width()))?;
                }
            }
            Ok(exit::DONE)
        }
        _ if history.is_empty() => Ok(exit::NOTHING),
        _ => Ok(exit::DONE),
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
fn lines(records: &[Record]) -> std::io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
