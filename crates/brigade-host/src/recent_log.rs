//! Reads the last events of a team from the end of its history, so that the cost does not grow with the history.

use std::sync::Arc;

use brigade_core::event::{Event, Record};
use brigade_core::store::event_log::EventStream;
use brigade_wire::name::TeamName;
use jiff::Timestamp;

use crate::context::Context;
use crate::error::HostError;
use crate::log_query::{LineFilter, LogQuery};

/// How many bytes at the end of each journal to read first. If they contain too few events, four times as many are read.
const FIRST_BYTES: u64 = 256 << 10;

/// The last events of a team.
#[derive(Debug, Default)]
pub struct RecentLog {
    /// Earlier events of the tasks. The lines of later events depend on them.
    pub earlier: Vec<Record>,
    /// All events since a time, in chronological order.
    pub records: Vec<Arc<Record>>,
    /// Whether there are no events.
    pub is_empty: bool,
}

/// Reads the events that the query selects, and all events after the first of them. With a `limit`, reads only as far back as needed for
/// the last events. `shows_work` says whether work events have lines; `None` if every event counts.
pub async fn read(
    context: &Context,
    team: &TeamName,
    query: &LogQuery,
    limit: Option<usize>,
    shows_work: Option<bool>,
) -> Result<RecentLog, HostError> {
    let mut bytes = FIRST_BYTES;
    let work = shows_work.unwrap_or(true);
    loop {
        let (events, complete) = context.recent_event_stream(team, bytes, work).await?;
        let records = past(events, complete).await;
        let mut lines = LineFilter::default();
        let is_selected = |record: &&Arc<Record>| {
            shows_work.is_none_or(|shows_work| lines.has_line(&record.event, shows_work))
                && query.matches(record)
        };
        let Some(from) = complete else {
            let is_empty = records.is_empty();
            return Ok(RecentLog { earlier: Vec::new(), records, is_empty });
        };
        let has_period = query.since.is_some_and(|since| since > from);
        let is_enough =
            limit.is_some_and(|limit| records.iter().filter(is_selected).count() >= limit);
        if has_period || is_enough {
            // The line of a task tells what changed since the event before it.
            let task = |record: &Arc<Record>| match &record.event {
                Event::Task { id, .. } | Event::TaskDeleted { id } if query.matches(record) => {
                    Some(*id)
                }
                _ => None,
            };
            let mut tasks: Vec<u64> = records.iter().filter_map(task).collect();
            tasks.sort_unstable();
            tasks.dedup();
            let mut earlier = match shows_work.is_some() && !tasks.is_empty() {
                true => context.store.task_history(team, &tasks).await?,
                false => Vec::new(),
            };
            earlier.retain(|record| record.at <= from);
            return Ok(RecentLog { earlier, records, is_empty: false });
        }
        bytes = bytes.saturating_mul(4);
    }
}

/// Returns the past events of a stream after the time from which on it is complete.
async fn past(mut events: EventStream, complete: Option<Timestamp>) -> Vec<Arc<Record>> {
    let mut records = Vec::new();
    while let Some(batch) = events.next().await {
        let found = batch.records.into_iter().map(|(_, record)| record);
        // Of several records at that time, some may be missing.
        records.extend(found.filter(|record| complete.is_none_or(|from| record.at > from)));
        if batch.caught_up {
            break;
        }
    }
    records
}
