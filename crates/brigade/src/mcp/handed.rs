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
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);
/// How many written answers to remember, in case they turn out to be cancelled.
const REMEMBERED: usize = 32;

/// Messages in answers, by the call they answer.
#[derive(Clone, Default)]
pub(super) struct Handed(Arc<Mutex<Hands>>);

#[derive(Default)]
struct Hands {
    /// Answers that are not written yet.
    given: HashMap<RequestId, Handful>,
    /// Answers that were written recently.
    written: VecDeque<(RequestId, Vec<MessageKey>)>,
    /// Messages in answers that were cancelled after they had been written.
    unseen: HashSet<MessageKey>,
}

/// The messages in the answer to one call.
struct Handful {
    since: Instant,
    seat: Seat,
    keys: Vec<MessageKey>,
}

impl Handed {
    fn held(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers messages that the answer to this call contains.
    pub(super) fn give(&self, call: RequestId, seat: Seat, keys: Vec<MessageKey>) {
        let mut hands = self.held();
        for key in &keys {
            hands.unseen.remove(key);
        }
        hands.given.insert(call, Handful { since: Instant::now(), seat, keys });
    }

    /// Messages in answers that are not written yet. They must not be delivered a second time.
    pub(super) fn on_their_way(&self) -> HashSet<MessageKey> {
        let mut hands = self.held();
        hands.given.retain(|_, handful| handful.since.elapsed() < WRITTEN_WITHIN);
        hands.given.values().flat_map(|handful| handful.keys.iter().copied()).collect()
    }

    /// Messages that are marked read but that the model never saw.
    pub(super) fn unseen(&self) -> HashSet<MessageKey> {
        self.held().unseen.clone()
    }

    /// The client cancelled this call. Its answer may have been written already.
    pub(super) fn called_off(&self, call: &RequestId) {
        let mut hands = self.held();
        hands.given.remove(call);
        if let Some(at) = hands.written.iter().position(|(written, _)| written == call)
            && let Some((_, keys)) = hands.written.remove(at)
        {
            hands.unseen.extend(keys);
        }
    }

    /// Called when the answer to this call was written: marks its messages read.
    pub(super) async fn written(&self, call: &RequestId) {
        let Some((seat, keys)) = self.held().given.get(call).map(Handful::parts) else { return };
        if let Err(error) = mail::mark(&seat, &keys, Mark::Read).await {
            tracing::warn!(team = %seat.team, member = %seat.name, %error, "cannot mark as read");
        }
        let mut hands = self.held();
        // Check whether the call was cancelled in the meantime.
        if hands.given.remove(call).is_some() {
            hands.written.push_back((call.clone(), keys));
            while hands.written.len() > REMEMBERED {
                hands.written.pop_front();
            }
        } else {
            hands.unseen.extend(keys);
        }
    }
}

impl Handful {
    fn parts(&self) -> (Seat, Vec<MessageKey>) {
        (self.seat.clone(), self.keys.clone())
    }
}
