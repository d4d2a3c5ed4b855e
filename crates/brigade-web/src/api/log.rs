//! The log of a team, and searches.

use std::sync::Arc;

use brigade_core::event::Record;
use brigade_core::search_text::SearchText;
use brigade_host::log_query::{LogQuery, team_created};
use brigade_host::recent_log;
use brigade_host::search::{self as host_search, HistorySearch};
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Reply, ReplyResult};

/// An event, as the journal has it.
#[derive(JsonSchema)]
pub(crate) struct EventDocument(
    #[expect(dead_code, reason = "only its schema is used")]
    serde_json::Map<String, serde_json::Value>,
);

/// A text that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundDocument {
    #[schemars(with = "String")]
    team: TeamName,
    #[schemars(with = "String")]
    at: Timestamp,
    /// `mail`, `task`, `work` or another kind of event.
    kind: String,
    /// The member that acted; for a message, sender and recipient.
    who: String,
    /// The text.
    text: String,
    /// The command that shows it.
    open: String,
}

pub(crate) async fn list(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let member: Option<MemberName> = call.parameter("member")?;
    let work = call.parameter::<bool>("work")?.unwrap_or_default();
    let query = LogQuery {
        members: member.into_iter().collect(),
        since: call.parameter("since")?,
        created: team_created(&context, &team).await?,
        ..LogQuery::default()
    };
    let limit = call.limit()?;
    let log = recent_log::read(&context, &team, &query, Some(limit), Some(work)).await?;
    let records: Vec<&Record> =
        log.records.iter().map(Arc::as_ref).filter(|record| query.matches(record)).collect();
    let first = records.len().saturating_sub(limit);
    Reply::json(&records.get(first..).unwrap_or_default())
}

pub(crate) async fn search(call: Call) -> ReplyResult {
    let text: String =
        call.parameter("text")?.ok_or_else(|| Problem::invalid("the parameter text is missing"))?;
    let text = SearchText::parse(&text).map_err(|error| Problem::invalid(error.to_string()))?;
    let team: Option<TeamName> = call.parameter("team")?;
    let member: Option<MemberName> = call.parameter("member")?;
    let asked = HistorySearch {
        text,
        all_teams: team.is_none(),
        members: member.into_iter().collect(),
        kinds: Vec::new(),
        since: None,
        until: None,
        limit: call.limit()?,
    };
    let context = call.context().with_team(team);
    let found = host_search::search(&context, &asked, &TimeZone::system(), &|_, _| {}).await?;
    let documents = found.records.into_iter().map(|found| FoundDocument {
        team: found.team,
        at: found.record.at,
        kind: found.kind.as_str().to_owned(),
        who: found.who,
        text: found.text,
        open: found.open,
    });
    Reply::json(&documents.collect::<Vec<_>>())
}
