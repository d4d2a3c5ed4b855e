//! Reads from a stream with a consumer: all messages that match a filter, starting at a given sequence, or the last
//! message of each subject.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderMap, HeaderValue, Message};
use brigade_core::store::StoreError;
use bytes::Bytes;
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::SEATS_API;
use crate::layout::wake;

/// How many messages to request at once.
const BATCH_SIZE: u64 = 500;
/// How many messages to request at once while their size is unknown, if the read has a limit.
const FIRST_BATCH_SIZE: u64 = 32;
/// How long to wait for each message of a batch.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the server keeps an unused consumer.
const CONSUMER_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait until the server has created a consumer. After that, another consumer is requested.
const CREATE_TIMEOUT: Duration = Duration::from_secs(1);

/// A message that was read from a stream.
#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) seq: u64,
    pub(crate) subject: String,
    pub(crate) at: Timestamp,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl StoredMessage {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::as_str)
    }

    /// Returns the tokens of the subject that follow the team's name.
    pub(crate) fn tokens(&self) -> Vec<&str> {
        self.subject.split('.').skip(3).collect()
    }

    /// Parses a direct-get answer or a republished message. The server appends its own headers to the
    /// author's headers. An author can use the same header names, so only the last value of each header is used.
    pub(crate) fn from_headers(message: Message) -> Option<Self> {
        let headers = message.headers?;
        let value_of = |name: &str| headers.get_last(name).map(|value| value.as_str().to_owned());
        let seq = value_of("Nats-Sequence")?.parse().ok()?;
        let at = value_of("Nats-Time-Stamp")?.parse().ok()?;
        let subject = value_of("Nats-Subject")?;
        Some(Self { seq, subject, at, headers, payload: message.payload })
    }

    /// Parses a republished message. Returns `None` if the message arrived on a subject on which the
    /// stream does not republish it.
    pub(crate) fn from_wake(message: Message) -> Option<Self> {
        let subject = message.subject.to_string();
        Self::from_headers(message).filter(|stored| subject == wake(&stored.subject))
    }

    /// Parses a message from a consumer. Also returns its position among the messages that the consumer delivers.
    fn from_consumer(message: Message, context: &jetstream::Context) -> Option<(u64, Self)> {
        let message = jetstream::Message { message, context: context.clone() };
        let info = message.info().ok()?;
        let nanos = info.published.unix_timestamp_nanos();
        let (seq, at) = (info.stream_sequence, Timestamp::from_nanosecond(nanos).ok()?);
        let position = info.consumer_sequence;
        let message = message.message;
        let (subject, payload) = (message.subject.to_string(), message.payload);
        let headers = message.headers.unwrap_or_default();
        Some((position, Self { seq, subject, at, headers, payload }))
    }
}

/// Which of the messages that match a filter to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadRange {
    /// All messages, starting at this sequence.
    From(u64),
    /// The last message of each subject.
    Last,
    /// The last message of each subject, without its payload.
    LastHeaders,
}

/// A consumer that the server has created.
#[derive(Deserialize)]
pub(crate) struct StreamConsumer {
    /// The consumer's name.
    pub(crate) name: String,
    /// How many messages the consumer will deliver, according to the server that runs it.
    pub(crate) num_pending: u64,
    #[serde(default)]
    cluster: Option<ConsumerCluster>,
}

#[derive(Deserialize)]
struct ConsumerCluster {
    #[serde(default)]
    leader: Option<String>,
}

impl StreamConsumer {
    /// Returns the server of the cluster that runs the consumer; `None` if there is no cluster.
    pub(crate) fn server(&self) -> Option<&str> {
        self.cluster.as_ref()?.leader.as_deref()
    }
}

/// How much a read may return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimit {
    /// The number of messages to keep.
    pub(crate) messages: usize,
    /// The size of the messages to keep.
    pub(crate) bytes: usize,
    /// The number of messages to look at, including those that are not kept.
    pub(crate) examined: usize,
}

impl ReadLimit {
    const NONE: Self = Self { messages: usize::MAX, bytes: usize::MAX, examined: usize::MAX };
}

/// The results of a read.
pub(crate) struct ReadResult<T> {
    pub(crate) items: Vec<T>,
    /// Sequence of the last message that was read.
    pub(crate) last: u64,
    limit: ReadLimit,
    examined: usize,
    /// The size of the messages that were kept.
    bytes: usize,
    /// The size of all messages that were read.
    examined_bytes: usize,
}

impl<T> ReadResult<T> {
    fn new(limit: ReadLimit) -> Self {
        Self { items: Vec::new(), last: 0, limit, examined: 0, bytes: 0, examined_bytes: 0 }
    }

    /// Whether the read stopped because of its limit. There may be further messages.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.limit.messages
            || self.bytes >= self.limit.bytes
            || self.examined >= self.limit.examined
    }

    /// Returns how many messages to request next: not many more than fit, judged by the size of the earlier ones.
    fn batch_size(&self) -> u64 {
        if self.limit.bytes == usize::MAX {
            return BATCH_SIZE;
        }
        let Some(average) = self.examined_bytes.checked_div(self.examined) else {
            return FIRST_BATCH_SIZE;
        };
        let fits = self.limit.bytes.saturating_sub(self.bytes) / average.max(1);
        u64::try_from(fits).unwrap_or(BATCH_SIZE).clamp(1, BATCH_SIZE)
    }

    fn add(&mut self, stored: StoredMessage, map: &impl Fn(StoredMessage) -> Option<T>) {
        self.last = stored.seq;
        self.examined += 1;
        let size = stored.payload.len();
        self.examined_bytes += size;
        if let Some(item) = map(stored) {
            self.bytes += size;
            self.items.push(item);
        }
    }
}

impl NatsConnection {
    /// Reads the messages that match a filter, in order.
    pub(crate) async fn read(
        &self,
        stream: &str,
        filter: &str,
        range: ReadRange,
        doing: &str,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.read_mapped(stream, filter, range, doing, |stored| stored).await
    }

    /// Like `read`, but converts each message as soon as it arrives. That saves memory: a [`StoredMessage`] holds
    /// its headers and its network buffer, and both are much larger than its content.
    pub(crate) async fn read_mapped<T: Send>(
        &self,
        stream: &str,
        filter: &str,
        range: ReadRange,
        doing: &str,
        map: impl Fn(StoredMessage) -> T + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let map = |stored| Some(map(stored));
        Ok(self.read_limited(stream, filter, range, ReadLimit::NONE, doing, map).await?.items)
    }

    /// Like `read_mapped`, but keeps only the messages for which `map` returns a value, and stops at a limit.
    pub(crate) async fn read_limited<T: Send>(
        &self,
        stream: &str,
        filter: &str,
        range: ReadRange,
        limit: ReadLimit,
        doing: &str,
        map: impl Fn(StoredMessage) -> Option<T> + Send + Sync,
    ) -> Result<ReadResult<T>, StoreError> {
        let began = Instant::now();
        let mut found = ReadResult::new(limit);
        let mut range = range;
        let mut replicas = 1;
        loop {
            let before = found.examined;
            let mut min_last = self.floor(filter);
            if min_last == 0 {
                // This process knows no message that matches the filter. The server that runs the consumer may
                // still lack messages. But a server that lacks messages does not answer a direct get. So `last`
                // returns the true last message, and the loop can tell whether the consumer delivered it.
                min_last = self.last(stream, filter, doing).await?.map_or(0, |last| last.seq);
            }
            let consumer = self.create_consumer(stream, filter, range, replicas, doing).await?;
            let complete = match consumer {
                Some(consumer) => {
                    let complete = self.fetch(stream, &consumer, doing, &map, &mut found).await;
                    self.delete_consumer(stream, &consumer).await;
                    complete?
                }
                None => false,
            };
            // The consumer may be on an unreachable server. In the next attempt, give it as many replicas as the
            // stream has.
            replicas = 0;
            min_last = min_last.max(self.floor(filter));
            let last = found.last;
            let enough = match range {
                ReadRange::From(from) => last >= min_last || min_last < from,
                _ => last >= min_last,
            };
            if found.is_full() || (complete && enough) {
                return Ok(found);
            }
            match range {
                // Continue after the last message that was read.
                ReadRange::From(_) if last > 0 => range = ReadRange::From(last + 1),
                ReadRange::From(_) => {}
                // A read of only the last messages cannot be continued after an interruption. Start again, and
                // read all messages instead.
                _ => {
                    found = ReadResult::new(limit);
                    range = ReadRange::From(1);
                }
            }
            if found.examined == before {
                self.wait_before_retry(began, self.retry_limit, "messages are missing", doing)
                    .await?;
            }
        }
    }

    /// Creates a consumer. Returns `None` if the caller should try again.
    pub(crate) async fn create_consumer(
        &self,
        stream: &str,
        filter: &str,
        range: ReadRange,
        replicas: u8,
        doing: &str,
    ) -> Result<Option<StreamConsumer>, StoreError> {
        // Other seats cannot guess this random name, so they cannot read from this consumer.
        let name = uuid::Uuid::new_v4().simple().to_string();
        let mut config = json!({
            "name": name, "ack_policy": "none", "filter_subject": filter,
            "mem_storage": true, "num_replicas": replicas, "replay_policy": "instant",
            "inactive_threshold": u64::try_from(CONSUMER_IDLE_TIMEOUT.as_nanos()).unwrap_or(u64::MAX),
        });
        let more = match range {
            ReadRange::From(from) => {
                json!({ "deliver_policy": "by_start_sequence", "opt_start_seq": from.max(1) })
            }
            ReadRange::Last => json!({ "deliver_policy": "last_per_subject" }),
            ReadRange::LastHeaders => {
                json!({ "deliver_policy": "last_per_subject", "headers_only": true })
            }
        };
        if let (Some(config), serde_json::Value::Object(more)) = (config.as_object_mut(), more) {
            config.extend(more);
        }
        let body = json!({ "stream_name": stream, "config": config, "action": "create" });
        let api = format!("{}.CONSUMER.CREATE.{stream}.{name}.{filter}", self.identity.api_prefix);
        self.api_request(&api, &body, doing).await
    }

    /// Deletes a consumer, because a stream can have only a thousand consumers at a time. If the request is lost,
    /// the server deletes the consumer after [`CONSUMER_IDLE_TIMEOUT`].
    pub(crate) async fn delete_consumer(&self, stream: &str, consumer: &StreamConsumer) {
        let StreamConsumer { name, .. } = consumer;
        let forget = format!("{}.CONSUMER.DELETE.{stream}.{name}", self.identity.api_prefix);
        let _deleted_when_idle = self.client.publish(forget, Bytes::new()).await;
    }

    /// Reads the messages that a consumer delivers, up to the limit. Returns `false` if a message is missing.
    async fn fetch<T>(
        &self,
        stream: &str,
        consumer: &StreamConsumer,
        doing: &str,
        map: &impl Fn(StoredMessage) -> Option<T>,
        found: &mut ReadResult<T>,
    ) -> Result<bool, StoreError> {
        let context = jetstream::new(self.client.clone());
        let (name, mut left) = (&consumer.name, consumer.num_pending);
        let mut count = 0;
        while left > 0 && !found.is_full() {
            let batch = left.min(found.batch_size());
            let inbox = self.client.new_inbox();
            let broken = |error: &dyn std::fmt::Display| {
                NatsError::Server(error.to_string()).while_doing(doing)
            };
            let mut messages =
                self.client.subscribe(inbox.clone()).await.map_err(|error| broken(&error))?;
            let next = format!("{}.CONSUMER.MSG.NEXT.{stream}.{name}", self.identity.api_prefix);
            // For each request from a seat, the server forwards only one answer. A seat therefore requests each
            // message separately.
            let is_seat = self.identity.api_prefix == SEATS_API;
            let (asks, each) = if is_seat { (batch, 1) } else { (1, batch) };
            let expires = u64::try_from(FETCH_TIMEOUT.as_nanos()).unwrap_or(0);
            let ask = Bytes::from(json!({ "batch": each, "expires": expires }).to_string());
            for _ in 0..asks {
                let (next, inbox) = (next.clone(), inbox.clone());
                let sent = self.client.publish_with_reply(next, inbox, ask.clone()).await;
                sent.map_err(|error| broken(&error))?;
            }
            for _ in 0..batch {
                let Ok(Some(message)) = tokio::time::timeout(FETCH_TIMEOUT, messages.next()).await
                else {
                    return Ok(false);
                };
                // A status means an error from the server. A stored message can also have a status header, because
                // its author may set one. Only stored messages have a reply subject.
                if message.status.is_some() && message.reply.is_none() {
                    return Ok(false);
                }
                let Some((position, stored)) = StoredMessage::from_consumer(message, &context)
                else {
                    return Ok(false);
                };
                // A gap in the positions means that a message was lost between two servers.
                count += 1;
                if position != count {
                    return Ok(false);
                }
                found.add(stored, map);
                left -= 1;
            }
        }
        Ok(true)
    }

    /// Sends a request to the JetStream API once. Returns `None` if the caller should try again.
    async fn api_request<T: serde::de::DeserializeOwned>(
        &self,
        subject: &str,
        body: &serde_json::Value,
        doing: &str,
    ) -> Result<Option<T>, StoreError> {
        let body = body.to_string();
        let asked = self.request_once(subject, None, body.as_bytes(), doing);
        let answer = match tokio::time::timeout(CREATE_TIMEOUT, asked).await {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Err(refused)) => return Err(refused),
            Ok(Ok(Err(_))) | Err(_) => return Ok(None),
        };
        match serde_json::from_slice(&answer.payload) {
            Ok(Response::Ok(consumer)) => Ok(Some(consumer)),
            Ok(Response::Err { error }) if error.code() == 503 => Ok(None),
            Ok(Response::Err { error }) => {
                Err(NatsError::Server(error.to_string()).while_doing(doing))
            }
            Err(error) => Err(NatsError::Malformed(error.to_string()).while_doing(doing)),
        }
    }
}
