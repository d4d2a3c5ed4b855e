//! Making the streams, and finding out how many shards there are.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Config, Republish, StorageType};
use brigade_core::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::Trouble;
use crate::layout::{DEDUP, LAYOUT, STATES, Stream, WAKE};
use crate::options::Settings;
use crate::write::Draft;

/// A server that is no cluster cannot keep a thing on three.
const NO_CLUSTER: u64 = 10074;
/// There is no such stream.
const NO_STREAM: u64 = 10059;
const DOING: &str = "find the streams of brigade";

/// What is written down about the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// Which layout.
    version: u32,
    /// How many shards.
    pub(crate) shards: u16,
}

/// The settings of a stream. What a seat could reach beyond its own subjects with is off: a rollup, for
/// one, may be of the whole stream, whatever subject it is written under.
pub(crate) fn config(stream: Stream, shard: u16, settings: &Settings, replicas: usize) -> Config {
    let keeps_mail = stream == Stream::Mail;
    let is_live = stream == Stream::Live;
    Config {
        name: stream.name(shard),
        subjects: stream.subjects(shard),
        // Pulses as well: what is in memory is no more after a restart, stream and all.
        storage: StorageType::File,
        num_replicas: replicas,
        max_age: if keeps_mail { settings.retention } else { Duration::ZERO },
        duplicate_window: DEDUP.min(if keeps_mail { settings.retention } else { DEDUP }),
        max_messages_per_subject: match stream {
            Stream::Mail => -1,
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

impl Engine {
    /// Whether the streams were made, as far as can be told: the last of them is.
    pub(crate) async fn has_streams(&self) -> Result<bool, StoreError> {
        let api = format!("$JS.API.STREAM.INFO.{}", Stream::Team.name(0));
        let answer = self.ask(&api, None, &[], DOING).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer.payload)
            .map_err(|error| Trouble::Garbled(error.to_string()).doing(DOING))?;
        let code = answer.pointer("/error/err_code").and_then(serde_json::Value::as_u64);
        Ok(code != Some(NO_STREAM))
    }

    /// How many shards there are; `None` if it was never written down.
    pub(crate) async fn layout(&self) -> Result<Option<Layout>, StoreError> {
        let doing = DOING;
        let stream = Stream::Team.name(0);
        let Some(found) = self.last(&stream, LAYOUT, doing).await? else { return Ok(None) };
        let garbled = |error: serde_json::Error| Trouble::Garbled(error.to_string()).doing(doing);
        Ok(Some(serde_json::from_slice(&found.payload).map_err(garbled)?))
    }

    /// Makes the streams that are not there, and changes those that are to these settings.
    pub(crate) async fn make_streams(&self, settings: &Settings) -> Result<Layout, StoreError> {
        let replicas = match settings.replicas {
            Some(replicas) => replicas,
            None if self.client.server_info().cluster.is_some() => 3,
            None => 1,
        };
        for shard in 0..settings.shards {
            for stream in Stream::ALL {
                self.make(&config(stream, shard, settings, replicas)).await?;
            }
        }
        // The layout is written last: who finds it finds the streams.
        let layout = Layout { version: 1, shards: settings.shards };
        let text = serde_json::to_vec(&layout).unwrap_or_default();
        let draft = Draft::new(LAYOUT.to_owned(), &text).onto(LAYOUT.to_owned(), 0);
        match self.write(draft, "write the layout down").await {
            Err(StoreError::Conflict) => self.layout().await?.ok_or_else(|| {
                Trouble::Garbled("a layout that is not there".into()).doing("read the layout")
            }),
            written => written.map(|_| layout),
        }
    }

    async fn make(&self, config: &Config) -> Result<(), StoreError> {
        let began = Instant::now();
        let doing = format!("make the stream {}", config.name);
        let body = serde_json::to_value(config).unwrap_or_default();
        loop {
            let api = format!("$JS.API.STREAM.CREATE.{}", config.name);
            let answer = self.ask(&api, None, body.to_string().as_bytes(), &doing).await?;
            let answer: serde_json::Value = serde_json::from_slice(&answer.payload)
                .map_err(|error| Trouble::Garbled(error.to_string()).doing(&doing))?;
            let Some(error) = answer.get("error") else { return Ok(()) };
            let said = error.get("description").and_then(|text| text.as_str()).unwrap_or_default();
            let code = error.get("err_code").and_then(serde_json::Value::as_u64);
            match code {
                // It is there, with other settings: those of whoever made it stay.
                Some(10058) => return Ok(()),
                Some(NO_CLUSTER) => return Err(Trouble::Said(said.to_owned()).doing(&doing)),
                _ => self.pause(began, self.patience, said, &doing).await?,
            }
        }
    }
}
