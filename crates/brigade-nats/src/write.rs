//! Writing: once, however often it has to be tried; and only onto what the writer has seen.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use brigade_core::store::StoreError;

use crate::engine::Engine;
use crate::error::Trouble;

/// Somebody else has written; 10071 where it is stored already, 10164 where three servers are still
/// agreeing on it.
const WRONG_LAST: [u64; 2] = [10071, 10164];
/// The same message is just being stored.
const SAME_UNDER_WAY: u64 = 10158;

/// For how long a message may be tried again under its id; less than [`DEDUP`](crate::layout::DEDUP).
const KNOWN: Duration = Duration::from_secs(100);

/// For how long a message is being stored before somebody looks whether it is there.
const UNDER_WAY: Duration = Duration::from_secs(3);

/// In which life of a team something was written: a team that is made again under its name is another.
pub(crate) const LIFE: &str = "Brigade-Life";
/// What a message without a document means: [`DELETED`] or [`LEFT`].
pub(crate) const OP: &str = "Brigade-Op";
/// It is no more.
pub(crate) const DELETED: &str = "deleted";
/// The member has left.
pub(crate) const LEFT: &str = "left";

/// What to write.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'d> {
    /// Where to.
    pub(crate) subject: String,
    /// What it says.
    pub(crate) payload: &'d [u8],
    /// What else is to be known about it.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Its id: written twice it is there once. A new one if there is none.
    pub(crate) id: Option<String>,
    /// Only if the last message under this subject, which may have wildcards, has this number.
    pub(crate) onto: Option<(String, u64)>,
}

impl<'d> Draft<'d> {
    /// To be written whatever is there.
    pub(crate) fn new(subject: String, payload: &'d [u8]) -> Self {
        Self { subject, payload, headers: Vec::new(), id: None, onto: None }
    }

    /// With another header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Only onto this.
    pub(crate) fn onto(mut self, filter: String, seq: u64) -> Self {
        self.onto = Some((filter, seq));
        self
    }
}

/// What the server says of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) seq: u64,
    /// Whether it had a message of this id already.
    pub(crate) known: bool,
    /// Whether it says that it is still storing it, and keeps saying so.
    pub(crate) under_way: bool,
}

impl Engine {
    /// Writes, and gives the number back. [`StoreError::Conflict`] if it was to be onto something else.
    pub(crate) async fn write(&self, draft: Draft<'_>, doing: &str) -> Result<u64, StoreError> {
        self.write_once(draft, doing).await.map(|written| written.seq)
    }

    /// The same; tells whether the server knew the id.
    pub(crate) async fn write_once(
        &self,
        draft: Draft<'_>,
        doing: &str,
    ) -> Result<Ack, StoreError> {
        let mut headers = HeaderMap::new();
        let id = draft.id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        headers.insert("Nats-Msg-Id", id);
        for (name, value) in draft.headers {
            headers.insert(name, value);
        }
        if let Some((filter, seq)) = &draft.onto {
            headers.insert("Nats-Expected-Last-Subject-Sequence", seq.to_string());
            headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", filter.as_str());
        }
        let began = Instant::now();
        // What has an id of its own is safe to try again while the server knows the id. The others
        // are written onto something, or the last of them counts.
        let patience = if draft.id.is_some() { self.patience.min(KNOWN) } else { self.patience };
        loop {
            let answer = self
                .ask_for(patience, &draft.subject, Some(&headers), draft.payload, doing)
                .await?;
            let answer: Response<PublishAck> = serde_json::from_slice(&answer.payload)
                .map_err(|error| Trouble::Garbled(error.to_string()).doing(doing))?;
            match answer {
                Response::Ok(ack) => {
                    // The number of a message that was there before may be of any subject.
                    if !ack.duplicate {
                        self.knows(&draft.subject, ack.sequence);
                    }
                    return Ok(Ack { seq: ack.sequence, known: ack.duplicate, under_way: false });
                }
                Response::Err { error } if WRONG_LAST.contains(&error.error_code().0) => {
                    self.metrics.conflicts.fetch_add(1, Ordering::Relaxed);
                    return Err(StoreError::Conflict);
                }
                // After a cut it may say so for ever, of a message that is long there.
                Response::Err { error }
                    if error.error_code().0 == SAME_UNDER_WAY
                        && draft.id.is_some()
                        && began.elapsed() > UNDER_WAY =>
                {
                    return Ok(Ack { seq: 0, known: true, under_way: true });
                }
                Response::Err { error }
                    if error.code() == 503 || error.error_code().0 == SAME_UNDER_WAY =>
                {
                    self.pause(began, patience, &error.to_string(), doing).await?;
                }
                Response::Err { error } => {
                    return Err(Trouble::Said(error.to_string()).doing(doing));
                }
            }
        }
    }
}
