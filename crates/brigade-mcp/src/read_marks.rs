//! Marks messages as read once the client has received them.
//!
//! A message is marked as read after the answer that contains the message was written. If the server is killed
//! before that, the message is still unread and is delivered again. The message is also delivered again if the
//! client cancelled the call while the answer was being sent, because then the model never saw the message.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use rmcp::model::RequestId;

/// How long writing an answer may take. After that, the messages in the answer can be delivered again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many answers to remember after they were written, in case the client cancels their calls.
const MAX_WRITTEN: usize = 32;

/// Maps the id of a call to the messages in its answer, until some time after the answer was written.
#[derive(Clone, Default)]
pub(super) struct ReadMarks(Arc<Mutex<ReadMarkState>>);

#[derive(Default)]
struct ReadMarkState {
    /// The answers that were not written yet.
    unwritten: HashMap<RequestId, UnwrittenAnswer>,
    /// The answers that were written recently.
    written: VecDeque<(RequestId, Vec<MessageKey>)>,
    /// The messages in answers whose calls were cancelled after the answer had been written.
    unseen: HashSet<MessageKey>,
}

/// The messages in an answer that was not written yet.
struct UnwrittenAnswer {
    since: Instant,
    seat: Seat,
    keys: Vec<MessageKey>,
}

impl ReadMarks {
    fn lock(&self) -> MutexGuard<'_, ReadMarkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the messages that the answer to this call contains.
    pub(super) fn register(&self, call: RequestId, seat: Seat, keys: Vec<MessageKey>) {
        let mut state = self.lock();
        for key in &keys {
            state.unseen.remove(key);
        }
        state.unwritten.insert(call, UnwrittenAnswer { since: Instant::now(), seat, keys });
    }

    /// Returns the messages in answers that were not written yet. No other answer may contain these messages.
    pub(super) fn in_unwritten_answers(&self) -> HashSet<MessageKey> {
        let mut state = self.lock();
        state.unwritten.retain(|_, pending| pending.since.elapsed() < WRITE_TIMEOUT);
        state.unwritten.values().flat_map(|pending| pending.keys.iter().copied()).collect()
    }

    /// Returns the messages that are marked as read although the model never saw them.
    pub(super) fn unseen(&self) -> HashSet<MessageKey> {
        self.lock().unseen.clone()
    }

    /// Records that the client cancelled this call. The answer to the call may have been written already.
    pub(super) fn cancelled(&self, call: &RequestId) {
        let mut state = self.lock();
        state.unwritten.remove(call);
        if let Some(at) = state.written.iter().position(|(written, _)| written == call)
            && let Some((_, keys)) = state.written.remove(at)
        {
            state.unseen.extend(keys);
        }
    }

    /// Marks the messages in the answer to this call as read. Call this after the answer was written.
    pub(super) async fn written(&self, call: &RequestId) {
        let parts = |answer: &UnwrittenAnswer| (answer.seat.clone(), answer.keys.clone());
        let Some((seat, keys)) = self.lock().unwritten.get(call).map(parts) else { return };
        if let Err(error) = mail::mark(&seat, &keys, Mark::Read).await {
            tracing::warn!(
                team = %seat.team, member = %seat.name, %error, "cannot mark messages as read"
            );
        }
        let mut state = self.lock();
        // The entry is gone if the client cancelled the call or if writing the answer took too long.
        if state.unwritten.remove(call).is_some() {
            state.written.push_back((call.clone(), keys));
            while state.written.len() > MAX_WRITTEN {
                state.written.pop_front();
            }
        } else {
            state.unseen.extend(keys);
        }
    }
}
