//! Creates the streams and reads the number of shards.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Config, Republish, StorageType};
use brigade_core::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::{DEDUP, LAYOUT, STATES, Stream, WAKE};
use crate::options::StreamSettings;
use crate::write::PendingWrite;

/// JetStream error: the server is not part of a cluster, so it cannot keep three replicas.
const NO_CLUSTER: u64 = 10074;
/// A limit of messages per subject that no sender reaches. The server stores a stream with such a limit in blocks of
/// 4 MB instead of 8 MB. To read a message that it does not hold in memory, it reads the whole block.
pub(crate) const NEVER_REACHED: i64 = 1_000_000_000;
/// JetStream error: stream not found.
pub(crate) const NO_STREAM: u64 = 10059;
const DOING: &str = "find brigade's streams";

/// The stored description of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLayout {
    /// Version of the layout.
    version: u32,
    /// Number of shards.
    pub(crate) shards: u16,
}

/// Returns the settings of a stream. Some features are off, because a seat could use them to change other subjects
/// than its own. For example, a rollup message on any subject can replace all messages of the stream.
pub(crate) fn config(
    stream: Stream,
    shard: u16,
    settings: &StreamSettings,
    replicas: usize,
) -> Config {
    let keeps_mail = stream == Stream::Mail;
    let is_live = stream == Stream::Live;
    Config {
        name: stream.name(shard),
        subjects: stream.subjects(shard),
        // Even pulses are stored on disk, because a restart of the server deletes streams in memory.
        storage: StorageType::File,
        num_replicas: replicas,
        max_age: if keeps_mail { settings.retention } else { Duration::ZERO },
        duplicate_window: DEDUP.min(if keeps_mail { settings.retention } else { DEDUP }),
        max_messages_per_subject: match stream {
            Stream::Mail => NEVER_REACHED,
            Stream::Live | Stream::Notes => 1,
            Stream::Board | Stream::Team => STATES,
        },
        allow_direct: true,
        allow_message_ttl: is_live,
        republish: (!is_live && stream != Stream::Notes).then(|| Republish {
            source: ">".into(),
            destination: format!("{WAKE}.>"),
            headers_only: false,
        }),
        ..Config::default()
    }
}

impl NatsConnection {
    /// Whether the streams exist. Checks only the stream that is created last.
    pub(crate) async fn has_streams(&self) -> Result<bool, StoreError> {
        let answer = self.stream_info(&Stream::Team.name(0), DOING).await?;
        let code = answer.pointer("/error/err_code").and_then(Value::as_u64);
        Ok(code != Some(NO_STREAM))
    }

    /// Returns the server's answer to a request for a stream's description. The answer may be an error.
    pub(crate) async fn stream_info(&self, name: &str, doing: &str) -> Result<Value, StoreError> {
        let api = format!("$JS.API.STREAM.INFO.{name}");
        let answer = self.request(&api, None, &[], doing).await?;
        serde_json::from_slice(&answer.payload)
            .map_err(|error| NatsError::Malformed(error.to_string()).while_doing(doing))
    }

    /// Returns the stored layout; `None` if no layout has been stored yet.
    pub(crate) async fn layout(&self) -> Result<Option<StoredLayout>, StoreError> {
        let stream = Stream::Team.name(0);
        let Some(stored) = self.last(&stream, LAYOUT, DOING).await? else { return Ok(None) };
        let malformed =
            |error: serde_json::Error| NatsError::Malformed(error.to_string()).while_doing(DOING);
        Ok(Some(serde_json::from_slice(&stored.payload).map_err(malformed)?))
    }

    /// Creates the missing streams. Existing streams keep their settings.
    pub(crate) async fn create_streams(
        &self,
        settings: &StreamSettings,
    ) -> Result<StoredLayout, StoreError> {
        let replicas = match settings.replicas {
            Some(replicas) => replicas,
            None if self.client.server_info().cluster.is_some() => 3,
            None => 1,
        };
        for shard in 0..settings.shards {
            for stream in Stream::ALL {
                self.create_stream(&config(stream, shard, settings, replicas)).await?;
            }
        }
        // Write the layout last. A client that can read the layout can then rely on the streams.
        let layout = StoredLayout { version: 1, shards: settings.shards };
        let text = serde_json::to_vec(&layout).unwrap_or_default();
        let pending = PendingWrite::new(LAYOUT.to_owned(), &text).expect_last(LAYOUT.to_owned(), 0);
        match self.write(pending, "write the layout").await {
            Err(StoreError::Conflict) => self.layout().await?.ok_or_else(|| {
                NatsError::Malformed("the layout is missing".into()).while_doing("read the layout")
            }),
            written => written.map(|_| layout),
        }
    }

    async fn create_stream(&self, config: &Config) -> Result<(), StoreError> {
        let began = Instant::now();
        let doing = format!("create the stream {}", config.name);
        let body = serde_json::to_value(config).unwrap_or_default();
        loop {
            let api = format!("$JS.API.STREAM.CREATE.{}", config.name);
            let answer = self.request(&api, None, body.to_string().as_bytes(), &doing).await?;
            let answer: Value = serde_json::from_slice(&answer.payload)
                .map_err(|error| NatsError::Malformed(error.to_string()).while_doing(&doing))?;
            let Some(error) = answer.get("error") else { return Ok(()) };
            let description =
                error.get("description").and_then(|text| text.as_str()).unwrap_or_default();
            let code = error.get("err_code").and_then(Value::as_u64);
            match code {
                // 10058: the stream exists with other settings. It keeps those settings.
                Some(10058) => return Ok(()),
                Some(NO_CLUSTER) => {
                    return Err(NatsError::Server(description.to_owned()).while_doing(&doing));
                }
                _ => self.wait_before_retry(began, self.retry_limit, description, &doing).await?,
            }
        }
    }
}
