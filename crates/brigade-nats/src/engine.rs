//! The connection: made once, kept through elections, and told apart from a refusal.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, Request};
use brigade_core::store::{StoreError, Strain};
use tokio::sync::broadcast;

use crate::error::Trouble;
use crate::identity::Identity;
use crate::options::Options;
use crate::read_floor::Known;

/// How long one try waits for its answer.
const TRY: Duration = Duration::from_secs(2);
/// How long one server may take to answer before the next is tried.
const CONNECT: Duration = Duration::from_secs(2);
/// How often the server is asked whether it is there. After three without an answer another is looked
/// for: one that is cut off says nothing.
const PING: Duration = Duration::from_secs(2);
/// How long to wait before trying again where nobody listens.
const PAUSE: Duration = Duration::from_millis(100);
/// The oldest server that will do. Before it a compare-and-set over several authors is not to be had,
/// and three nodes that sync are eight times slower.
const NEEDED: &str = "2.15";
/// What a request is told to which nobody listens.
const NO_RESPONDERS: &str = "no responders";
/// Why nobody does.
const NOT_ON: &str =
    "the server runs without it; `jetstream {}` in its configuration, or `-js`, turns it on";
const NOT_FOR_US: &str =
    "it has no leader, or nothing for this account yet, which `brigade org apply` gives it";
/// How many refusals are remembered.
const REMEMBERED: usize = 256;
/// How often it is looked whether the server has refused what it does not answer.
const LISTEN: Duration = Duration::from_millis(20);

/// A connection to the engine.
pub(crate) struct Engine {
    pub(crate) client: Client,
    /// Who this is.
    pub(crate) identity: Identity,
    /// What the server did not allow, in its own words.
    refusals: Arc<Mutex<VecDeque<(Instant, String)>>>,
    /// Says that the connection was made anew: what was said meanwhile was not heard.
    pub(crate) reconnected: broadcast::Sender<()>,
    /// The last message under each subject that this process has written or heard of: no replica may
    /// answer with less.
    known: Mutex<Known>,
    pub(crate) metrics: Metrics,
    /// For how long a thing is tried.
    pub(crate) patience: Duration,
}

/// What an operator wants to know of one process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Writes that came too late, for somebody else had written.
    pub conflicts: AtomicU64,
    /// Tries that were not answered, and tried again.
    pub retries: AtomicU64,
    /// How often the connection was made, the first time included.
    pub connects: Arc<AtomicU64>,
}

impl Metrics {
    /// As they are now.
    pub(crate) fn strain(&self) -> Strain {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Strain {
            conflicts: count(&self.conflicts),
            retries: count(&self.retries),
            reconnects: count(&self.connects).saturating_sub(1),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

impl Engine {
    /// Connects as whoever the credentials are of.
    pub(crate) async fn open(options: &Options) -> Result<Self, StoreError> {
        let identity = match &options.creds {
            Some(creds) => Identity::from_creds(creds).map_err(|error| StoreError::Engine {
                doing: "find out whose credentials these are".into(),
                source: Box::new(error),
            })?,
            None => Identity::trusted(),
        };
        Self::connect(options, identity).await
    }

    /// Connects, and looks whether the server will do.
    async fn connect(options: &Options, identity: Identity) -> Result<Self, StoreError> {
        let doing = || "connect to the engine";
        let refusals: Arc<Mutex<VecDeque<(Instant, String)>>> = Arc::default();
        let (reconnected, _) = broadcast::channel(4);
        let metrics = Metrics::default();
        let mut connect = ConnectOptions::new()
            .name("brigade")
            // The first named is the nearest; one that is cut off must not cost long.
            .retain_servers_order()
            .connection_timeout(CONNECT)
            .request_timeout(Some(TRY))
            .ping_interval(PING)
            .event_callback({
                let (refusals, reconnected) = (Arc::clone(&refusals), reconnected.clone());
                let connects = Arc::clone(&metrics.connects);
                move |event| {
                    match &event {
                        Event::ServerError(error) => {
                            let mut refusals =
                                refusals.lock().unwrap_or_else(PoisonError::into_inner);
                            if refusals.len() >= REMEMBERED {
                                refusals.pop_front();
                            }
                            refusals.push_back((Instant::now(), error.to_string().to_lowercase()));
                        }
                        Event::Connected => {
                            connects.fetch_add(1, Ordering::Relaxed);
                            // Nobody may be waiting for it.
                            let _nobody = reconnected.send(());
                        }
                        _ => {}
                    }
                    tracing::debug!(%event, "the engine");
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
        let client = connect.connect(options.servers.as_slice()).await.map_err(|error| {
            let servers = options.servers.join(", ");
            Trouble::Unreachable { servers, why: error.to_string() }.doing(doing())
        })?;
        let version = client.server_info().version;
        if !is_new_enough(&version) {
            return Err(Trouble::Version { found: version, needed: NEEDED }.doing(doing()));
        }
        let known = Mutex::default();
        let patience = options.patience.time();
        Ok(Self { client, identity, refusals, reconnected, known, metrics, patience })
    }

    /// Asks until there is an answer, or the server says no, or patience ends. What is asked may be
    /// asked twice.
    pub(crate) async fn ask(
        &self,
        subject: &str,
        headers: Option<&HeaderMap>,
        payload: &[u8],
        doing: &str,
    ) -> Result<Message, StoreError> {
        self.ask_for(self.patience, subject, headers, payload, doing).await
    }

    /// The same, for at most so long.
    pub(crate) async fn ask_for(
        &self,
        patience: Duration,
        subject: &str,
        headers: Option<&HeaderMap>,
        payload: &[u8],
        doing: &str,
    ) -> Result<Message, StoreError> {
        let began = Instant::now();
        loop {
            let last = match self.ask_once(subject, headers, payload, doing).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match last.kind() {
                RequestErrorKind::MaxPayloadExceeded => {
                    let most = self.client.server_info().max_payload;
                    let said = format!("the server takes at most {most} bytes (max_payload)");
                    return Err(Trouble::Said(said).doing(doing));
                }
                RequestErrorKind::InvalidSubject => {
                    return Err(Trouble::Said(last.to_string()).doing(doing));
                }
                _ => {}
            }
            self.pause(began, patience, &last.to_string(), doing).await?;
        }
    }

    /// One try. The outer error is final.
    pub(crate) async fn ask_once(
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
        // A refusal is no answer: it is said on the side, and looked for if there is none for a while.
        let refused = async {
            loop {
                tokio::time::sleep(LISTEN).await;
                if self.was_refused(subject, began) {
                    return;
                }
            }
        };
        tokio::select! {
            answer = answer => Ok(answer),
            () = refused => Err(StoreError::Forbidden { doing: doing.to_owned() }),
        }
    }

    /// Whether the server said no to this subject since then.
    fn was_refused(&self, subject: &str, since: Instant) -> bool {
        let quoted = format!("\"{}\"", subject.to_lowercase());
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recent = refusals.iter().rev().take_while(|(at, _)| *at >= since);
        recent.any(|(_, text)| text.contains("permissions violation") && text.contains(&quoted))
    }

    /// Waits a little before the next try, unless it was tried long enough.
    pub(crate) async fn pause(
        &self,
        began: Instant,
        patience: Duration,
        last: &str,
        doing: &str,
    ) -> Result<(), StoreError> {
        if began.elapsed() > patience {
            let secs = patience.as_secs();
            let has_it = self.client.server_info().jetstream;
            let trouble = match last.contains(NO_RESPONDERS) {
                true if has_it => Trouble::NoJetStream { secs, why: NOT_FOR_US },
                true => Trouble::NoJetStream { secs, why: NOT_ON },
                false => Trouble::Silent { secs, last: last.to_owned() },
            };
            return Err(trouble.doing(doing));
        }
        self.metrics.retries.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// Remembers that there is a message of this number under a subject.
    pub(crate) fn knows(&self, subject: &str, seq: u64) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(subject, seq);
    }

    /// The least number that the last message under a subject, which may have wildcards, can have.
    pub(crate) fn least(&self, filter: &str) -> u64 {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).least(filter)
    }
}

/// Whether a server of this version will do.
fn is_new_enough(version: &str) -> bool {
    let numbers = |text: &str| -> (u64, u64) {
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    numbers(version) >= numbers(NEEDED)
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_are_compared_by_number() {
        let check = |version, will_do| assert_eq!(is_new_enough(version), will_do, "{version}");
        check("2.9.10", false);
        check("2.14.6", false);
        check("2.15.1", true);
        check("2.15.0-RC.1", true);
        check("2.100.0", true);
        check("3.0.0", true);
        check("", false);
    }
}
