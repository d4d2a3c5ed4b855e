//! Writes messages to streams. A write that is retried is stored only once. A conditional write fails if
//! another client wrote first.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use brigade_core::store::StoreError;

use crate::connection::NatsConnection;
use crate::error::NatsError;

/// The JetStream errors for a failed compare-and-set. 10071: another write is stored already. 10164: the replicas
/// are still agreeing on another write.
const CONFLICTS: [u64; 2] = [10071, 10164];
/// The part of the server's error text that precedes the sequence of the last message.
const WRONG_LAST: &str = "wrong last sequence: ";
/// JetStream error: a message with the same id is being stored.
const DUPLICATE_IN_PROGRESS: u64 = 10158;

/// How long a message with an id may be retried. Must be shorter than [`DEDUP`](crate::layout::DEDUP).
const ID_RETRY_LIMIT: Duration = Duration::from_secs(100);

/// How long a sender retries while the server answers [`DUPLICATE_IN_PROGRESS`]. After that, the sender checks
/// whether the message is stored.
const IN_PROGRESS_LIMIT: Duration = Duration::from_secs(3);

/// The headers that ask the server to store a message only if the last message that matches a filter has a sequence.
pub(crate) const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";
pub(crate) const EXPECTED_FILTER: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// The header with the incarnation of the team. A team that is deleted and created again has a new incarnation.
pub(crate) const INCARNATION: &str = "Brigade-Life";
/// The header of a message that contains no document. Its value is [`DELETED`], [`LEFT`] or
/// [`ELSEWHERE`].
pub(crate) const OP: &str = "Brigade-Op";
/// Value of [`OP`]: the document was deleted.
pub(crate) const DELETED: &str = "deleted";
/// Value of [`OP`]: the member left the team.
pub(crate) const LEFT: &str = "left";
/// Value of [`OP`]: the team was assigned to another shard, before it was created. The message contains the number of the
/// shard.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// A message to write to a stream.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrite<'d> {
    /// The subject to write to.
    pub(crate) subject: String,
    /// The content.
    pub(crate) payload: &'d [u8],
    /// Additional headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Message id, by which the server detects duplicates. If `None`, a random id is used.
    pub(crate) id: Option<String>,
    /// The write fails unless the last message on this subject (wildcards allowed) has this sequence.
    pub(crate) expected_last: Option<(String, u64)>,
}

impl<'d> PendingWrite<'d> {
    /// Creates an unconditional write.
    pub(crate) fn new(subject: String, payload: &'d [u8]) -> Self {
        Self { subject, payload, headers: Vec::new(), id: None, expected_last: None }
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Makes the write conditional. It fails unless the last message that matches `filter` has this sequence.
    pub(crate) fn expect_last(mut self, filter: String, seq: u64) -> Self {
        self.expected_last = Some((filter, seq));
        self
    }
}

/// The server's answer to a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteAck {
    pub(crate) seq: u64,
    /// Whether the server already has a message with this id.
    pub(crate) duplicate: bool,
    /// Whether the server was still storing the message after [`IN_PROGRESS_LIMIT`].
    pub(crate) in_progress: bool,
}

/// A write whose condition was not met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteConflict {
    /// The sequence of the last message; `None` if the replicas are still agreeing on another write.
    pub(crate) last: Option<u64>,
}

impl WriteConflict {
    fn parse(error: &str) -> Self {
        let (_, rest) = error.split_once(WRONG_LAST).unwrap_or_default();
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        Self { last: rest.get(..end).and_then(|digits| digits.parse().ok()) }
    }
}

impl NatsConnection {
    /// Writes a message. Returns its sequence, or [`StoreError::Conflict`] if the write's condition is not met.
    pub(crate) async fn write(
        &self,
        pending: PendingWrite<'_>,
        doing: &str,
    ) -> Result<u64, StoreError> {
        self.write_with_ack(pending, doing).await.map(|written| written.seq)
    }

    /// Like `write`, but also returns whether the server already has a message with this id.
    pub(crate) async fn write_with_ack(
        &self,
        pending: PendingWrite<'_>,
        doing: &str,
    ) -> Result<WriteAck, StoreError> {
        self.write_if_expected(pending, doing).await?.map_err(|_| {
            self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
            StoreError::Conflict
        })
    }

    /// Like `write_with_ack`, but if the write's condition is not met, returns what the server says about it.
    pub(crate) async fn write_if_expected(
        &self,
        pending: PendingWrite<'_>,
        doing: &str,
    ) -> Result<Result<WriteAck, WriteConflict>, StoreError> {
        let mut headers = HeaderMap::new();
        let id = pending.id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        headers.insert("Nats-Msg-Id", id);
        for (name, value) in pending.headers {
            headers.insert(name, value);
        }
        if let Some((filter, seq)) = &pending.expected_last {
            headers.insert(EXPECTED_LAST, seq.to_string());
            headers.insert(EXPECTED_FILTER, filter.as_str());
        }
        let began = Instant::now();
        // If a message has its own id, it can be retried only while the server remembers the id. Other messages
        // can be retried at any time: they are conditional, or only the last message on their subject counts.
        let retry_limit = if pending.id.is_some() {
            self.retry_limit.min(ID_RETRY_LIMIT)
        } else {
            self.retry_limit
        };
        loop {
            let answer = self
                .request_within(
                    retry_limit,
                    &pending.subject,
                    Some(&headers),
                    pending.payload,
                    doing,
                )
                .await?;
            let answer: Response<PublishAck> = serde_json::from_slice(&answer.payload)
                .map_err(|error| NatsError::Malformed(error.to_string()).while_doing(doing))?;
            match answer {
                Response::Ok(ack) => {
                    // If the message is a duplicate, the sequence may belong to another subject.
                    if !ack.duplicate {
                        self.raise_floor(&pending.subject, ack.sequence);
                    }
                    return Ok(Ok(WriteAck {
                        seq: ack.sequence,
                        duplicate: ack.duplicate,
                        in_progress: false,
                    }));
                }
                Response::Err { error } if CONFLICTS.contains(&error.error_code().0) => {
                    return Ok(Err(WriteConflict::parse(&error.to_string())));
                }
                // After a network partition, the server may return this error for a long time, although the
                // message is stored.
                Response::Err { error }
                    if error.error_code().0 == DUPLICATE_IN_PROGRESS
                        && pending.id.is_some()
                        && began.elapsed() > IN_PROGRESS_LIMIT =>
                {
                    return Ok(Ok(WriteAck { seq: 0, duplicate: true, in_progress: true }));
                }
                Response::Err { error }
                    if error.code() == 503 || error.error_code().0 == DUPLICATE_IN_PROGRESS =>
                {
                    self.wait_before_retry(began, retry_limit, &error.to_string(), doing).await?;
                }
                Response::Err { error } => {
                    return Err(NatsError::Server(error.to_string()).while_doing(doing));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WriteConflict;

    #[test]
    fn the_server_names_the_last_message_in_its_error() {
        let check = |error, last| assert_eq!(WriteConflict::parse(error).last, last, "{error}");
        check("wrong last sequence: 17 (code 400, error code 10071)", Some(17));
        check("wrong last sequence: 17", Some(17));
        check("wrong last sequence", None);
        check("wrong last sequence: ", None);
    }
}
