//! The stream of events, as server-sent events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use brigade_host::log_query::LogQuery;
use brigade_host::recent_log;
use brigade_wire::name::TeamName;
use futures_util::stream;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::access::Right;
use crate::call::Call;
use crate::hub::{EventHub, EventId, EventsAfter, HubEvent};
use crate::problem::Problem;
use crate::state::{Credential, WebState};
use crate::stream_limit::StreamPermit;

/// A line that shows the client that the connection still works.
const HEARTBEAT: Bytes = Bytes::from_static(b": still here\n\n");
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// The most events to send at once.
const MAX_BATCH: usize = 256;
/// Events of other processes are recorded slightly after they happen. A client whose server has ended gets the events since this
/// long before the last event that it received, and drops those that it has, by their keys.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);

/// Which events a client gets.
#[derive(Clone, Debug)]
struct StreamFilter {
    team: Option<TeamName>,
    /// Whether the client gets only the names of teams in which a request was made or answered.
    requests_only: bool,
}

/// The stream of one client.
struct ClientStream {
    hub: Arc<EventHub>,
    filter: StreamFilter,
    end: watch::Receiver<u64>,
    /// The bytes to send first.
    first: Option<Bytes>,
    /// The position of the next event to send.
    next: u64,
    /// The keys of events that were read from journals, and may come again from the hub.
    sent: HashSet<String>,
    state: Arc<WebState>,
    credential: Option<Credential>,
    _permit: StreamPermit,
}

/// Answers a request for the stream.
pub(crate) async fn open(call: &Call) -> Result<Response, Problem> {
    let permit = call.state.streams.take(&call.grant.name)?;
    let filter = StreamFilter {
        team: call.parameter("team")?,
        requests_only: !call.grant.kind.has(Right::Read),
    };
    let hub = Arc::clone(&call.state.hub);
    let end = hub.wait();
    let now = call.state.context.clock.now();
    let last = call.last_event_id.as_deref().and_then(|id| id.parse::<EventId>().ok());
    let (first, next, sent) = match last {
        Some(EventId::Live { server, position, .. })
            if server == hub.server
                && matches!(hub.events_from(position + 1, 0), EventsAfter::Events(_)) =>
        {
            (Vec::new(), position + 1, HashSet::new())
        }
        Some(last) => past(call, &filter, last.at()).await?,
        None => {
            let next = hub.next_position();
            (hello(&hub, next, now), next, HashSet::new())
        }
    };
    let client = ClientStream {
        filter,
        end,
        first: Some([b"retry: 1000\n\n", first.as_slice()].concat().into()),
        next,
        sent,
        state: Arc::clone(&call.state),
        credential: call.credential.clone(),
        _permit: permit,
        hub,
    };
    let body = stream::unfold(client, |mut client| async move {
        client.next_bytes().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), client))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Names the position at which a new client begins. The client reads the state after this, so it misses nothing.
fn hello(hub: &EventHub, next: u64, now: Timestamp) -> Vec<u8> {
    // A position before the first event means all events.
    let id = match next.checked_sub(1) {
        Some(position) => EventId::Live { server: hub.server.clone(), position, at: now },
        None => EventId::Past { at: now },
    };
    format!("event: hello\nid: {id}\ndata: {{}}\n\n").into_bytes()
}

/// Reads the events since shortly before a time from the journals.
async fn past(
    call: &Call,
    filter: &StreamFilter,
    at: Timestamp,
) -> Result<(Vec<u8>, u64, HashSet<String>), Problem> {
    let next = call.state.hub.next_position();
    let since = at.checked_sub(OVERLAP).unwrap_or(Timestamp::UNIX_EPOCH);
    let context = call.context();
    let query = LogQuery { since: Some(since), ..LogQuery::default() };
    let mut events = Vec::new();
    for team in context.store.recorded_teams().await? {
        if filter.team.as_ref().is_some_and(|only| *only != team) {
            continue;
        }
        let log = recent_log::read(&context, &team, &query, None, None).await?;
        let records = log.records.iter().filter(|record| query.matches(record));
        events.extend(records.map(|record| HubEvent::new(0, &team, record)));
    }
    events.sort_by_key(|event| event.at);
    let mut first = Vec::new();
    for event in &events {
        filter.write(&mut first, event, &EventId::Past { at: event.at });
    }
    Ok((first, next, events.into_iter().map(|event| event.key).collect()))
}

impl ClientStream {
    /// Waits for the next bytes to send. Returns `None` if the client is too slow: it connects again, and continues.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            // Note the end before reading, so that no event is missed.
            let _seen = *self.end.borrow_and_update();
            let EventsAfter::Events(events) = self.hub.events_from(self.next, MAX_BATCH) else {
                return None;
            };
            if events.is_empty() {
                match tokio::time::timeout(HEARTBEAT_INTERVAL, self.end.changed()).await {
                    Ok(Ok(())) => continue,
                    Err(_) if self.is_allowed() => return Some(HEARTBEAT),
                    Ok(Err(_)) | Err(_) => return None,
                }
            }
            if !self.is_allowed() {
                return None;
            }
            let mut bytes = Vec::new();
            for event in events {
                self.next = event.position + 1;
                if !self.sent.is_empty() && self.sent.remove(&event.key) {
                    continue;
                }
                let server = self.hub.server.clone();
                let id = EventId::Live { server, position: event.position, at: event.at };
                self.filter.write(&mut bytes, &event, &id);
            }
            if !bytes.is_empty() {
                return Some(bytes.into());
            }
        }
    }
}

impl ClientStream {
    /// Returns whether the token or the login is still valid.
    fn is_allowed(&self) -> bool {
        self.credential.as_ref().is_some_and(|credential| self.state.grant(credential).is_ok())
    }
}

impl StreamFilter {
    /// Adds an event to what is sent, if the client may see it and wants it.
    fn write(&self, bytes: &mut Vec<u8>, event: &HubEvent, id: &EventId) {
        if self.team.as_ref().is_some_and(|team| *team != event.team) {
            return;
        }
        match self.requests_only {
            true if !event.is_request => {}
            true => {
                let data = serde_json::json!({ "team": event.team, "key": event.key });
                bytes.extend(format!("event: requests\nid: {id}\ndata: {data}\n\n").bytes());
            }
            false => {
                bytes.extend(format!("event: record\nid: {id}\ndata: ").bytes());
                bytes.extend_from_slice(&event.data);
                bytes.extend_from_slice(b"\n\n");
            }
        }
    }
}
