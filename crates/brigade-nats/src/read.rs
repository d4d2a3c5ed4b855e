//! Reads: the last message on a subject, or all messages from a sequence on.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderMap, HeaderValue, Message, StatusCode};
use brigade_core::store::StoreError;
use bytes::Bytes;
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::engine::Engine;
use crate::error::Trouble;
use crate::identity::SEATS_API;
use crate::layout::{matches, wake};

/// How many messages to request at once.
const BATCH: u64 = 500;
/// Timeout for a message of a batch.
const WAIT: Duration = Duration::from_secs(3);
/// How long the server keeps an unused consumer.
const IDLE: Duration = Duration::from_secs(5);
/// How long creating a consumer may take before trying another one.
const MADE: Duration = Duration::from_secs(1);
/// How often to retry immediately when a replica is behind (another replica may answer), and the wait after that.
const AT_ONCE: usize = 2;
const CATCH_UP: Duration = Duration::from_millis(2);

/// A message read from a stream.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) subject: String,
    pub(crate) at: Timestamp,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Stored {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::as_str)
    }

    /// The tokens of the subject after the team.
    pub(crate) fn tokens(&self) -> Vec<&str> {
        self.subject.split('.').skip(3).collect()
    }

    /// Parses a direct-get answer or a republished message. The server appends its headers after the author's,
    /// which can have the same names, so the last value of each header counts.
    pub(crate) fn told(message: Message) -> Option<Self> {
        let headers = message.headers?;
        let word = |name: &str| headers.get_last(name).map(|value| value.as_str().to_owned());
        let seq = word("Nats-Sequence")?.parse().ok()?;
        let at = word("Nats-Time-Stamp")?.parse().ok()?;
        let subject = word("Nats-Subject")?;
        Some(Self { seq, subject, at, headers, payload: message.payload })
    }

    /// Parses a republished message. Returns `None` if it does not come from the stream: its subject must match
    /// the stored one.
    pub(crate) fn heard(message: Message) -> Option<Self> {
        let subject = message.subject.to_string();
        Self::told(message).filter(|stored| subject == wake(&stored.subject))
    }

    /// Parses a message from a consumer. Also returns its position in the consumer's deliveries.
    fn fetched(message: Message, context: &jetstream::Context) -> Option<(u64, Self)> {
        let message = jetstream::Message { message, context: context.clone() };
        let info = message.info().ok()?;
        let nanos = info.published.unix_timestamp_nanos();
        let (seq, at) = (info.stream_sequence, Timestamp::from_nanosecond(nanos).ok()?);
        let nth = info.consumer_sequence;
        let message = message.message;
        let (subject, payload) = (message.subject.to_string(), message.payload);
        let headers = message.headers.unwrap_or_default();
        Some((nth, Self { seq, subject, at, headers, payload }))
    }
}

/// Which messages of a filter to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// All messages from this sequence on.
    From(u64),
    /// The last message of each subject.
    Last,
    /// The last message of each subject, without its payload.
    LastHeaders,
}

/// A consumer that the server has created.
#[derive(Deserialize)]
pub(crate) struct Made {
    /// The consumer's name.
    pub(crate) name: String,
    /// How many messages it has to deliver, as known to the server it runs on.
    pub(crate) num_pending: u64,
    #[serde(default)]
    cluster: Option<On>,
}

#[derive(Deserialize)]
struct On {
    #[serde(default)]
    leader: Option<String>,
}

impl Made {
    /// The server the consumer runs on, in a cluster.
    pub(crate) fn server(&self) -> Option<&str> {
        self.cluster.as_ref()?.leader.as_deref()
    }
}

/// The results of a read so far.
struct Found<T> {
    kept: Vec<T>,
    /// Sequence of the last message read.
    last: u64,
}

impl Engine {
    /// The last message on a subject (wildcards allowed), never older than what this process has written.
    /// Answers of replicas that are behind are retried.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
        doing: &str,
    ) -> Result<Option<Stored>, StoreError> {
        self.last_beyond(stream, subject, 0, doing).await
    }

    /// Like `last`, for a caller that has everything up to `has`: the answer may be older than that.
    pub(crate) async fn last_beyond(
        &self,
        stream: &str,
        subject: &str,
        has: u64,
        doing: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let began = Instant::now();
        let least = self.least(subject);
        let mut asked = 0;
        let api = format!("{}.DIRECT.GET.{stream}.{subject}", self.identity.api_prefix);
        loop {
            let answer = self.ask(&api, None, &[], doing).await?;
            let found = match answer.status {
                Some(StatusCode::NOT_FOUND) => None,
                Some(status) if status.as_u16() >= 400 => {
                    let said = answer.description.unwrap_or_default();
                    return Err(Trouble::Said(format!("{status} {said}")).doing(doing));
                }
                _ => {
                    let garbled = || Trouble::Garbled("the message has another subject".into());
                    let found = Stored::told(answer);
                    let found = found.filter(|found| matches(subject, &found.subject));
                    Some(found.ok_or_else(|| garbled().doing(doing))?)
                }
            };
            if found.as_ref().map_or(0, |found| found.seq).max(has) >= least {
                return Ok(found);
            }
            if began.elapsed() > self.patience {
                let late = Trouble::Said("the replica that answers is still behind".into());
                return Err(late.doing(doing));
            }
            asked += 1;
            if asked > AT_ONCE {
                tokio::time::sleep(CATCH_UP).await;
            }
        }
    }

    /// Reads the messages that match a filter, in order.
    pub(crate) async fn read(
        &self,
        stream: &str,
        filter: &str,
        which: Which,
        doing: &str,
    ) -> Result<Vec<Stored>, StoreError> {
        self.read_as(stream, filter, which, doing, |stored| stored).await
    }

    /// Like `read`, but maps each message at once. A message keeps its headers and its network buffer in
    /// memory, which are much larger than its content.
    pub(crate) async fn read_as<T: Send>(
        &self,
        stream: &str,
        filter: &str,
        which: Which,
        doing: &str,
        keep: impl Fn(Stored) -> T + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let began = Instant::now();
        let mut found = Found { kept: Vec::new(), last: 0 };
        let mut which = which;
        let mut replicas = 1;
        loop {
            let before = found.kept.len();
            let mut least = self.least(filter);
            if least == 0 {
                // This process has no floor for the filter. A consumer may run on a server that is still
                // catching up and would miss messages; such a server does not answer a direct get.
                least = self.last(stream, filter, doing).await?.map_or(0, |last| last.seq);
            }
            let made = self.reader(stream, filter, which, replicas, doing).await?;
            let whole = match made {
                Some(made) => {
                    let whole = self.fetch(stream, &made, doing, &keep, &mut found).await;
                    self.forget(stream, &made).await;
                    whole?
                }
                None => false,
            };
            // The consumer may have been placed on an unreachable server. Next time use the stream's replica count.
            replicas = 0;
            least = least.max(self.least(filter));
            let last = found.last;
            let enough = match which {
                Which::From(from) => last >= least || least < from,
                _ => last >= least,
            };
            if whole && enough {
                return Ok(found.kept);
            }
            match which {
                // Continue after the messages that were read.
                Which::From(_) if last > 0 => which = Which::From(last + 1),
                Which::From(_) => {}
                // Restart with all messages: they include the last ones, and that read can be continued.
                _ => {
                    found = Found { kept: Vec::new(), last: 0 };
                    which = Which::From(1);
                }
            }
            if found.kept.len() == before {
                self.pause(began, self.patience, "messages are missing", doing).await?;
            }
        }
    }

    /// Creates a consumer. `None` means: try again.
    pub(crate) async fn reader(
        &self,
        stream: &str,
        filter: &str,
        which: Which,
        replicas: u8,
        doing: &str,
    ) -> Result<Option<Made>, StoreError> {
        // The random name keeps other seats from reading with this consumer.
        let name = uuid::Uuid::new_v4().simple().to_string();
        let mut config = json!({
            "name": name, "ack_policy": "none", "filter_subject": filter,
            "mem_storage": true, "num_replicas": replicas, "replay_policy": "instant",
            "inactive_threshold": u64::try_from(IDLE.as_nanos()).unwrap_or(u64::MAX),
        });
        let more = match which {
            Which::From(from) => {
                json!({ "deliver_policy": "by_start_sequence", "opt_start_seq": from.max(1) })
            }
            Which::Last => json!({ "deliver_policy": "last_per_subject" }),
            Which::LastHeaders => {
                json!({ "deliver_policy": "last_per_subject", "headers_only": true })
            }
        };
        if let (Some(config), serde_json::Value::Object(more)) = (config.as_object_mut(), more) {
            config.extend(more);
        }
        let body = json!({ "stream_name": stream, "config": config, "action": "create" });
        let api = format!("{}.CONSUMER.CREATE.{stream}.{name}.{filter}", self.identity.api_prefix);
        self.ask_api(&api, &body, doing).await
    }

    /// Deletes a consumer: a stream allows a thousand at once. If the request is lost, the server deletes the
    /// consumer after [`IDLE`].
    pub(crate) async fn forget(&self, stream: &str, made: &Made) {
        let Made { name, .. } = made;
        let forget = format!("{}.CONSUMER.DELETE.{stream}.{name}", self.identity.api_prefix);
        let _it_will = self.client.publish(forget, Bytes::new()).await;
    }

    /// Reads everything a consumer delivers. Returns whether it was complete.
    async fn fetch<T>(
        &self,
        stream: &str,
        made: &Made,
        doing: &str,
        keep: &impl Fn(Stored) -> T,
        found: &mut Found<T>,
    ) -> Result<bool, StoreError> {
        let context = jetstream::new(self.client.clone());
        let (name, mut left) = (&made.name, made.num_pending);
        let mut count = 0;
        while left > 0 {
            let batch = left.min(BATCH);
            let inbox = self.client.new_inbox();
            let broken =
                |error: &dyn std::fmt::Display| Trouble::Said(error.to_string()).doing(doing);
            let mut messages =
                self.client.subscribe(inbox.clone()).await.map_err(|error| broken(&error))?;
            let next = format!("{}.CONSUMER.MSG.NEXT.{stream}.{name}", self.identity.api_prefix);
            // The server lets a seat's request have only one answer, so a seat requests each message by itself.
            let is_seat = self.identity.api_prefix == SEATS_API;
            let (asks, each) = if is_seat { (batch, 1) } else { (1, batch) };
            let expires = u64::try_from(WAIT.as_nanos()).unwrap_or(0);
            let ask = Bytes::from(json!({ "batch": each, "expires": expires }).to_string());
            for _ in 0..asks {
                let (next, inbox) = (next.clone(), inbox.clone());
                let sent = self.client.publish_with_reply(next, inbox, ask.clone()).await;
                sent.map_err(|error| broken(&error))?;
            }
            for _ in 0..batch {
                let Ok(Some(message)) = tokio::time::timeout(WAIT, messages.next()).await else {
                    return Ok(false);
                };
                // A stored message may carry a status header of its author, but only a stored one has a reply subject.
                if message.status.is_some() && message.reply.is_none() {
                    return Ok(false);
                }
                let Some((nth, stored)) = Stored::fetched(message, &context) else {
                    return Ok(false);
                };
                // A gap means that a message was lost between two servers.
                count += 1;
                if nth != count {
                    return Ok(false);
                }
                found.last = stored.seq;
                found.kept.push(keep(stored));
                left -= 1;
            }
        }
        Ok(true)
    }

    /// Sends a request to the JetStream API once. `None` means: try again.
    async fn ask_api<T: serde::de::DeserializeOwned>(
        &self,
        subject: &str,
        body: &serde_json::Value,
        doing: &str,
    ) -> Result<Option<T>, StoreError> {
        let body = body.to_string();
        let asked = self.ask_once(subject, None, body.as_bytes(), doing);
        let answer = match tokio::time::timeout(MADE, asked).await {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Err(refused)) => return Err(refused),
            Ok(Ok(Err(_))) | Err(_) => return Ok(None),
        };
        match serde_json::from_slice(&answer.payload) {
            Ok(Response::Ok(made)) => Ok(Some(made)),
            Ok(Response::Err { error }) if error.code() == 503 => Ok(None),
            Ok(Response::Err { error }) => Err(Trouble::Said(error.to_string()).doing(doing)),
            Err(error) => Err(Trouble::Garbled(error.to_string()).doing(doing)),
        }
    }
}
