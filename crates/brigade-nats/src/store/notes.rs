//! Implements [`Notes`]: decisions and notes.

use std::time::Duration;

use async_trait::async_trait;
use brigade_core::pulse::REPORT_INTERVAL;
use brigade_core::store::{NoteKind, Notes, Question, StoreError};
use brigade_wire::name::{MemberName, TeamName};

use super::NatsStore;
use crate::layout::{PULSE, Stream};
use crate::write::{DELETED, OP, PendingWrite};

#[async_trait]
impl Notes for NatsStore {
    fn pulses_are_public(&self) -> bool {
        true
    }

    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.incarnation(team).await?;
        let subject = self.subjects(team).decision(question.member(), question.as_str());
        let pending = PendingWrite::new(subject.clone(), answer).expect_last(subject, 0);
        match self.connection.write(pending, "decide").await {
            Ok(_) => Ok(answer.to_vec()),
            // Another answer was written first. Perhaps it cannot be read yet, because the replicas are still
            // agreeing on it. Wait until it can be read.
            Err(StoreError::Conflict) => loop {
                if let Some(first) = self.decided(team, question).await? {
                    return Ok(first);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            },
            Err(error) => Err(error),
        }
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.incarnation(team).await?;
        let subjects = self.subjects(team);
        let subject = subjects.decision(question.member(), question.as_str());
        let stream = subjects.stream(Stream::Team);
        let found = self.connection.last(&stream, &subject, "read a decision").await?;
        Ok(found.map(|found| found.payload.to_vec()))
    }

    /// A pulse expires, and members on other hosts trust it only for a while.
    fn pulse_interval(&self) -> Duration {
        REPORT_INTERVAL
    }

    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let subjects = self.located(team).await?;
        let text = note.unwrap_or_default();
        let pending = match kind {
            NoteKind::Pulse => {
                let ttl = format!("{}s", PULSE.as_secs());
                PendingWrite::new(subjects.pulse(member), text).with_header("Nats-TTL", ttl)
            }
            _ => PendingWrite::new(subjects.note(member, note_token(kind)), text),
        };
        let pending = if note.is_none() { pending.with_header(OP, DELETED) } else { pending };
        self.connection.write(pending, "store a note").await.map(drop)
    }

    async fn get_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let subjects = self.located(team).await?;
        let (stream, subject) = match kind {
            NoteKind::Pulse => (Stream::Live, subjects.pulse(member)),
            _ => (Stream::Notes, subjects.note(member, note_token(kind))),
        };
        let found = self.connection.last(&subjects.stream(stream), &subject, "read a note").await?;
        let found = found.filter(|found| found.header(OP) != Some(DELETED));
        Ok(found.map(|found| found.payload.to_vec()))
    }
}

/// Returns the last token of the subject for notes of this kind.
fn note_token(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Memory => "memory",
        NoteKind::Pulse => "pulse",
        NoteKind::Revival => "revival",
        NoteKind::Home => "home",
    }
}
