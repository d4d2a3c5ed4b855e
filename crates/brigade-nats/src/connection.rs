//! The connection to the NATS server. Retries requests during leader elections. If the server refuses a request,
//! the caller gets that error immediately, not after a timeout.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, Request};
use brigade_core::store::{RetryStats, StoreError};
use tokio::sync::{Notify, broadcast};

use crate::connect;
use crate::connect_error::{ConnectFailure, UsedCredentials};
use crate::error::NatsError;
use crate::identity::Identity;
use crate::options::NatsOptions;
use crate::read_floor::ReadFloor;
use crate::sent_messages::SentMessages;

/// Timeout of a single request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for one server before trying the next.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of keep-alive pings. A server that is cut off from the network sends no error, so after three
/// unanswered pings the client connects to another server.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The oldest supported server version. In older servers, a compare-and-set cannot include the subjects of
/// several authors. Also, a cluster of three older servers that sync every write is eight times slower.
const MIN_SERVER_VERSION: &str = "2.15";
/// Part of the client library's error text if a request's subject has no subscriber.
const NO_RESPONDERS: &str = "no responders";
/// The two possible reasons for [`NO_RESPONDERS`]: JetStream is off, or JetStream is not ready for this account.
const JETSTREAM_OFF: &str =
    "JetStream is off; turn it on with `jetstream {}` in the server's configuration, or with `-js`";
const JETSTREAM_NOT_READY: &str =
    "it has no leader, or this account is not set up yet: run `brigade org apply`";
/// How many error messages from the server to remember.
const MAX_REFUSALS: usize = 256;

/// A connection to the NATS server.
pub(crate) struct NatsConnection {
    pub(crate) client: Client,
    /// This client's identity, read from its credentials.
    pub(crate) identity: Identity,
    /// Recent error messages from the server, each with its time of arrival.
    refusals: Arc<Mutex<VecDeque<(Instant, String)>>>,
    /// Wakes the requests that wait for an answer when `refusals` has a new entry.
    refused: Arc<Notify>,
    /// Why the client is not connected. `None` while it is connected.
    lost: Arc<Mutex<Option<String>>>,
    /// Fires when the client has connected again. The client missed the messages that were sent in the meantime.
    pub(crate) reconnected: broadcast::Sender<()>,
    /// For each subject, the highest sequence that this process has written or received. If an answer has a lower
    /// sequence, it comes from a replica that is behind, and the client rejects it.
    floor: Mutex<ReadFloor>,
    /// The messages that this process sent. The next message on the same subject is linked to them.
    pub(crate) sent: SentMessages,
    pub(crate) counters: ConnectionCounters,
    /// How long to retry a request.
    pub(crate) retry_limit: Duration,
}

/// This process's connection counters, shown to operators.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    /// Writes that failed because another client wrote first.
    pub(crate) conflicts: AtomicU64,
    /// Requests that were retried because no answer came.
    pub(crate) retries: AtomicU64,
    /// Connections established, including the first.
    pub(crate) connects: Arc<AtomicU64>,
}

impl ConnectionCounters {
    /// Returns the current values of the counters.
    pub(crate) fn retry_stats(&self) -> RetryStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RetryStats {
            conflicts: count(&self.conflicts),
            retries: count(&self.retries),
            reconnects: count(&self.connects).saturating_sub(1),
        }
    }
}

impl fmt::Debug for NatsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConnection").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl NatsConnection {
    /// Connects with the credentials in the options. Without credentials, connects as a trusted client.
    pub(crate) async fn open(options: &NatsOptions) -> Result<Self, StoreError> {
        let identity = match &options.creds {
            Some(creds) => Identity::from_creds(creds).map_err(ConnectFailure::from)?,
            None => Identity::trusted(),
        };
        Self::connect(options, identity).await
    }

    /// Connects and checks the server's version.
    async fn connect(options: &NatsOptions, identity: Identity) -> Result<Self, StoreError> {
        let refusals: Arc<Mutex<VecDeque<(Instant, String)>>> = Arc::default();
        let refused: Arc<Notify> = Arc::default();
        let lost: Arc<Mutex<Option<String>>> = Arc::default();
        let (reconnected, _) = broadcast::channel(4);
        let counters = ConnectionCounters::default();
        let mut connect = ConnectOptions::new()
            .name("brigade")
            // The first server listed is the nearest. A short timeout limits the delay if that server is down.
            .retain_servers_order()
            .connection_timeout(CONNECT_TIMEOUT)
            .request_timeout(Some(REQUEST_TIMEOUT))
            .ping_interval(PING_INTERVAL)
            .event_callback({
                let (refusals, reconnected) = (Arc::clone(&refusals), reconnected.clone());
                let (lost, refused) = (Arc::clone(&lost), Arc::clone(&refused));
                let connects = Arc::clone(&counters.connects);
                move |event| {
                    match &event {
                        Event::ServerError(error) => {
                            let mut refusals =
                                refusals.lock().unwrap_or_else(PoisonError::into_inner);
                            if refusals.len() >= MAX_REFUSALS {
                                refusals.pop_front();
                            }
                            refusals.push_back((Instant::now(), error.to_string().to_lowercase()));
                            refused.notify_waiters();
                        }
                        Event::Disconnected => {
                            let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                            lost.get_or_insert_with(|| {
                                "the server closed the connection".to_owned()
                            });
                        }
                        // A failed attempt to connect again. Its reason is more useful than the first one.
                        Event::ClientError(error) => {
                            let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                            if let Some(lost) = lost.as_mut() {
                                *lost = error.to_string();
                            }
                        }
                        Event::Connected => {
                            *lost.lock().unwrap_or_else(PoisonError::into_inner) = None;
                            connects.fetch_add(1, Ordering::Relaxed);
                            // `send` fails only if no watch is open. That is not an error.
                            let _no_receiver = reconnected.send(());
                        }
                        _ => {}
                    }
                    tracing::debug!(%event, "NATS connection event");
                    std::future::ready(())
                }
            });
        connect = connect.custom_inbox_prefix(&identity.inbox_prefix);
        if let Some(ca) = &options.ca {
            connect = connect.add_root_certificates(ca.clone()).require_tls(true);
        }
        if let Some((cert, key)) = &options.client_cert {
            connect = connect.add_client_certificate(cert.clone(), key.clone()).require_tls(true);
        }
        if let Some(creds) = &options.creds {
            let read = connect.credentials_file(creds).await;
            connect = read.map_err(|source| StoreError::Io {
                doing: "read the credentials",
                path: creds.clone(),
                source,
            })?;
        }
        let credentials = options.creds.as_ref().map(|file| UsedCredentials {
            file: file.clone(),
            holder: identity.holder(),
            until: identity.until,
        });
        let client = connect::connect(&connect, options, credentials.as_ref()).await?;
        let version = client.server_info().version;
        if !is_new_enough(&version) {
            return Err(NatsError::Version { found: version, needed: MIN_SERVER_VERSION }
                .while_doing("use the NATS server"));
        }
        let (floor, sent) = (Mutex::default(), SentMessages::default());
        let retry_limit = options.patience.duration();
        Ok(Self {
            client,
            identity,
            refusals,
            refused,
            lost,
            reconnected,
            floor,
            sent,
            counters,
            retry_limit,
        })
    }

    /// Returns why the client is not connected, or `None` while it is connected.
    pub(crate) fn error(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request, and retries it until the server answers, the server refuses it, or the time limit is over.
    /// The server may therefore receive the request more than once.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: Option<&HeaderMap>,
        payload: &[u8],
        doing: &str,
    ) -> Result<Message, StoreError> {
        self.request_within(self.retry_limit, subject, headers, payload, doing).await
    }

    /// Like `request`, with a time limit given by the caller.
    pub(crate) async fn request_within(
        &self,
        retry_limit: Duration,
        subject: &str,
        headers: Option<&HeaderMap>,
        payload: &[u8],
        doing: &str,
    ) -> Result<Message, StoreError> {
        let began = Instant::now();
        loop {
            let last = match self.request_once(subject, headers, payload, doing).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match last.kind() {
                RequestErrorKind::MaxPayloadExceeded => {
                    let max = self.client.server_info().max_payload;
                    let message = format!("the server accepts at most {max} bytes (max_payload)");
                    return Err(NatsError::Server(message).while_doing(doing));
                }
                RequestErrorKind::InvalidSubject => {
                    return Err(NatsError::Server(last.to_string()).while_doing(doing));
                }
                _ => {}
            }
            self.wait_before_retry(began, retry_limit, &last.to_string(), doing).await?;
        }
    }

    /// Sends a request once. If the inner result is an error, the caller may retry. An outer error is final.
    pub(crate) async fn request_once(
        &self,
        subject: &str,
        headers: Option<&HeaderMap>,
        payload: &[u8],
        doing: &str,
    ) -> Result<Result<Message, RequestError>, StoreError> {
        let mut request = Request::new().payload(payload.to_vec().into());
        if let Some(headers) = headers {
            request = request.headers(headers.clone());
        }
        let began = Instant::now();
        let answer = self.client.send_request(subject.to_owned(), request);
        // If permissions are missing, the server does not answer the request, but sends an error event on the
        // connection. Check for that event while waiting.
        let refused = async {
            let mut next = pin!(self.refused.notified());
            loop {
                next.as_mut().await;
                next.set(self.refused.notified());
                // From here on, every further event wakes `next`.
                next.as_mut().enable();
                if self.was_refused(subject, began) {
                    return;
                }
            }
        };
        tokio::select! {
            // Wait for the event before the request is sent, so that the event is not missed.
            biased;
            () = refused => Err(self.forbidden(doing, format!("they have no right on {subject}"))),
            answer = answer => Ok(answer),
        }
    }

    /// Returns the error for an operation that this client's credentials do not permit.
    pub(crate) fn forbidden(&self, doing: &str, missing: impl Into<String>) -> StoreError {
        let holder = self.identity.holder();
        StoreError::Forbidden { doing: doing.to_owned(), holder, missing: missing.into() }
    }

    /// Whether the server has reported a permission error for this subject since `since`.
    fn was_refused(&self, subject: &str, since: Instant) -> bool {
        let quoted = format!("\"{}\"", subject.to_lowercase());
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recent = refusals.iter().rev().take_while(|(at, _)| *at >= since);
        recent.any(|(_, text)| text.contains("permissions violation") && text.contains(&quoted))
    }

    /// Waits before the next retry, or fails once the time limit is over.
    pub(crate) async fn wait_before_retry(
        &self,
        began: Instant,
        retry_limit: Duration,
        last: &str,
        doing: &str,
    ) -> Result<(), StoreError> {
        if began.elapsed() > retry_limit {
            let secs = retry_limit.as_secs();
            let has_jetstream = self.client.server_info().jetstream;
            let error = match last.contains(NO_RESPONDERS) {
                true if has_jetstream => NatsError::NoJetStream { secs, why: JETSTREAM_NOT_READY },
                true => NatsError::NoJetStream { secs, why: JETSTREAM_OFF },
                false => NatsError::Timeout { secs, last: last.to_owned() },
            };
            return Err(error.while_doing(doing));
        }
        self.counters.retries.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(RETRY_PAUSE).await;
        Ok(())
    }

    /// Records that a message with this sequence exists on a subject.
    pub(crate) fn raise_floor(&self, subject: &str, seq: u64) {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner).raise(subject, seq);
    }

    /// Returns the highest known sequence on the subjects that match `filter`. An answer with a lower
    /// sequence is outdated.
    pub(crate) fn floor(&self, filter: &str) -> u64 {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner).get(filter)
    }
}

/// Whether this server version is supported.
fn is_new_enough(version: &str) -> bool {
    let numbers = |text: &str| -> (u64, u64) {
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    numbers(version) >= numbers(MIN_SERVER_VERSION)
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_are_compared_by_number() {
        let check = |version, expected| assert_eq!(is_new_enough(version), expected, "{version}");
        check("2.9.10", false);
        check("2.14.6", false);
        check("2.15.1", true);
        check("2.15.0-RC.1", true);
        check("2.100.0", true);
        check("3.0.0", true);
        check("", false);
    }
}
