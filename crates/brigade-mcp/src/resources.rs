//! What a client may read beside the tools, and be told about when it changes: board, roster, log.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brigade_core::authority::Role;
use brigade_core::board;
use brigade_core::event::{Event, Record};
use brigade_core::mail::with_message;
use brigade_core::seat::Seat;
use brigade_core::store::{StoreError, Watch};
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::Peer;
use serde_json::json;
use tokio::time::Instant;

use crate::server::Server;
use crate::team_view;
use crate::tools::lines;
use brigade_host::history_text::Story;
use jiff::tz::TimeZone;

/// How long news are collected before a client is told, so that a burst is one word.
const BURST: Duration = Duration::from_millis(50);
/// How much of the log is given.
const LOG_RECORDS: usize = 500;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Board,
    Roster,
    Log,
}

const KINDS: &[(Kind, &str, &str, &str)] = &[
    (Kind::Board, "board", "application/json", "The tasks, with what each still waits for"),
    (Kind::Roster, "roster", "application/json", "The members of the team"),
    (Kind::Log, "log", "text/plain", "What happened, without the mail between others"),
];

fn uri(seat: &Seat, name: &str) -> String {
    format!("brigade://{}/{name}", seat.team)
}

pub(super) fn list(seat: Option<&Seat>) -> Vec<Resource> {
    let Some(seat) = seat else { return Vec::new() };
    let resource = |(_, name, mime, description): &(Kind, &str, &str, &str)| {
        Resource::new(uri(seat, name), *name).with_mime_type(*mime).with_description(*description)
    };
    KINDS.iter().map(resource).collect()
}

fn find(seat: Option<&Seat>, asked: &str) -> Result<(Seat, Kind, &'static str), ErrorData> {
    let found = seat.and_then(|seat| {
        let found = KINDS.iter().find(|(_, name, ..)| uri(seat, name) == asked);
        found.map(|(kind, _, mime, _)| (seat.clone(), *kind, *mime))
    });
    found.ok_or_else(|| ErrorData::resource_not_found(format!("no resource {asked}"), None))
}

pub(super) async fn read(
    seat: Option<&Seat>,
    asked: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let (seat, kind, mime) = find(seat, asked)?;
    let text = match kind {
        Kind::Board => {
            let (_, graph) = board::list(&seat).await.map_err(failed)?;
            json!({ "tasks": lines(&graph) }).to_string()
        }
        Kind::Roster => {
            let members = team_view::members(&seat).await;
            let members = members.map_err(|_| failed("the roster cannot be read"))?;
            json!({ "team": seat.team, "you": seat.name, "members": members }).to_string()
        }
        Kind::Log => log(&seat).await.map_err(failed)?,
    };
    let contents = ResourceContents::text(text, asked).with_mime_type(mime);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The log as people read it, without members' work. The lead sees all of it, others not the mail
/// between others.
async fn log(seat: &Seat) -> Result<String, StoreError> {
    let all = seat.role().await? == Some(Role::Lead);
    let mut records = seat.store.proceedings(&seat.team).await?;
    records.retain(|record| all || concerns(seat, record));
    let late = records.len().saturating_sub(LOG_RECORDS);
    let told = Story::new(TimeZone::system()).tell(records.get(late..).unwrap_or_default(), None);
    Ok(anstream::adapter::strip_str(&told).to_string())
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
        event => event.mailbox().is_none_or(|of| of == me),
    }
}

/// What the client wants to be told about.
#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Mutex<Wanted>>);

#[derive(Default)]
struct Wanted {
    uris: HashSet<String>,
    /// Somebody watches for it. One does for all, for the system has few watches to give, and gives
    /// them to all programs of a user.
    watched: bool,
}

impl Subscriptions {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the client no more.
    pub(super) fn end(&self, uri: &str) {
        self.wanted().uris.remove(uri);
    }

    /// Those of the changed that are wanted; `None` if nothing is wanted any more, and nobody watches
    /// from now on.
    fn of(&self, changed: HashSet<String>) -> Option<Vec<String>> {
        let mut wanted = self.wanted();
        wanted.watched = !wanted.uris.is_empty();
        wanted
            .watched
            .then(|| changed.into_iter().filter(|uri| wanted.uris.contains(uri)).collect())
    }
}

/// Tells the client from now on when the resource changes.
pub(super) async fn subscribe(
    server: &Server,
    asked: String,
    peer: Peer<RoleServer>,
) -> Result<(), ErrorData> {
    let (seat, ..) = find(server.seat().as_ref(), &asked)?;
    let watched = {
        let mut wanted = server.subscriptions.wanted();
        wanted.uris.insert(asked);
        std::mem::replace(&mut wanted.watched, true)
    };
    if !watched {
        match seat.store.watch_proceedings(&seat.team).await {
            Ok(watch) => drop(tokio::spawn(tell(seat, watch, server.subscriptions.clone(), peer))),
            Err(error) => {
                *server.subscriptions.wanted() = Wanted::default();
                return Err(failed(error));
            }
        }
    }
    Ok(())
}

/// Tells the client what changed, for as long as it has subscribed to anything.
async fn tell(seat: Seat, mut watch: Watch, subscriptions: Subscriptions, peer: Peer<RoleServer>) {
    while let Some(record) = watch.next().await {
        let mut changed = changed_by(&seat, &record);
        if changed.is_empty() {
            continue;
        }
        let end = Instant::now() + BURST;
        while let Ok(Some(record)) = tokio::time::timeout_at(end, watch.next()).await {
            changed.extend(changed_by(&seat, &record));
        }
        let Some(told) = subscriptions.of(changed) else { return };
        for uri in told {
            let update = ResourceUpdatedNotificationParam::new(uri);
            if peer.notify_resource_updated(update).await.is_err() {
                return;
            }
        }
    }
}

fn changed_by(seat: &Seat, record: &Record) -> HashSet<String> {
    let also = match &record.event {
        Event::Task { .. } | Event::TaskDeleted { .. } => Some("board"),
        Event::Member { .. }
        | Event::MemberLeft { .. }
        | Event::TeamCreated { .. }
        | Event::TeamDeleted {} => Some("roster"),
        // The log that is read here does not have it.
        Event::Worked { .. } => return HashSet::new(),
        _ => None,
    };
    also.into_iter().chain(["log"]).map(|name| uri(seat, name)).collect()
}
