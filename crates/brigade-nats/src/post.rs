//! Sends messages. A message is linked to the sender's previous message to the same mailbox, if that is possible
//! without a delay; see `mailbox::linked` for the use of links.

use std::time::{Duration, Instant};

use brigade_core::store::{Outgoing, StoreError};
use brigade_wire::name::MemberName;

use crate::connection::NatsConnection;
use crate::layout::{Stream, Subjects};
use crate::mail_message::{self, CREATED};
use crate::read::{ReadRange, StoredMessage};
use crate::write::{INCARNATION, PendingWrite, WriteAck};

/// If the server reports that a message is a duplicate, the sender checks whether the message is stored. The
/// sender checks up to `DUPLICATE_CHECKS` times, with a pause between two checks.
const DUPLICATE_CHECKS: usize = 5;
const DUPLICATE_CHECK_PAUSE: Duration = Duration::from_millis(200);
impl NatsConnection {
    /// Puts a message into a mailbox.
    pub(crate) async fn post(
        &self,
        subjects: &Subjects,
        to: &MemberName,
        message: &Outgoing,
        incarnation: &str,
    ) -> Result<(), StoreError> {
        let entry = mail_message::entry(message);
        let subject = subjects.message(to, &message.from, mail_message::weight(&message.text));
        let doing = format!("send a message to {to}");
        // The id contains the recipient, because a message to two members must be stored twice.
        let id = format!("{}>{to}", message.msg_id);
        let pending = PendingWrite {
            id: Some(id.clone()),
            ..PendingWrite::new(subject.clone(), entry.as_bytes())
        };
        let pending = pending
            .with_header(INCARNATION, incarnation)
            .with_header(CREATED, message.team_created.to_string());
        let sending = self.sent.begin(&subject);
        let mut previous = sending.previous;
        let began = Instant::now();
        loop {
            let ack = self.write_linked(&pending, &mut previous, &doing).await?;
            if !ack.duplicate {
                sending.stored(ack.seq);
            }
            if !ack.duplicate || self.has(subjects, &subject, &id, &doing).await? {
                return Ok(());
            }
            if !ack.in_progress {
                // Another sender has used this id, so the server rejects this message as a duplicate. Send the
                // message with a random id.
                return self.write(PendingWrite { id: None, ..pending }, &doing).await.map(drop);
            }
            self.wait_before_retry(
                began,
                self.retry_limit,
                "the message is still being stored",
                &doing,
            )
            .await?;
        }
    }

    /// Writes a message after the message with the sequence `previous` on the same subject. If the server names another
    /// sequence, tries once more with that one. After that, writes the message without a link.
    async fn write_linked(
        &self,
        pending: &PendingWrite<'_>,
        previous: &mut Option<u64>,
        doing: &str,
    ) -> Result<WriteAck, StoreError> {
        let mut is_retry = false;
        while let Some(seq) = *previous {
            let linked = pending.clone().expect_last(pending.subject.clone(), seq);
            match self.write_if_expected(linked, doing).await? {
                Ok(ack) => return Ok(ack),
                Err(conflict) => *previous = conflict.last.filter(|_| !is_retry),
            }
            is_retry = true;
        }
        self.write_with_ack(pending.clone(), doing).await
    }

    /// Whether the stream holds a message with this id on a subject.
    async fn has(
        &self,
        subjects: &Subjects,
        subject: &str,
        id: &str,
        doing: &str,
    ) -> Result<bool, StoreError> {
        let stream = subjects.stream(Stream::Mail);
        let has_id = |stored: &StoredMessage| stored.header("Nats-Msg-Id") == Some(id);
        // Check several times, because the replica that answers may be behind.
        for _ in 0..DUPLICATE_CHECKS {
            if self.last(&stream, subject, doing).await?.as_ref().is_some_and(has_id)
                || self.read(&stream, subject, ReadRange::From(1), doing).await?.iter().any(has_id)
            {
                return Ok(true);
            }
            tokio::time::sleep(DUPLICATE_CHECK_PAUSE).await;
        }
        Ok(false)
    }
}
