//! Measurements of the NATS server and its streams, for operators.
//!
//! ```no_run
//! use brigade_core::store::StoreError;
//! use brigade_nats::NatsStore;
//!
//! async fn print(store: &NatsStore) -> Result<(), StoreError> {
//!     println!("{:?}", store.measures().await?);
//!     Ok(())
//! }
//! ```

use std::time::{Duration, Instant};

use async_nats::Request;
use async_nats::client::RequestErrorKind;
use async_nats::jetstream::response::Response;
use brigade_core::store::StoreError;
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::CredentialRole;
use crate::layout::{DEDUP, Stream};
use crate::store::NatsStore;
use crate::streams::NO_STREAM;

/// Timeout for slow operations, such as a snapshot.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(60);
/// A request fails if the cluster has not announced a new subscription to all its servers yet. The request is
/// retried until `SUBSCRIPTION_DELAY` has passed, with a pause between two attempts.
const SUBSCRIPTION_DELAY: Duration = Duration::from_secs(10);
const SUBSCRIPTION_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Measurements of the NATS server.
#[derive(Clone, Debug, Serialize)]
pub struct Measures {
    /// The name of the server to which this process is connected.
    pub server: String,
    /// The server's version.
    pub version: String,
    /// The name of the server's cluster, if there is a cluster.
    pub cluster: Option<String>,
    /// Round-trip time of one request to the server, in microseconds.
    pub round_trip_us: u64,
    /// How long mail is kept, in seconds; `None` if there is no limit.
    pub retention_secs: Option<u64>,
    /// The streams; empty if the client is a seat, because seats are not allowed to list streams.
    pub streams: Vec<StreamMetrics>,
}

/// Measurements of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamMetrics {
    /// The stream's name.
    pub name: String,
    /// Number of messages.
    pub messages: u64,
    /// Size of the messages, in bytes.
    pub bytes: u64,
    /// Number of replicas.
    pub replicas: u64,
    /// The server that leads the stream; `None` during a leader election, when writes fail.
    pub leader: Option<String>,
    /// The replicas that are offline or not up to date.
    pub behind: Vec<LaggingReplica>,
}

/// A replica that is offline or not up to date.
#[derive(Clone, Debug, Serialize)]
pub struct LaggingReplica {
    /// The name of the server that holds the replica.
    pub server: String,
    /// Number of writes that the replica is missing.
    pub lag: u64,
    /// `true` if the server does not answer at all.
    pub offline: bool,
}

/// The number of messages in a stream, their size, and the range of their sequences and times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamState {
    /// Number of messages.
    pub messages: u64,
    /// Size of the messages, in bytes.
    pub bytes: u64,
    /// Sequence of the first message.
    pub first_seq: u64,
    /// When the first message was stored.
    #[serde(default)]
    pub first_ts: Option<Timestamp>,
    /// Sequence of the last message.
    pub last_seq: u64,
    /// When the last message was stored.
    #[serde(default)]
    pub last_ts: Option<Timestamp>,
    /// Number of deleted messages between the first and the last message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_deleted: u64,
    /// Number of consumers.
    #[serde(default)]
    pub consumer_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The server's description of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) config: Value,
    pub(crate) state: StreamState,
    #[serde(default)]
    cluster: Option<StreamCluster>,
}

#[derive(Debug, Deserialize)]
struct StreamCluster {
    #[serde(default)]
    leader: Option<String>,
    #[serde(default)]
    replicas: Vec<StreamReplica>,
}

#[derive(Debug, Deserialize)]
struct StreamReplica {
    name: String,
    #[serde(default)]
    current: bool,
    #[serde(default)]
    offline: bool,
    #[serde(default)]
    lag: u64,
}

impl StreamInfo {
    fn number(&self, key: &str) -> u64 {
        self.config.get(key).and_then(Value::as_u64).unwrap_or_default()
    }

    /// Returns the servers that are online and hold a replica.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &str> {
        let cluster = self.cluster.iter();
        cluster.flat_map(|cluster| {
            let others = cluster.replicas.iter().filter(|replica| !replica.offline);
            cluster.leader.as_deref().into_iter().chain(others.map(|replica| replica.name.as_str()))
        })
    }

    /// Returns the number of replicas.
    pub(crate) fn replicas(&self) -> usize {
        usize::try_from(self.number("num_replicas")).unwrap_or(1)
    }

    /// Returns how long messages are kept; zero if there is no limit.
    pub(crate) fn max_age(&self) -> Duration {
        Duration::from_nanos(self.number("max_age"))
    }
}

impl NatsStore {
    /// Measures the NATS server. Omits measurements that this client's credentials do not allow.
    pub async fn measures(&self) -> Result<Measures, StoreError> {
        let connection = &self.connection;
        let mut retention = (connection.identity.role != CredentialRole::Admin)
            .then_some(connection.identity.settings.retention);
        let mut streams = Vec::new();
        if connection.identity.role == CredentialRole::Admin {
            for shard in 0..self.current_map().await?.total() {
                for stream in Stream::ALL {
                    let name = stream.name(shard);
                    let Some(info) = connection.info(&name).await? else { continue };
                    if stream == Stream::Mail && !info.max_age().is_zero() {
                        let shortest = retention.unwrap_or(Duration::MAX).min(info.max_age());
                        retention = Some(shortest);
                    }
                    streams.push(StreamMetrics::new(name, info));
                }
            }
        }
        let began = Instant::now();
        // Measure a request that every seat may send.
        connection.shard_map().await?;
        let round_trip = began.elapsed();
        let server = connection.client.server_info();
        Ok(Measures {
            server: server.server_name,
            version: server.version,
            cluster: server.cluster,
            round_trip_us: u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX),
            retention_secs: retention.map(|retention| retention.as_secs()),
            streams,
        })
    }

    /// Sets how long mail is kept. The server deletes older mail immediately. Returns the previous retention.
    pub async fn set_retention(&self, retention: Duration) -> Result<Duration, StoreError> {
        let doing = "change how long mail is kept";
        let mut before = Duration::ZERO;
        for shard in 0..self.current_map().await?.total() {
            let name = Stream::Mail.name(shard);
            let Some(mut info) = self.connection.info(&name).await? else { continue };
            before = before.max(info.max_age());
            let nanos = |time: Duration| json!(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            if let Some(config) = info.config.as_object_mut() {
                config.insert("max_age".into(), nanos(retention));
                // The server must not remember message ids for longer than it keeps the messages.
                config.insert("duplicate_window".into(), nanos(DEDUP.min(retention)));
            }
            let api = format!("$JS.API.STREAM.UPDATE.{name}");
            let _updated: StreamInfo = self.connection.command(&api, &info.config, doing).await?;
        }
        Ok(before)
    }
}

impl StreamMetrics {
    fn new(name: String, info: StreamInfo) -> Self {
        let replicas = info.number("num_replicas");
        let StreamState { messages, bytes, .. } = info.state;
        let (leader, others) = match info.cluster {
            Some(cluster) => (cluster.leader, cluster.replicas),
            None => (None, Vec::new()),
        };
        let behind = others.into_iter().filter(|other| !other.current || other.offline);
        let behind = behind.map(|StreamReplica { name, offline, lag, .. }| LaggingReplica {
            server: name,
            lag,
            offline,
        });
        Self { name, messages, bytes, replicas, leader, behind: behind.collect() }
    }
}

impl NatsConnection {
    /// Returns the server's description of a stream; `None` if the stream does not exist.
    pub(crate) async fn info(&self, name: &str) -> Result<Option<StreamInfo>, StoreError> {
        let doing = format!("inspect the stream {name}");
        let api = format!("$JS.API.STREAM.INFO.{name}");
        let answer = self.request(&api, None, &[], &doing).await?;
        match serde_json::from_slice::<Response<Value>>(&answer.payload) {
            Ok(Response::Err { error }) if error.error_code().0 == NO_STREAM => Ok(None),
            _ => self.parse_answer(&answer.payload, &doing).map(Some),
        }
    }

    /// Sends a request about a stream to the JetStream API. If the request reached a server, does not send it
    /// again, because a slow operation must not be started twice.
    pub(crate) async fn command<T: DeserializeOwned>(
        &self,
        api: &str,
        body: &Value,
        doing: &str,
    ) -> Result<T, StoreError> {
        if self.identity.role != CredentialRole::Admin {
            return Err(self.forbidden(doing, "only the admin of the organisation may do it"));
        }
        let payload = body.to_string().into_bytes();
        let answer = self.send_payload(api.to_owned(), payload, doing).await?;
        self.parse_answer(&answer, doing)
    }

    /// Sends a payload to the server. Returns the server's answer.
    pub(crate) async fn send_payload(
        &self,
        subject: String,
        payload: Vec<u8>,
        doing: &str,
    ) -> Result<Bytes, StoreError> {
        let payload = Bytes::from(payload);
        let began = Instant::now();
        loop {
            let request = Request::new().payload(payload.clone()).timeout(Some(LONG_TIMEOUT));
            match self.client.send_request(subject.clone(), request).await {
                Ok(answer) => return Ok(answer.payload),
                // In a cluster, this error can be temporary: perhaps the server to which this client is
                // connected does not know a subscription on another server yet. No server got the request, so a
                // retry is safe.
                Err(error)
                    if error.kind() == RequestErrorKind::NoResponders
                        && began.elapsed() < SUBSCRIPTION_DELAY =>
                {
                    tokio::time::sleep(SUBSCRIPTION_RETRY_PAUSE).await;
                }
                Err(error) => return Err(NatsError::Server(error.to_string()).while_doing(doing)),
            }
        }
    }

    /// Parses the server's answer. If the answer contains an error, returns the error.
    pub(crate) fn parse_answer<T: DeserializeOwned>(
        &self,
        answer: &[u8],
        doing: &str,
    ) -> Result<T, StoreError> {
        let malformed =
            |error: serde_json::Error| NatsError::Malformed(error.to_string()).while_doing(doing);
        // An answer can contain other fields beside the error.
        #[derive(Deserialize)]
        struct ErrorField {
            error: Option<async_nats::jetstream::Error>,
        }
        let parsed: ErrorField = serde_json::from_slice(answer).map_err(malformed)?;
        match parsed.error {
            Some(error) => Err(NatsError::Server(error.to_string()).while_doing(doing)),
            None => serde_json::from_slice(answer).map_err(malformed),
        }
    }
}
