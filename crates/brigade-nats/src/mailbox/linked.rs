//! Reads the new messages of a mailbox by following links. A sender asks the server to store a message only if the
//! sender's previous message to the same mailbox has a certain sequence. The server keeps that condition with the
//! message, so the message says which message came directly before it on its subject. A reader starts at the last
//! message of each sender and goes back until it reaches a message that it knows. The cost depends only on the new
//! messages: the server does not have to search the messages of other mailboxes.

use brigade_core::store::StoreError;
use brigade_wire::name::MemberName;
use futures_util::future::try_join_all;

use super::refresh::WHOLE;
use crate::connection::NatsConnection;
use crate::layout::{Stream, Subjects};
use crate::mail_message::MailMessage;
use crate::read::{ReadRange, StoredMessage};
use crate::write::{EXPECTED_FILTER, EXPECTED_LAST};

/// A reader goes back this many messages of one sender. If there are more, it reads them with a consumer.
const MAX_STEPS: usize = 32;

/// The new messages of a mailbox.
pub(super) struct LinkedMail {
    pub(super) messages: Vec<MailMessage>,
    /// There is no other message up to this sequence.
    pub(super) complete_upto: u64,
}

/// Returns the sequence of the message directly before this one on the same subject; 0 if it is the first one. Returns
/// `None` if the server has not checked that.
fn previous(stored: &StoredMessage) -> Option<u64> {
    let only = |name: &str| {
        let mut values = stored.headers.get_all(name);
        values.next().filter(|_| values.next().is_none())
    };
    let is_own_subject = only(EXPECTED_FILTER)?.as_str() == stored.subject;
    let seq = only(EXPECTED_LAST)?.as_str().parse().ok()?;
    (is_own_subject && seq < stored.seq).then_some(seq)
}

impl NatsConnection {
    /// Reads all messages of a mailbox after a sequence. Returns `None` if the mailbox is too large for that, or if the
    /// server does not answer.
    pub(super) async fn read_linked(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        after: u64,
    ) -> Result<Option<LinkedMail>, StoreError> {
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let doing = format!("read the mail of {member}");
        let Some(lasts) = self.last_of_each(&stream, &filter, WHOLE, &doing).await? else {
            return Ok(None);
        };
        let complete_upto = lasts.iter().map(|last| last.seq).max().unwrap_or(0);
        let new = lasts.into_iter().filter(|last| last.seq > after);
        let of_each = try_join_all(new.map(|last| self.read_back(&stream, last, after, &doing)));
        let of_each: Option<Vec<Vec<MailMessage>>> = of_each.await?.into_iter().collect();
        Ok(of_each.map(|of_each| LinkedMail { messages: of_each.concat(), complete_upto }))
    }

    /// Reads all messages of one sender after a sequence, up to `last`. Returns `None` if there are too many.
    async fn read_back(
        &self,
        stream: &str,
        last: StoredMessage,
        after: u64,
        doing: &str,
    ) -> Result<Option<Vec<MailMessage>>, StoreError> {
        let (subject, last_seq) = (last.subject.clone(), last.seq);
        let mut messages = Vec::new();
        let mut current = last;
        for _ in 0..MAX_STEPS {
            messages.extend(MailMessage::read(&current));
            match previous(&current) {
                Some(seq) if seq <= after => return Ok(Some(messages)),
                Some(seq) => match self.message_at(stream, &subject, seq, doing).await? {
                    Some(found) => current = found,
                    // The message has expired, or the replica that answered is behind.
                    None => break,
                },
                None => break,
            }
        }
        self.raise_floor(&subject, last_seq);
        let map = |stored| MailMessage::read(&stored);
        let range = ReadRange::From(after + 1);
        let read = self.read_limited(stream, &subject, range, WHOLE, doing, map).await?;
        Ok((!read.is_full()).then_some(read.items))
    }
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;

    use super::*;

    const SUBJECT: &str = "mb.0.demo.bob.alice.w";

    fn stored(headers: &[(&str, &str)]) -> StoredMessage {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, *value);
        }
        let at = jiff::Timestamp::UNIX_EPOCH;
        StoredMessage { seq: 9, subject: SUBJECT.into(), at, headers: map, payload: "".into() }
    }

    #[test]
    fn only_a_condition_that_the_server_checked_is_a_link() {
        let own = (EXPECTED_FILTER, SUBJECT);
        let check = |headers: &[(&str, &str)], expected| {
            assert_eq!(previous(&stored(headers)), expected, "{headers:?}");
        };
        check(&[own, (EXPECTED_LAST, "7")], Some(7));
        check(&[own, (EXPECTED_LAST, "0")], Some(0));
        check(&[], None);
        check(&[own], None);
        check(&[(EXPECTED_LAST, "7")], None);
        check(&[(EXPECTED_FILTER, "mb.0.demo.bob.*.w"), (EXPECTED_LAST, "7")], None);
        check(&[own, (EXPECTED_LAST, "7"), (EXPECTED_LAST, "8")], None);
        check(&[own, own, (EXPECTED_LAST, "7")], None);
        check(&[own, (EXPECTED_LAST, "9")], None);
    }
}
