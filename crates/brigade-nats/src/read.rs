//! Reading: the last message of some subjects, or all of them from one on.

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

/// How many messages are asked for at once.
const BATCH: u64 = 500;
/// How long a batch may take.
const WAIT: Duration = Duration::from_secs(3);
/// How long the server keeps what is read with, once nobody reads.
const IDLE: Duration = Duration::from_secs(5);
/// How long the making of a reader may take, before another is made.
const MADE: Duration = Duration::from_secs(1);
/// How often a replica that is behind is asked again at once, for another may answer; and how long to wait then.
const AT_ONCE: usize = 2;
const CATCH_UP: Duration = Duration::from_millis(2);

/// A message as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) subject: String,
    pub(crate) at: Timestamp,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Stored {
    /// What a header says.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::as_str)
    }

    /// The tokens of its subject behind the team.
    pub(crate) fn tokens(&self) -> Vec<&str> {
        self.subject.split('.').skip(3).collect()
    }

    /// From an answer, or a wake: both tell in headers what is stored. The server puts its own behind
    /// those that came with the message, which may well have the same names: the last count.
    pub(crate) fn told(message: Message) -> Option<Self> {
        let headers = message.headers?;
        let word = |name: &str| headers.get_last(name).map(|value| value.as_str().to_owned());
        let seq = word("Nats-Sequence")?.parse().ok()?;
        let at = word("Nats-Time-Stamp")?.parse().ok()?;
        let subject = word("Nats-Subject")?;
        Some(Self { seq, subject, at, headers, payload: message.payload })
    }

    /// From a wake. What was not said by the stream itself does not stand under the right subject, or
    /// does not tell all.
    pub(crate) fn heard(message: Message) -> Option<Self> {
        let subject = message.subject.to_string();
        Self::told(message).filter(|stored| subject == wake(&stored.subject))
    }

    /// From a reader, with its number among what that one was given.
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

/// Which messages of a subject with wildcards.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// All with this number or a later one.
    From(u64),
    /// The last of each subject.
    Last,
    /// The last of each subject, without what it says.
    LastHeaders,
}

/// A reader that the server has made.
#[derive(Deserialize)]
pub(crate) struct Made {
    /// By this name it is asked.
    pub(crate) name: String,
    /// How many messages are there to be read, on the server it was put on.
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
    /// The server it was put on, where there are several.
    pub(crate) fn server(&self) -> Option<&str> {
        self.cluster.as_ref()?.leader.as_deref()
    }
}

/// What was kept of messages that were read.
struct Found<T> {
    kept: Vec<T>,
    /// The number of the last that was read.
    last: u64,
}

impl Engine {
    /// The last message under a subject, which may have wildcards. It is not older than what this
    /// process has written itself: any replica may answer, and one may be behind.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
        doing: &str,
    ) -> Result<Option<Stored>, StoreError> {
        self.last_beyond(stream, subject, 0, doing).await
    }

    /// The same for one who has all up to a number: it may be older than that.
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
                    let garbled = || Trouble::Garbled("another message than was asked for".into());
                    let found = Stored::told(answer);
                    let found = found.filter(|found| matches(subject, &found.subject));
                    Some(found.ok_or_else(|| garbled().doing(doing))?)
                }
            };
            if found.as_ref().map_or(0, |found| found.seq).max(has) >= least {
                return Ok(found);
            }
            if began.elapsed() > self.patience {
                let late = Trouble::Said("the replica that answers stays behind".into());
                return Err(late.doing(doing));
            }
            asked += 1;
            if asked > AT_ONCE {
                tokio::time::sleep(CATCH_UP).await;
            }
        }
    }

    /// Messages under a subject with wildcards, in order.
    pub(crate) async fn read(
        &self,
        stream: &str,
        filter: &str,
        which: Which,
        doing: &str,
    ) -> Result<Vec<Stored>, StoreError> {
        self.read_as(stream, filter, which, doing, |stored| stored).await
    }

    /// The same, of each message only what is kept of it: with its headers, and the piece of the connection
    /// that it came in, it takes far more room than it says anything.
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
                // Nothing is known of it here. A reader may be put on a server that is catching up, and would
                // not find all of it; to this such a server does not answer.
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
            // It may have been put on a server that is cut off; as many as the stream has go on.
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
                // What was read is read: go on behind it.
                Which::From(_) if last > 0 => which = Which::From(last + 1),
                Which::From(_) => {}
                // All of them have the last among them, and can be gone on with.
                _ => {
                    found = Found { kept: Vec::new(), last: 0 };
                    which = Which::From(1);
                }
            }
            if found.kept.len() == before {
                self.pause(began, self.patience, "not all messages came", doing).await?;
            }
        }
    }

    /// Has the server make a reader. `None` if it should be tried again.
    pub(crate) async fn reader(
        &self,
        stream: &str,
        filter: &str,
        which: Which,
        replicas: u8,
        doing: &str,
    ) -> Result<Option<Made>, StoreError> {
        // Nobody can guess the name, so nobody else reads with it.
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

    /// Nobody reads with it any more. A stream has room for a thousand that read at once. Should this
    /// get lost, the server forgets the reader by itself.
    pub(crate) async fn forget(&self, stream: &str, made: &Made) {
        let Made { name, .. } = made;
        let forget = format!("{}.CONSUMER.DELETE.{stream}.{name}", self.identity.api_prefix);
        let _it_will = self.client.publish(forget, Bytes::new()).await;
    }

    /// Fetches what a reader has; whether it came to the end.
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
            // To what a seat asks the server lets one message answer, so it asks for each.
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
                // A message may have come with a status of its author's; what is stored has its number.
                if message.status.is_some() && message.reply.is_none() {
                    return Ok(false);
                }
                let Some((nth, stored)) = Stored::fetched(message, &context) else {
                    return Ok(false);
                };
                // One may be lost on its way between two servers: what comes behind it would hide it.
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

    /// Asks the JetStream API once. `None` if it should be tried again.
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
