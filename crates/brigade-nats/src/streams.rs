//! Creates the streams, and reads and writes the map of shards.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Config, Republish, StorageType};
use brigade_core::store::StoreError;
use serde_json::Value;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::{DEDUP, LAYOUT, STATES, Stream, WAKE};
use crate::options::StreamSettings;
use crate::shard_map::{NEWEST_VERSION, ShardMap};
use crate::write::PendingWrite;

/// JetStream error: the server is not part of a cluster, so it cannot keep three replicas.
const NO_CLUSTER: u64 = 10074;
/// A limit of messages per subject that no sender reaches. The server stores a stream with such a limit in blocks of
/// 4 MB instead of 8 MB. To read a message that it does not hold in memory, it reads the whole block.
pub(crate) const NEVER_REACHED: i64 = 1_000_000_000;
/// JetStream error: stream not found.
pub(crate) const NO_STREAM: u64 = 10059;
const DOING: &str = "find brigade's streams";

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

    /// Returns the map of shards; `None` if no map has been stored yet.
    pub(crate) async fn shard_map(&self) -> Result<Option<ShardMap>, StoreError> {
        let stream = Stream::Team.name(0);
        let Some(stored) = self.last(&stream, LAYOUT, DOING).await? else { return Ok(None) };
        let malformed =
            |error: serde_json::Error| NatsError::Malformed(error.to_string()).while_doing(DOING);
        let mut map: ShardMap = serde_json::from_slice(&stored.payload).map_err(malformed)?;
        if map.version > NEWEST_VERSION {
            return Err(NatsError::NewerLayout { version: map.version }.while_doing(DOING));
        }
        map.seq = stored.seq;
        Ok(Some(map))
    }

    /// Writes the map of shards. Returns [`StoreError::Conflict`] if another client has written it since `map` was read.
    pub(crate) async fn write_shard_map(&self, mut map: ShardMap) -> Result<ShardMap, StoreError> {
        let text = serde_json::to_vec(&map).unwrap_or_default();
        let pending =
            PendingWrite::new(LAYOUT.to_owned(), &text).expect_last(LAYOUT.to_owned(), map.seq);
        map.seq = self.write(pending, "write the map of shards").await?;
        Ok(map)
    }

    /// Creates the missing streams. Existing streams keep their settings.
    pub(crate) async fn create_streams(
        &self,
        settings: &StreamSettings,
    ) -> Result<ShardMap, StoreError> {
        let replicas = match settings.replicas {
            Some(replicas) => replicas,
            None if self.client.server_info().cluster.is_some() => 3,
            None => 1,
        };
        for shard in 0..settings.shards {
            self.create_shard(shard, settings, replicas).await?;
        }
        // Write the map last. A client that can read the map can then rely on the streams.
        match self.write_shard_map(ShardMap::hashed(settings.shards)).await {
            Err(StoreError::Conflict) => self.shard_map().await?.ok_or_else(|| {
                NatsError::Malformed("the map of shards is missing".into()).while_doing(DOING)
            }),
            written => written,
        }
    }

    /// Creates the missing streams of one shard.
    pub(crate) async fn create_shard(
        &self,
        shard: u16,
        settings: &StreamSettings,
        replicas: usize,
    ) -> Result<(), StoreError> {
        for stream in Stream::ALL {
            self.create_stream(&config(stream, shard, settings, replicas)).await?;
        }
        Ok(())
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
