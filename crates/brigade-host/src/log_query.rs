//! Selects the events of a team that a person wants to see.

use std::collections::VecDeque;
use std::sync::Arc;

use brigade_core::event::{Event, Record, RecordKind};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;
use jiff::Timestamp;

use crate::Context;
use crate::error::HostError;
use crate::history_text;

/// Selects events.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// Only events of these members, and messages to them; empty for all members.
    pub members: Vec<MemberName>,
    /// Only events of this task.
    pub task: Option<TaskId>,
    /// Only events at this time or later.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
    /// Only events of these kinds; empty for all kinds.
    pub kinds: Vec<RecordKind>,
    /// Only events whose text contains this text. Upper and lower case do not matter.
    pub text: Option<String>,
    /// Only events of the team that was created at this time, in milliseconds, not of earlier teams with the same name.
    pub created: Option<u64>,
}

impl LogQuery {
    /// Returns whether the query selects this record.
    pub fn matches(&self, record: &Record) -> bool {
        self.created.is_none_or(|created| record.belongs_to_team(created))
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
            && (self.kinds.is_empty() || self.kinds.contains(&record.event.record_kind()))
            && self.task.is_none_or(|id| record.event.task_number() == Some(id.get()))
            && (self.members.is_empty()
                || self.members.iter().any(|name| record.is_about_member(name.as_str())))
            && self.text.as_ref().is_none_or(|text| contains(&record.event, text))
    }
}

/// Finds the events that have a line of their own. Takes the events of a team in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineFilter {
    /// Whether the team was deleted. Then the deletion of its tasks follows, which has no lines.
    is_deleted: bool,
}

impl LineFilter {
    /// Returns whether an event has a line of its own. `shows_work` says whether work events have lines.
    pub(crate) fn has_line(&mut self, event: &Event, shows_work: bool) -> bool {
        match event {
            Event::TeamDeleted {} => self.is_deleted = true,
            Event::TeamCreated { .. } | Event::Task { .. } => self.is_deleted = false,
            _ => {}
        }
        match event {
            Event::Read { .. } | Event::Shown { .. } => false,
            Event::Worked { act, .. } => shows_work && history_text::has_text(act),
            Event::TaskDeleted { .. } => !self.is_deleted,
            _ => true,
        }
    }
}

fn contains(event: &Event, text: &str) -> bool {
    event.search_text().to_lowercase().contains(&text.to_lowercase())
}

/// Returns when the team of this name was created: the existing one or, if it was deleted, the last one. In milliseconds; `None` if
/// that is not known.
pub async fn team_created(context: &Context, team: &TeamName) -> Result<Option<u64>, HostError> {
    if let Some(roster) = context.store.roster(team).await? {
        return Ok(roster.team().created_at());
    }
    let history = context.store.team_history(team).await?;
    Ok(history.iter().rev().find_map(|record| match &record.event {
        Event::TeamCreated { team } => {
            Team::read(team.get().as_bytes()).ok().and_then(|team| team.created_at())
        }
        _ => None,
    }))
}

/// Collects the last records that a query selects, and the later records that their lines depend on. Earlier records are
/// passed on to the formatter and not kept.
#[derive(Debug, Default)]
pub struct LogSelection {
    query: LogQuery,
    /// How many selected records to keep; `None` for all of them.
    limit: Option<usize>,
    /// The records from the first selected one on, each with whether it is selected.
    records: VecDeque<(Arc<Record>, bool)>,
    selected: usize,
    lines: LineFilter,
}

impl LogSelection {
    /// Creates an empty selection of at most `limit` records.
    pub fn new(query: LogQuery, limit: Option<usize>) -> Self {
        Self { query, limit, ..Self::default() }
    }

    /// Adds a record. `shows_work` says whether work events have lines. Calls `skip` with each record that is not kept.
    pub fn add(&mut self, record: Arc<Record>, shows_work: bool, mut skip: impl FnMut(&Record)) {
        let has_line = self.lines.has_line(&record.event, shows_work);
        if matches!(record.event, Event::Worked { .. }) && !shows_work {
            return;
        }
        let is_selected = has_line && self.query.matches(&record);
        if !is_selected && self.records.is_empty() {
            return skip(&record);
        }
        self.selected += usize::from(is_selected);
        self.records.push_back((record, is_selected));
        while self.limit.is_some_and(|limit| self.selected > limit)
            || self.records.front().is_some_and(|(_, is_selected)| !is_selected)
        {
            let Some((record, is_selected)) = self.records.pop_front() else { break };
            self.selected -= usize::from(is_selected);
            skip(&record);
        }
    }

    /// Returns the records from the first selected one on, each with whether it is selected.
    pub fn into_records(self) -> Vec<(Arc<Record>, bool)> {
        self.records.into()
    }
}
