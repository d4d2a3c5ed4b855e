//! Remembers the last message that this process sent on each subject, so that the next message can be linked to it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many subjects to remember.
const MAX_REMEMBERED: usize = 4096;

/// The last message that this process sent on each subject.
#[derive(Debug, Default)]
pub(crate) struct SentMessages(Mutex<HashMap<String, SentSubject>>);

#[derive(Debug, Default)]
struct SentSubject {
    /// Sequence of the last message; 0 if this process has not sent one.
    last: u64,
    /// How many messages were sent but not acknowledged.
    in_flight: usize,
}

/// A message that is being sent.
pub(crate) struct SendingMessage<'s> {
    sent: &'s SentMessages,
    subject: &'s str,
    /// The sequence of the last message on the subject, as far as this process knows; `None` if another message is
    /// being sent on the same subject, so that its sequence is unknown.
    pub(crate) previous: Option<u64>,
}

impl SentMessages {
    /// Records that a message is being sent, until the returned value is dropped.
    pub(crate) fn begin<'s>(&'s self, subject: &'s str) -> SendingMessage<'s> {
        let mut subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if subjects.len() > MAX_REMEMBERED {
            subjects.retain(|_, sent| sent.in_flight > 0);
        }
        let sent = subjects.entry(subject.to_owned()).or_default();
        let previous = (sent.in_flight == 0).then_some(sent.last);
        sent.in_flight += 1;
        SendingMessage { sent: self, subject, previous }
    }
}

impl SendingMessage<'_> {
    /// Records the sequence of the message.
    pub(crate) fn stored(&self, seq: u64) {
        let mut subjects = self.sent.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = subjects.get_mut(self.subject) {
            sent.last = sent.last.max(seq);
        }
    }
}

impl Drop for SendingMessage<'_> {
    fn drop(&mut self) {
        let mut subjects = self.sent.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = subjects.get_mut(self.subject) {
            sent.in_flight = sent.in_flight.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SentMessages;

    #[test]
    fn a_message_is_linked_only_if_no_other_is_being_sent() {
        let sent = SentMessages::default();
        let first = sent.begin("a");
        assert_eq!(first.previous, Some(0));
        assert_eq!(sent.begin("b").previous, Some(0));
        let second = sent.begin("a");
        assert_eq!(second.previous, None);
        second.stored(9);
        first.stored(7);
        drop(first);
        assert_eq!(sent.begin("a").previous, None);
        drop(second);
        assert_eq!(sent.begin("a").previous, Some(9));
    }
}
