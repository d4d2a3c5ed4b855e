//! Marks messages read once the client has received them.
//!
//! A message is marked read after the answer that contains it was written. If the server is killed before that,
//! the message is still unread and is delivered again. It is also delivered again if the client cancelled the call
//! while the answer was on its way: then the model never saw it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use rmcp::model::RequestId;

/// How long writing an answer may take. After that its messages can be delivered again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many written answers to remember, in case they turn out to be cancelled.
const MAX_WRITTEN: usize = 32;

/// Messages in answers, by the call they answer.
#[derive(Clone, Default)]
pub(super) struct ReadMarks(Arc<Mutex<ReadMarkState>>);

#[derive(Default)]
struct ReadMarkState {
    /// Answers that are not written yet.
    unwritten: HashMap<RequestId, UnwrittenAnswer>,
    /// Answers that were written recently.
    written: VecDeque<(RequestId, Vec<MessageKey>)>,
    /// Messages in answers that were cancelled after they had been written.
    unseen: HashSet<MessageKey>,
}

/// The messages in the answer to one call.
struct UnwrittenAnswer {
    since: Instant,
    seat: Seat,
    keys: Vec<MessageKey>,
}

impl ReadMarks {
    fn lock(&self) -> MutexGuard<'_, ReadMarkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers messages that the answer to this call contains.
    pub(super) fn register(&self, call: RequestId, seat: Seat, keys: Vec<MessageKey>) {
        let mut state = self.lock();
        for key in &keys {
            state.unseen.remove(key);
        }
        state.unwritten.insert(call, UnwrittenAnswer { since: Instant::now(), seat, keys });
    }

    /// Messages in answers that are not written yet. They must not be delivered a second time.
    pub(super) fn in_unwritten_answers(&self) -> HashSet<MessageKey> {
        let mut state = self.lock();
        state.unwritten.retain(|_, pending| pending.since.elapsed() < WRITE_TIMEOUT);
        state.unwritten.values().flat_map(|pending| pending.keys.iter().copied()).collect()
    }

    /// Messages that are marked read but that the model never saw.
    pub(super) fn unseen(&self) -> HashSet<MessageKey> {
        self.lock().unseen.clone()
    }

    /// The client cancelled this call. Its answer may have been written already.
    pub(super) fn cancelled(&self, call: &RequestId) {
        let mut state = self.lock();
        state.unwritten.remove(call);
        if let Some(at) = state.written.iter().position(|(written, _)| written == call)
            && let Some((_, keys)) = state.written.remove(at)
        {
            state.unseen.extend(keys);
        }
    }

    /// Called when the answer to this call was written: marks its messages read.
    pub(super) async fn written(&self, call: &RequestId) {
        let Some((seat, keys)) = self.lock().unwritten.get(call).map(UnwrittenAnswer::parts) else {
            return;
        };
        if let Err(error) = mail::mark(&seat, &keys, Mark::Read).await {
            tracing::warn!(team = %seat.team, member = %seat.name, %error, "cannot mark as read");
        }
        let mut state = self.lock();
        // Check whether the call was cancelled in the meantime.
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

impl UnwrittenAnswer {
    fn parts(&self) -> (Seat, Vec<MessageKey>) {
        (self.seat.clone(), self.keys.clone())
    }
}
