//! MCP resources: the board, the roster and the log, with change notifications.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brigade_core::authority::Role;
use brigade_core::board;
use brigade_core::event::{Event, Record};
use brigade_core::seat::Seat;
use brigade_core::store::{StoreError, Watch};
use brigade_core::wire::inbox::with_message;
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::Peer;
use serde_json::json;
use tokio::time::Instant;

use crate::board_view::task_lines;
use crate::team_view;
use brigade_host::history_text::LogFormatter;
use jiff::tz::TimeZone;

/// How long to collect changes before notifying the client, so that several quick changes cause one notification.
const BURST_TIME: Duration = Duration::from_millis(50);
/// The maximum number of records in the log resource.
const LOG_RECORDS: usize = 500;

/// The kinds of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceKind {
    Board,
    Roster,
    Log,
}

const RESOURCES: &[(ResourceKind, &str, &str, &str)] = &[
    (
        ResourceKind::Board,
        "board",
        "application/json",
        "The tasks, each with the unfinished tasks that block it",
    ),
    (ResourceKind::Roster, "roster", "application/json", "The members of the team"),
    (
        ResourceKind::Log,
        "log",
        "text/plain",
        "The team's history, without mail between other members",
    ),
];

fn uri(seat: &Seat, name: &str) -> String {
    format!("brigade://{}/{name}", seat.team)
}

pub(super) fn list(seat: Option<&Seat>) -> Vec<Resource> {
    let Some(seat) = seat else { return Vec::new() };
    let resource = |(_, name, mime, description): &(ResourceKind, &str, &str, &str)| {
        Resource::new(uri(seat, name), *name).with_mime_type(*mime).with_description(*description)
    };
    RESOURCES.iter().map(resource).collect()
}

fn find(
    seat: Option<&Seat>,
    requested: &str,
) -> Result<(Seat, ResourceKind, &'static str), ErrorData> {
    let found = seat.and_then(|seat| {
        let found = RESOURCES.iter().find(|(_, name, ..)| uri(seat, name) == requested);
        found.map(|(kind, _, mime, _)| (seat.clone(), *kind, *mime))
    });
    found.ok_or_else(|| ErrorData::resource_not_found(format!("no resource {requested}"), None))
}

pub(super) async fn read(
    seat: Option<&Seat>,
    requested: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let (seat, kind, mime) = find(seat, requested)?;
    let text = match kind {
        ResourceKind::Board => {
            let (_, graph) = board::list(&seat).await.map_err(failed)?;
            json!({ "tasks": task_lines(&graph) }).to_string()
        }
        ResourceKind::Roster => {
            let members = team_view::members(&seat).await;
            let members = members.map_err(|_| failed("cannot read the roster"))?;
            json!({ "team": seat.team, "you": seat.name, "members": members }).to_string()
        }
        ResourceKind::Log => log(&seat).await.map_err(failed)?,
    };
    let contents = ResourceContents::text(text, requested).with_mime_type(mime);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Returns the log as text, without work events. Only the lead sees mail between other members.
async fn log(seat: &Seat) -> Result<String, StoreError> {
    let all = seat.role().await? == Some(Role::Lead);
    let mut records = seat.store.last_events(&seat.team, LOG_RECORDS).await?;
    records.retain(|record| all || concerns(seat, record));
    let text = LogFormatter::new(TimeZone::system()).format_history(&records, None);
    Ok(anstream::adapter::strip_str(&text).to_string())
}

fn concerns(seat: &Seat, record: &Record) -> bool {
    let me = seat.name.as_str();
    match &record.event {
        Event::Sent { to, message, .. } | Event::Seen { to, message, .. } => {
            let from_me = with_message(message.get().as_bytes(), |message| {
                message.is_some_and(|message| message.from() == me)
            });
            to == me || from_me.unwrap_or(false)
        }
        Event::Answered { to, .. } => to == me || record.by.as_deref() == Some(me),
        event => event.mailbox().is_none_or(|member| member == me),
    }
}

/// The resources that the client has subscribed to.
#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Mutex<SubscribedUris>>);

#[derive(Default)]
struct SubscribedUris {
    uris: HashSet<String>,
    /// Whether a background task is watching the team. All subscriptions share one watch, because the system
    /// limits the number of file watches per user.
    watched: bool,
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, SubscribedUris> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a subscription.
    pub(super) fn end(&self, uri: &str) {
        self.lock().uris.remove(uri);
    }

    /// Returns the changed resources that the client has subscribed to. Returns `None` if no subscriptions are
    /// left, which ends the watch.
    fn subscribed_of(&self, changed: HashSet<String>) -> Option<Vec<String>> {
        let mut subscribed = self.lock();
        subscribed.watched = !subscribed.uris.is_empty();
        subscribed
            .watched
            .then(|| changed.into_iter().filter(|uri| subscribed.uris.contains(uri)).collect())
    }
}

/// Subscribes the client to a resource. The client is notified of changes from now on.
pub(super) async fn subscribe(
    seat: Option<&Seat>,
    subscriptions: &Subscriptions,
    requested: String,
    peer: Peer<RoleServer>,
) -> Result<(), ErrorData> {
    let (seat, ..) = find(seat, &requested)?;
    let watched = {
        let mut subscribed = subscriptions.lock();
        subscribed.uris.insert(requested);
        std::mem::replace(&mut subscribed.watched, true)
    };
    if !watched {
        match seat.watch_without_work().await {
            Ok(watch) => {
                drop(tokio::spawn(notify(seat, watch, subscriptions.clone(), peer)));
            }
            Err(error) => {
                *subscriptions.lock() = SubscribedUris::default();
                return Err(failed(error));
            }
        }
    }
    Ok(())
}

/// Notifies the client of changes until the client has no subscription left.
async fn notify(
    seat: Seat,
    mut watch: Watch,
    subscriptions: Subscriptions,
    peer: Peer<RoleServer>,
) {
    while let Some(record) = watch.next().await {
        let mut changed = changed_by(&seat, &record);
        if changed.is_empty() {
            continue;
        }
        let end = Instant::now() + BURST_TIME;
        while let Ok(Some(record)) = tokio::time::timeout_at(end, watch.next()).await {
            changed.extend(changed_by(&seat, &record));
        }
        let Some(uris) = subscriptions.subscribed_of(changed) else { return };
        for uri in uris {
            let update = ResourceUpdatedNotificationParam::new(uri);
            if peer.notify_resource_updated(update).await.is_err() {
                return;
            }
        }
    }
}

fn changed_by(seat: &Seat, record: &Record) -> HashSet<String> {
    let changed = match &record.event {
        Event::Task { .. } | Event::TaskDeleted { .. } => Some("board"),
        Event::Member { .. }
        | Event::MemberLeft { .. }
        | Event::TeamCreated { .. }
        | Event::TeamDeleted {} => Some("roster"),
        // The log resource does not include work events.
        Event::Worked { .. } => return HashSet::new(),
        _ => None,
    };
    changed.into_iter().chain(["log"]).map(|name| uri(seat, name)).collect()
}
