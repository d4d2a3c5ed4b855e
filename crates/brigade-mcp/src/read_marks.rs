//! Messages that were handed out, and whether they arrived.
//!
//! A message is marked read when the answer that carries it has been written, not before: if we are
//! killed in between it is still unread, and comes again. It also comes again if the client called
//! the answer off while it was on its way, for then nobody looked at it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use rmcp::model::RequestId;

/// How long the answer to a call may take to be written. After that it is not coming.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);
/// How many answers are remembered in case they are called off.
const REMEMBERED: usize = 32;

/// What was handed out, by the call that asked for it.
#[derive(Clone, Default)]
pub(super) struct Handed(Arc<Mutex<Hands>>);

#[derive(Default)]
struct Hands {
    /// In answers that are not written yet.
    given: HashMap<RequestId, Handful>,
    /// In answers that were written of late.
    written: VecDeque<(RequestId, Vec<MessageKey>)>,
    /// In answers that were called off when they were written already.
    unseen: HashSet<MessageKey>,
}

/// Messages in the answer to one call.
struct Handful {
    since: Instant,
    seat: Seat,
    keys: Vec<MessageKey>,
}

impl Handed {
    fn held(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These go out with the answer to this call.
    pub(super) fn give(&self, call: RequestId, seat: Seat, keys: Vec<MessageKey>) {
        let mut hands = self.held();
        for key in &keys {
            hands.unseen.remove(key);
        }
        hands.given.insert(call, Handful { since: Instant::now(), seat, keys });
    }

    /// What is on its way, and so is not handed out a second time.
    pub(super) fn on_their_way(&self) -> HashSet<MessageKey> {
        let mut hands = self.held();
        hands.given.retain(|_, handful| handful.since.elapsed() < WRITTEN_WITHIN);
        hands.given.values().flat_map(|handful| handful.keys.iter().copied()).collect()
    }

    /// What is marked read though nobody looked at it.
    pub(super) fn unseen(&self) -> HashSet<MessageKey> {
        self.held().unseen.clone()
    }

    /// The answer to this call is not wanted any more, whether or not it was written.
    pub(super) fn called_off(&self, call: &RequestId) {
        let mut hands = self.held();
        hands.given.remove(call);
        if let Some(at) = hands.written.iter().position(|(written, _)| written == call)
            && let Some((_, keys)) = hands.written.remove(at)
        {
            hands.unseen.extend(keys);
        }
    }

    /// Marks read what went out with the answer to this call, which is written.
    pub(super) async fn written(&self, call: &RequestId) {
        let Some((seat, keys)) = self.held().given.get(call).map(Handful::parts) else { return };
        if let Err(error) = mail::mark(&seat, &keys, Mark::Read).await {
            tracing::warn!(team = %seat.team, member = %seat.name, %error, "cannot mark as read");
        }
        let mut hands = self.held();
        // Unless it was called off meanwhile.
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
