//! Collects the events of all teams in one order, for the streams of all clients.
//!
//! The hub keeps the newest events in memory. A client that connects again continues after the last event that it received, as
//! long as this server runs and has that event. Otherwise the client gets the events since shortly before that event, from the
//! journals; see [`EventId`].

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use brigade_core::event::{Event, Record};
use brigade_core::hash::Fnv;
use brigade_core::store::Mail;
use brigade_host::{Context, HostError};
use brigade_wire::name::TeamName;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How many events the hub keeps.
const MAX_EVENTS: usize = 16_384;
/// How much of the end of each journal of a team to read for the events since the hub found the team.
const RECENT_BYTES: u64 = 64 << 10;
/// How often the hub looks for new teams.
const TEAM_INTERVAL: Duration = Duration::from_secs(1);

/// Names an event in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventId {
    /// The position of an event among those that one server has seen, and the time of the event.
    Live { server: String, position: u64, at: Timestamp },
    /// The time of an event that was read from a journal.
    Past { at: Timestamp },
}

impl EventId {
    /// Returns the time of the event.
    pub(crate) fn at(&self) -> Timestamp {
        match self {
            Self::Live { at, .. } | Self::Past { at } => *at,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live { server, position, at } => {
                write!(f, "{server}-{position}-{}", at.as_millisecond())
            }
            Self::Past { at } => write!(f, "past-0-{}", at.as_millisecond()),
        }
    }
}

/// The text is not the id of an event.
#[derive(Debug)]
pub(crate) struct BadEventId;

impl FromStr for EventId {
    type Err = BadEventId;

    fn from_str(text: &str) -> Result<Self, BadEventId> {
        let mut parts = text.split('-');
        let (Some(server), Some(position), Some(at), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadEventId);
        };
        let position = position.parse().map_err(|_| BadEventId)?;
        let at = at.parse().map_err(|_| BadEventId)?;
        let at = Timestamp::from_millisecond(at).map_err(|_| BadEventId)?;
        Ok(match server {
            "past" => Self::Past { at },
            server => Self::Live { server: server.to_owned(), position, at },
        })
    }
}

/// An event of a team.
#[derive(Debug)]
pub(crate) struct HubEvent {
    pub(crate) position: u64,
    pub(crate) team: TeamName,
    pub(crate) at: Timestamp,
    /// Names the event among those of its team, also in streams of other servers.
    pub(crate) key: String,
    /// Whether the event may be about a request or its answer: it is an answer, or a message of the protocol.
    pub(crate) is_request: bool,
    /// The event as the stream sends it, without its id.
    pub(crate) data: Bytes,
}

/// The content of an event in a stream.
#[derive(Serialize)]
struct EventData<'e> {
    team: &'e TeamName,
    key: &'e str,
    record: &'e Record,
}

impl HubEvent {
    pub(crate) fn new(position: u64, team: &TeamName, record: &Record) -> Self {
        let line = serde_json::to_vec(record).unwrap_or_default();
        let key = format!("{:016x}", Fnv::default().bytes(&line).finish());
        let data = serde_json::to_vec(&EventData { team, key: &key, record }).unwrap_or_default();
        Self {
            position,
            team: team.clone(),
            at: record.at,
            is_request: is_request(&record.event),
            data: data.into(),
            key,
        }
    }
}

/// Returns whether the event is an answer, or a message of the protocol, such as a request.
fn is_request(event: &Event) -> bool {
    match event {
        Event::Answered { .. } => true,
        Event::Sent { key, message, .. } | Event::Seen { key, message, .. } => {
            let mail = Mail { key: *key, json: message.get().as_bytes().to_vec() };
            mail.content() == Some(brigade_core::store::MailContent::Protocol)
        }
        _ => false,
    }
}

/// The newest events, oldest first.
#[derive(Debug, Default)]
struct NewestEvents {
    events: VecDeque<Arc<HubEvent>>,
    /// The position of the next event.
    next: u64,
}

/// Collects the events of all teams.
#[derive(Debug)]
pub(crate) struct EventHub {
    /// Distinguishes this server from those before it.
    pub(crate) server: String,
    newest: Mutex<NewestEvents>,
    /// The position of the next event, for those who wait for it.
    end: watch::Sender<u64>,
}

/// The events after a position.
#[derive(Debug)]
pub(crate) enum EventsAfter {
    Events(Vec<Arc<HubEvent>>),
    /// Some of them are no longer in memory.
    Missed,
}

impl EventHub {
    pub(crate) fn new(server: String) -> Self {
        Self { server, newest: Mutex::default(), end: watch::Sender::new(0) }
    }

    /// Adds an event.
    pub(crate) fn add(&self, team: &TeamName, record: &Record) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let position = newest.next;
        newest.next += 1;
        newest.events.push_back(Arc::new(HubEvent::new(position, team, record)));
        if newest.events.len() > MAX_EVENTS {
            newest.events.pop_front();
        }
        self.end.send_replace(position + 1);
    }

    /// Returns the position of the next event.
    pub(crate) fn next_position(&self) -> u64 {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Returns at most `limit` events from this position on.
    pub(crate) fn events_from(&self, position: u64, limit: usize) -> EventsAfter {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let first = newest.next - newest.events.len() as u64;
        if position < first || position > newest.next {
            return EventsAfter::Missed;
        }
        let skip = usize::try_from(position - first).unwrap_or(usize::MAX);
        EventsAfter::Events(newest.events.iter().skip(skip).take(limit).cloned().collect())
    }

    /// Returns a receiver that learns about each new event.
    pub(crate) fn wait(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }
}

/// Watches every team, also teams that are created later, and adds their events to the hub. Runs until it is dropped.
pub(crate) async fn watch_teams(context: Arc<Context>, hub: Arc<EventHub>) {
    let mut watches: HashMap<TeamName, JoinHandle<()>> = HashMap::new();
    // A team that is found in a round was created after the round before it began.
    let mut since = context.clock.now();
    loop {
        let begun = context.clock.now();
        watches.retain(|_, watch| !watch.is_finished());
        match context.teams().await {
            Ok(teams) => {
                for team in teams {
                    if watches.contains_key(&team) {
                        continue;
                    }
                    match watch_team(&context, &hub, &team, since).await {
                        Ok(watch) => {
                            watches.insert(team, watch);
                        }
                        Err(error) => tracing::debug!(%team, %error, "cannot watch a team"),
                    }
                }
                since = begun;
            }
            // The next round includes the time of this one.
            Err(error) => tracing::debug!(%error, "cannot list the teams"),
        }
        tokio::time::sleep(TEAM_INTERVAL).await;
    }
}

/// Adds the events of a team since this time to the hub, until the team is deleted.
async fn watch_team(
    context: &Context,
    hub: &Arc<EventHub>,
    team: &TeamName,
    since: Timestamp,
) -> Result<JoinHandle<()>, HostError> {
    let (mut stream, _) = context.recent_event_stream(team, RECENT_BYTES, true).await?;
    let (hub, team) = (Arc::clone(hub), team.clone());
    Ok(tokio::spawn(async move {
        while let Some(batch) = stream.next().await {
            for (_, record) in batch.records {
                if record.at < since {
                    continue;
                }
                hub.add(&team, &record);
                if matches!(record.event, Event::TeamDeleted {}) {
                    return;
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_a_round_trip() {
        let at = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        for id in [EventId::Past { at }, EventId::Live { server: "a1".into(), position: 7, at }] {
            assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
        }
        for bad in ["", "a-1", "a-1-2-3", "a-x-2", "a-1-x", "a-1-99999999999999999999"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }
}
