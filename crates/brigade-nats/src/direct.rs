//! Reads single messages from a stream without a consumer: the last message on a subject, the last message of each
//! subject, or the message with a given sequence. The cost does not depend on how many other messages the stream has.

use std::time::{Duration, Instant};

use async_nats::{Message, StatusCode};
use brigade_core::store::StoreError;
use futures_util::StreamExt;
use serde_json::json;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::{CredentialRole, SEATS_API};
use crate::layout::matches;
use crate::read::{FETCH_TIMEOUT, ReadLimit, ReadRange, StoredMessage};

/// If the replica that answers is behind, the request is retried. The first retries are immediate, because another
/// replica may answer. Before each further retry, there is a pause.
const IMMEDIATE_RETRIES: usize = 2;
const CATCH_UP_PAUSE: Duration = Duration::from_millis(2);
/// The status with which the server ends an answer of several messages.
const END_OF_ANSWER: u16 = 204;

impl NatsConnection {
    /// Returns the last message on a subject (wildcards allowed). If the answer is older than a message that this
    /// process has written or received, the replica that answered is behind, and the request is retried.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
        doing: &str,
    ) -> Result<Option<StoredMessage>, StoreError> {
        self.last_unless_known(stream, subject, 0, doing).await
    }

    /// Like `last`, but for a caller that already knows all messages up to `known_upto`. If there is no later
    /// message, an outdated answer is good enough, and the request is not retried.
    pub(crate) async fn last_unless_known(
        &self,
        stream: &str,
        subject: &str,
        known_upto: u64,
        doing: &str,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let began = Instant::now();
        let min_last = self.floor(subject);
        let mut asked = 0;
        let api = format!("{}.DIRECT.GET.{stream}.{subject}", self.identity.api_prefix);
        loop {
            let answer = self.request(&api, None, &[], doing).await?;
            // The author of a message can give it a status. Only the server's own answers have no sequence.
            let (status, description) = (answer.status, answer.description.clone());
            let found = match (StoredMessage::from_headers(answer), status) {
                (Some(found), _) if matches(subject, &found.subject) => Some(found),
                (None, Some(StatusCode::NOT_FOUND)) => None,
                (None, Some(status)) if status.as_u16() >= 400 => {
                    let description = description.unwrap_or_default();
                    return Err(
                        NatsError::Server(format!("{status} {description}")).while_doing(doing)
                    );
                }
                _ => {
                    let malformed =
                        NatsError::Malformed("the message is on another subject".into());
                    return Err(malformed.while_doing(doing));
                }
            };
            if found.as_ref().map_or(0, |found| found.seq).max(known_upto) >= min_last {
                return Ok(found);
            }
            if began.elapsed() > self.retry_limit {
                let late = NatsError::Server("the replica that answers is still behind".into());
                return Err(late.while_doing(doing));
            }
            asked += 1;
            if asked > IMMEDIATE_RETRIES {
                tokio::time::sleep(CATCH_UP_PAUSE).await;
            }
        }
    }

    /// Returns the message with this sequence. Returns `None` if it is on another subject, if the replica that answers
    /// does not have it, or if this client may not ask for a sequence. Only an administrator may: a sequence does not
    /// say whose message it is.
    pub(crate) async fn message_at(
        &self,
        stream: &str,
        subject: &str,
        seq: u64,
        doing: &str,
    ) -> Result<Option<StoredMessage>, StoreError> {
        if self.identity.role != CredentialRole::Admin {
            return Ok(None);
        }
        let api = format!("{}.DIRECT.GET.{stream}", self.identity.api_prefix);
        let body = json!({ "seq": seq }).to_string();
        let answer = self.request(&api, None, body.as_bytes(), doing).await?;
        let found = StoredMessage::from_headers(answer);
        Ok(found.filter(|found| found.seq == seq && found.subject == subject))
    }

    /// Returns the last message of each subject that matches a filter, in the order of the stream. All come from the
    /// same replica, which has every message up to the last of them. Returns `None` if the caller should read all
    /// messages instead.
    pub(crate) async fn last_of_each(
        &self,
        stream: &str,
        filter: &str,
        limit: ReadLimit,
        doing: &str,
    ) -> Result<Option<Vec<StoredMessage>>, StoreError> {
        // For each request from a seat, the server forwards only one answer. A seat needs a consumer.
        if self.identity.api_prefix == SEATS_API {
            let read =
                self.read_limited(stream, filter, ReadRange::Last, limit, doing, Some).await?;
            return Ok((!read.is_full()).then_some(read.items));
        }
        let min_last = self.floor(filter);
        for _ in 0..=IMMEDIATE_RETRIES {
            let found = self.request_last_of_each(stream, filter).await;
            let is_current =
                |found: &Vec<StoredMessage>| found.last().map_or(0, |last| last.seq) >= min_last;
            if let Some(found) = found.filter(is_current) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Asks once for the last message of each subject. Returns `None` if a part of the answer is missing.
    async fn request_last_of_each(&self, stream: &str, filter: &str) -> Option<Vec<StoredMessage>> {
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.ok()?;
        let api = format!("{}.DIRECT.GET.{stream}", self.identity.api_prefix);
        let body = json!({ "multi_last": [filter] }).to_string();
        self.client.publish_with_reply(api, inbox, body.into()).await.ok()?;
        let mut found: Vec<StoredMessage> = Vec::new();
        loop {
            let answer = tokio::time::timeout(FETCH_TIMEOUT, answers.next()).await.ok()??;
            let status = answer.status;
            // Each part names the sequence of the part before it.
            let follows = server_number(&answer, "Nats-Last-Sequence")
                == Some(found.last().map_or(0, |last| last.seq));
            let is_last = server_number(&answer, "Nats-Num-Pending") == Some(0);
            // The author of a message can give it a status. Only the server's own answers have no sequence.
            match StoredMessage::from_headers(answer)
                .filter(|stored| matches(filter, &stored.subject))
            {
                Some(stored) if follows => found.push(stored),
                Some(_) => return None,
                None if status == Some(StatusCode::NOT_FOUND) && found.is_empty() => {
                    return Some(found);
                }
                None => {
                    let is_end = status.is_some_and(|status| status.as_u16() == END_OF_ANSWER);
                    return (is_end && follows && is_last).then_some(found);
                }
            }
        }
    }
}

/// Returns the number in a header that the server has added. The server adds its headers after those of the author.
fn server_number(message: &Message, name: &str) -> Option<u64> {
    message.headers.as_ref()?.get_last(name)?.as_str().parse().ok()
}
