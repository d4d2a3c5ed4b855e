//! Mailboxes: send, read, mark.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_core::store::{Mail, Mark, Outgoing, StoreError};
use brigade_wire::name::{MemberName, TeamName};

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::{Stream, Subjects};
use crate::mail_message::{self, CREATED, MailMessage};
use crate::marks::{KnownRange, MailboxMarks, READ_KEPT};
use crate::read::{ReadRange, StoredMessage};
use crate::write::{INCARNATION, PendingWrite};

/// How often to look for a message that the server reports as a duplicate, and how long to wait in between.
const DUPLICATE_CHECKS: usize = 5;
const DUPLICATE_CHECK_PAUSE: Duration = Duration::from_millis(200);
/// Limits on messages that were received by the watch but not confirmed by a read. An unconfirmed message cannot
/// leave the inbox. Above the first limit a background task reads the mailbox; above the second, the next
/// caller does.
const UNCONFIRMED_LIMIT: usize = 64;
const MAX_UNCONFIRMED: usize = 256;
/// Delay of that background read. Right after a message arrives, a caller is busy reading it.
const CONFIRM_DELAY: Duration = Duration::from_millis(100);
/// How long to wait for a replica that is behind.
const REPLICA_PAUSE: Duration = Duration::from_millis(5);

/// A mailbox as far as this process knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedMailbox {
    /// All messages from the start of the inbox up to this sequence are known.
    complete_upto: u64,
    /// The last known message. A message before it may have been missed by the watch.
    last_seq: u64,
    messages: BTreeMap<u64, MailMessage>,
    /// Whether the marks were confirmed to be current (see `confirm_marks`).
    marks_confirmed: bool,
    /// The watch generation in which the mailbox was read: later messages were received by that watch.
    generation: Option<u64>,
    /// Whether a background task is reading the unconfirmed messages.
    confirming: bool,
    /// The marks this process last read or wrote, and their sequence.
    marks: Option<(MailboxMarks, u64)>,
}

impl CachedMailbox {
    /// Adds a message received by the watch, if the watch has missed nothing since the mailbox was read. Returns
    /// whether the caller should start a background read.
    pub(crate) fn add_heard(&mut self, generation: u64, mail_message: MailMessage) -> bool {
        if self.generation != Some(generation) {
            return false;
        }
        self.last_seq = self.last_seq.max(mail_message.seq);
        self.messages.insert(mail_message.seq, mail_message);
        let many = !self.confirming && self.unconfirmed() >= UNCONFIRMED_LIMIT;
        self.confirming |= many;
        many
    }

    /// How many messages are not confirmed by a read.
    fn unconfirmed(&self) -> usize {
        self.messages.range(self.complete_upto + 1..).count()
    }

    /// Adds messages that were read from the stream, in order.
    fn add_read(&mut self, read: &[StoredMessage]) {
        for stored in read {
            self.complete_upto = self.complete_upto.max(stored.seq);
            self.last_seq = self.last_seq.max(stored.seq);
            if let Some(mail_message) = MailMessage::read(stored) {
                self.messages.insert(mail_message.seq, mail_message);
            }
        }
    }

    /// Records that every message up to this sequence was received or read.
    pub(crate) fn confirm_upto(&mut self, generation: u64, seq: u64) {
        if self.generation == Some(generation) {
            self.complete_upto = self.complete_upto.max(seq);
        }
    }

    /// Replaces the marks by newer ones that the watch received.
    pub(crate) fn add_heard_marks(&mut self, generation: u64, marks: MailboxMarks, seq: u64) {
        let is_newer = self.marks.as_ref().is_none_or(|(_, cached)| *cached < seq);
        if self.generation == Some(generation) && is_newer {
            self.marks = Some((marks, seq));
        }
    }

    /// The marks, if the watch cannot have missed a newer version.
    fn current_marks(&self, generation: Option<u64>) -> Option<(MailboxMarks, u64)> {
        let heard = generation.is_some() && self.generation == generation;
        self.marks.clone().filter(|_| heard)
    }
}

/// How many mailboxes to cache.
const MAX_CACHED: usize = 1000;

/// A cached mailbox, shared by its readers and the watch.
pub(crate) type MailboxHandle = Arc<tokio::sync::Mutex<CachedMailbox>>;

/// The mailboxes this process has read.
#[derive(Debug, Default)]
pub(crate) struct MailboxCache(Mutex<HashMap<(TeamName, MemberName), MailboxHandle>>);

impl MailboxCache {
    /// The cached mailbox, created if necessary.
    pub(crate) fn get_or_create(&self, team: &TeamName, member: &MemberName) -> MailboxHandle {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mailboxes.len() > MAX_CACHED {
            mailboxes.clear();
        }
        Arc::clone(mailboxes.entry((team.clone(), member.clone())).or_default())
    }

    /// The cached mailboxes of a team.
    pub(crate) fn of_team(&self, team: &TeamName) -> Vec<(MemberName, MailboxHandle)> {
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = mailboxes.iter().filter(|((in_team, _), _)| in_team == team);
        theirs.map(|((_, name), mailbox)| (name.clone(), Arc::clone(mailbox))).collect()
    }

    /// The cached mailbox, if there is one.
    pub(crate) fn get(&self, team: &TeamName, member: &str) -> Option<MailboxHandle> {
        let member = member.parse().ok()?;
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.get(&(team.clone(), member)).map(Arc::clone)
    }
}

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
        // The same message id sent to two members is two messages.
        let id = format!("{}>{to}", message.msg_id);
        let pending = PendingWrite {
            id: Some(id.clone()),
            ..PendingWrite::new(subject.clone(), entry.as_bytes())
        };
        let pending = pending
            .with_header(INCARNATION, incarnation)
            .with_header(CREATED, message.team_created.to_string());
        let began = Instant::now();
        loop {
            let ack = self.write_with_ack(pending.clone(), &doing).await?;
            if !ack.duplicate || self.has(subjects, &subject, &id, &doing).await? {
                return Ok(());
            }
            if !ack.in_progress {
                // Another sender used this id, and the server would drop this message as a duplicate.
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

    /// Whether a message with this id is on a subject.
    async fn has(
        &self,
        subjects: &Subjects,
        subject: &str,
        id: &str,
        doing: &str,
    ) -> Result<bool, StoreError> {
        let stream = subjects.stream(Stream::Mail);
        let has_id = |stored: &StoredMessage| stored.header("Nats-Msg-Id") == Some(id);
        // The answering replica may be behind.
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

    /// The marks of a mailbox, and their sequence.
    async fn marks(
        &self,
        subjects: &Subjects,
        member: &MemberName,
    ) -> Result<(MailboxMarks, u64), StoreError> {
        let doing = format!("read the marks of {member}");
        let found =
            self.last(&subjects.stream(Stream::Mail), &subjects.marks(member), &doing).await?;
        let Some(found) = found else { return Ok((MailboxMarks::default(), 0)) };
        let malformed =
            |error: serde_json::Error| NatsError::Malformed(error.to_string()).while_doing(&doing);
        Ok((serde_json::from_slice(&found.payload).map_err(malformed)?, found.seq))
    }

    /// The current marks, even if the answering replica is behind. Writes them back unchanged, which succeeds
    /// only if they are the last version. Needed once before showing mail to a model; after that the process
    /// knows its own marks.
    async fn confirm_marks(
        &self,
        subjects: &Subjects,
        member: &MemberName,
    ) -> Result<(MailboxMarks, u64), StoreError> {
        loop {
            let (marks, seq) = self.marks(subjects, member).await?;
            let again = marks.unchanged();
            match self.write_marks(subjects, member, &again, seq).await {
                Err(StoreError::Conflict) => tokio::time::sleep(REPLICA_PAUSE).await,
                written => return written.map(|seq| (again, seq)),
            }
        }
    }

    async fn write_marks(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        marks: &MailboxMarks,
        expected_last: u64,
    ) -> Result<u64, StoreError> {
        let text = serde_json::to_vec(marks).unwrap_or_default();
        let subject = subjects.marks(member);
        let pending = PendingWrite::new(subject.clone(), &text).expect_last(subject, expected_last);
        self.write(pending, &format!("mark the mail of {member}")).await
    }

    /// Reads the messages that arrived since the mailbox was last read.
    async fn refresh(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        cached: &mut CachedMailbox,
        floor: u64,
        last: u64,
        heard: bool,
    ) -> Result<(), StoreError> {
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let doing = format!("read the mail of {member}");
        if last > if heard { cached.last_seq } else { cached.complete_upto } {
            let from = cached.complete_upto.max(floor) + 1;
            cached.add_read(&self.read(&stream, &filter, ReadRange::From(from), &doing).await?);
        }
        cached.messages = cached.messages.split_off(&(floor + 1));
        Ok(())
    }

    /// Reads the unconfirmed messages in the background, so that no caller waits for it.
    pub(crate) async fn confirm_messages(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        mailbox: &MailboxHandle,
    ) {
        tokio::time::sleep(CONFIRM_DELAY).await;
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let from = mailbox.lock().await.complete_upto + 1;
        let doing = format!("read the mail of {member}");
        let read = self.read(&stream, &filter, ReadRange::From(from), &doing).await;
        let mut cached = mailbox.lock().await;
        cached.confirming = false;
        // If the read failed, the next received message starts another.
        cached.add_read(&read.unwrap_or_default());
    }

    /// The sequence of the last message in a mailbox. Everything up to `heard` is known.
    async fn newest(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        heard: u64,
    ) -> Result<u64, StoreError> {
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let doing = format!("read the mail of {member}");
        let last = self.last_unless_known(&stream, &filter, heard, &doing).await?;
        Ok(last.map_or(0, |last| last.seq).max(heard))
    }

    /// The messages in a mailbox. `generation` is the current watch generation of the team, if this process
    /// watches it.
    pub(crate) async fn inbox(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        incarnation: &str,
        cached: &mut CachedMailbox,
        generation: Option<u64>,
    ) -> Result<Vec<Mail>, StoreError> {
        let is_complete = generation.is_some() && cached.generation == generation;
        let heard = is_complete && cached.unconfirmed() < MAX_UNCONFIRMED;
        let current_marks = cached.current_marks(generation);
        let marks = async {
            match current_marks {
                _ if generation.is_some() && !cached.marks_confirmed => {
                    self.confirm_marks(subjects, member).await
                }
                Some(heard) => Ok(heard),
                None => self.marks(subjects, member).await,
            }
        };
        let newest = self.newest(subjects, member, if heard { cached.last_seq } else { 0 });
        let ((marks, seq), last) = tokio::try_join!(marks, newest)?;
        cached.marks_confirmed |= generation.is_some();
        // Never go back to older marks, or a message would be shown twice.
        let (marks, seq) = match cached.marks.take() {
            Some(seen) if seen.1 > seq => seen,
            _ => (marks, seq),
        };
        self.refresh(subjects, member, cached, marks.inbox_start(last), last, heard).await?;
        cached.generation = generation;
        let mail = |mail_message: &MailMessage| Mail {
            key: mail_message.key,
            json: mail_message.marked(marks.is_read(mail_message.seq)),
        };
        let (read, unread): (Vec<&MailMessage>, Vec<&MailMessage>) = cached
            .of_incarnation(incarnation)
            .partition(|mail_message| marks.is_read(mail_message.seq));
        let hidden = read.len().saturating_sub(READ_KEPT);
        let mut visible: Vec<&MailMessage> = read.into_iter().skip(hidden).chain(unread).collect();
        visible.sort_unstable_by_key(|mail_message| mail_message.seq);
        let mail = visible.into_iter().map(mail).collect();
        cached.marks = Some((marks, seq));
        Ok(mail)
    }

    /// Marks messages.
    pub(crate) async fn mark(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
        incarnation: &str,
        cached: &mut CachedMailbox,
    ) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        loop {
            // The cached marks are good enough: if they are old, the conditional write fails.
            let (marks, seq) = match cached.marks.take() {
                Some(seen) => seen,
                None => self.marks(subjects, member).await?,
            };
            let has = |cached: &CachedMailbox, key| {
                cached.messages.values().any(|mail_message| mail_message.key == key)
            };
            if !keys.iter().all(|key| has(cached, *key)) {
                let last = self.newest(subjects, member, 0).await?;
                self.refresh(subjects, member, cached, marks.inbox_start(last), last, false)
                    .await?;
            }
            let known_range = KnownRange {
                start: marks.inbox_start(cached.last_seq),
                complete_upto: cached.complete_upto,
            };
            // Ignore messages from an earlier team of the same name.
            let above = cached.messages.range(known_range.start + 1..);
            let above = above.filter(|(_, mail_message)| mail_message.incarnation == incarnation);
            let all: Vec<(u64, MessageKey)> =
                above.map(|(seq, mail_message)| (*seq, mail_message.key)).collect();
            let Some(next) = marks.with(known_range, &all, keys, mark) else {
                cached.marks = Some((marks, seq));
                return Ok(());
            };
            match self.write_marks(subjects, member, &next, seq).await {
                Err(StoreError::Conflict) => {}
                written => {
                    cached.marks = Some((next, written?));
                    return Ok(());
                }
            }
        }
    }
}

impl CachedMailbox {
    /// The messages of this incarnation, each once. A message that was sent again after the server forgot its
    /// id is stored twice.
    fn of_incarnation<'m>(&'m self, incarnation: &'m str) -> impl Iterator<Item = &'m MailMessage> {
        let mut seen = HashSet::new();
        let messages = self
            .messages
            .values()
            .filter(move |mail_message| mail_message.incarnation == incarnation);
        messages.filter(move |mail_message| seen.insert(mail_message.key))
    }
}
