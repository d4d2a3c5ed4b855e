//! How the engine is, for those who run it.
//!
//! ```no_run
//! use brigade_core::store::StoreError;
//! use brigade_nats::NatsStore;
//!
//! async fn look(store: &NatsStore) -> Result<(), StoreError> {
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

use crate::engine::Engine;
use crate::error::Trouble;
use crate::identity::Role;
use crate::layout::{DEDUP, Stream};
use crate::store::NatsStore;

/// How long the server may take for something big.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// For how long servers may take to hear of each other's listeners, and how soon that is tried again.
const HEARD_OF: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
/// There is no such stream.
const NO_STREAM: u64 = 10059;

/// How the engine is.
#[derive(Clone, Debug, Serialize)]
pub struct Measures {
    /// The name of the server this process is connected to.
    pub server: String,
    /// Its version.
    pub version: String,
    /// The cluster it is in, if it is in one.
    pub cluster: Option<String>,
    /// How long an answer takes, in microseconds.
    pub round_trip_us: u64,
    /// For how long mail is kept, in seconds; `None` where nobody says.
    pub retention_secs: Option<u64>,
    /// The streams; empty for a seat, which may not ask for them.
    pub streams: Vec<StreamMeasures>,
}

/// How a stream is.
#[derive(Clone, Debug, Serialize)]
pub struct StreamMeasures {
    /// Its name.
    pub name: String,
    /// How many messages are in it.
    pub messages: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// On how many servers it stands.
    pub replicas: u64,
    /// Which server leads it; `None` while there is none, and nothing can be written.
    pub leader: Option<String>,
    /// The servers that are not up to date, and by how many writes.
    pub behind: Vec<Behind>,
}

/// A server that is not up to date.
#[derive(Clone, Debug, Serialize)]
pub struct Behind {
    /// Its name.
    pub server: String,
    /// Writes it has not got yet.
    pub lag: u64,
    /// Whether it does not answer at all.
    pub offline: bool,
}

/// What is in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How many messages.
    pub messages: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// The number of the first.
    pub first_seq: u64,
    /// When the first was stored.
    #[serde(default)]
    pub first_ts: Option<Timestamp>,
    /// The number of the last.
    pub last_seq: u64,
    /// When the last was stored.
    #[serde(default)]
    pub last_ts: Option<Timestamp>,
    /// How many messages between them are gone.
    #[serde(default, skip_serializing_if = "is_none")]
    pub num_deleted: u64,
    /// How many readers it has.
    #[serde(default)]
    pub consumer_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What the server tells of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Info {
    pub(crate) config: Value,
    pub(crate) state: State,
    #[serde(default)]
    cluster: Option<Cluster>,
}

#[derive(Debug, Deserialize)]
struct Cluster {
    #[serde(default)]
    leader: Option<String>,
    #[serde(default)]
    replicas: Vec<Replica>,
}

#[derive(Debug, Deserialize)]
struct Replica {
    name: String,
    #[serde(default)]
    current: bool,
    #[serde(default)]
    offline: bool,
    #[serde(default)]
    lag: u64,
}

impl Info {
    fn number(&self, key: &str) -> u64 {
        self.config.get(key).and_then(Value::as_u64).unwrap_or_default()
    }

    /// The servers the stream stands on, but those that do not answer at all.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &str> {
        let cluster = self.cluster.iter();
        cluster.flat_map(|cluster| {
            let others = cluster.replicas.iter().filter(|replica| !replica.offline);
            cluster.leader.as_deref().into_iter().chain(others.map(|replica| replica.name.as_str()))
        })
    }

    fn max_age(&self) -> Duration {
        Duration::from_nanos(self.number("max_age"))
    }
}

impl NatsStore {
    /// How the engine is, as far as this seat may know.
    pub async fn measures(&self) -> Result<Measures, StoreError> {
        let engine = &self.engine;
        let mut retention =
            (engine.identity.role != Role::Admin).then_some(engine.identity.settings.retention);
        let mut streams = Vec::new();
        if engine.identity.role == Role::Admin {
            for shard in 0..self.shards {
                for stream in Stream::ALL {
                    let name = stream.name(shard);
                    let Some(info) = engine.info(&name).await? else { continue };
                    if stream == Stream::Mail && !info.max_age().is_zero() {
                        let least = retention.unwrap_or(Duration::MAX).min(info.max_age());
                        retention = Some(least);
                    }
                    streams.push(StreamMeasures::of(name, info));
                }
            }
        }
        let began = Instant::now();
        // A question that everybody may ask.
        engine.layout().await?;
        let round_trip = began.elapsed();
        let server = engine.client.server_info();
        Ok(Measures {
            server: server.server_name,
            version: server.version,
            cluster: server.cluster,
            round_trip_us: u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX),
            retention_secs: retention.map(|retention| retention.as_secs()),
            streams,
        })
    }

    /// Keeps mail for so long from now on. What is older goes at once. Tells how long it was kept.
    pub async fn set_retention(&self, retention: Duration) -> Result<Duration, StoreError> {
        let doing = "change how long mail is kept";
        let mut before = Duration::ZERO;
        for shard in 0..self.shards {
            let name = Stream::Mail.name(shard);
            let Some(mut info) = self.engine.info(&name).await? else { continue };
            before = before.max(info.max_age());
            let nanos = |time: Duration| json!(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            if let Some(config) = info.config.as_object_mut() {
                config.insert("max_age".into(), nanos(retention));
                // A server that forgets the mail need not know its ids for longer.
                config.insert("duplicate_window".into(), nanos(DEDUP.min(retention)));
            }
            let api = format!("$JS.API.STREAM.UPDATE.{name}");
            let _updated: Info = self.engine.command(&api, &info.config, doing).await?;
        }
        Ok(before)
    }
}

impl StreamMeasures {
    fn of(name: String, info: Info) -> Self {
        let replicas = info.number("num_replicas");
        let State { messages, bytes, .. } = info.state;
        let (leader, others) = match info.cluster {
            Some(cluster) => (cluster.leader, cluster.replicas),
            None => (None, Vec::new()),
        };
        let behind = others.into_iter().filter(|other| !other.current || other.offline);
        let behind =
            behind.map(|Replica { name, offline, lag, .. }| Behind { server: name, lag, offline });
        Self { name, messages, bytes, replicas, leader, behind: behind.collect() }
    }
}

impl Engine {
    /// What the server tells of a stream; `None` if there is none.
    pub(crate) async fn info(&self, name: &str) -> Result<Option<Info>, StoreError> {
        let doing = format!("look at the stream {name}");
        let api = format!("$JS.API.STREAM.INFO.{name}");
        let answer = self.ask(&api, None, &[], &doing).await?;
        match serde_json::from_slice::<Response<Value>>(&answer.payload) {
            Ok(Response::Err { error }) if error.error_code().0 == NO_STREAM => Ok(None),
            _ => self.understood(&answer.payload, &doing).map(Some),
        }
    }

    /// Asks the server to do something to a stream. Once: what takes long must not be begun twice.
    pub(crate) async fn command<T: DeserializeOwned>(
        &self,
        api: &str,
        body: &Value,
        doing: &str,
    ) -> Result<T, StoreError> {
        if self.identity.role != Role::Admin {
            return Err(StoreError::Forbidden { doing: doing.to_owned() });
        }
        let payload = body.to_string().into_bytes();
        let answer = self.deliver(api.to_owned(), payload, doing).await?;
        self.understood(&answer, doing)
    }

    /// Gives the server something, and waits for its answer.
    pub(crate) async fn deliver(
        &self,
        subject: String,
        payload: Vec<u8>,
        doing: &str,
    ) -> Result<Bytes, StoreError> {
        let payload = Bytes::from(payload);
        let began = Instant::now();
        loop {
            let request = Request::new().payload(payload.clone()).timeout(Some(LONG));
            match self.client.send_request(subject.clone(), request).await {
                Ok(answer) => return Ok(answer.payload),
                // In a cluster the server that listens may be another one, of which ours has not heard yet.
                // Nobody has had it, so it can be given again.
                Err(error)
                    if error.kind() == RequestErrorKind::NoResponders
                        && began.elapsed() < HEARD_OF =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(Trouble::Said(error.to_string()).doing(doing)),
            }
        }
    }

    /// What the server has answered, if it has done it.
    pub(crate) fn understood<T: DeserializeOwned>(
        &self,
        answer: &[u8],
        doing: &str,
    ) -> Result<T, StoreError> {
        let garbled = |error: serde_json::Error| Trouble::Garbled(error.to_string()).doing(doing);
        // What went wrong stands beside what else an answer may hold.
        #[derive(Deserialize)]
        struct Said {
            error: Option<async_nats::jetstream::Error>,
        }
        let said: Said = serde_json::from_slice(answer).map_err(garbled)?;
        match said.error {
            Some(error) => Err(Trouble::Said(error.to_string()).doing(doing)),
            None => serde_json::from_slice(answer).map_err(garbled),
        }
    }
}
