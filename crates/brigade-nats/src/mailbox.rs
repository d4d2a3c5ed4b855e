//! Reads inboxes, and marks messages as read or shown.

mod linked;
mod refresh;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brigade_core::event::MessageKey;
use brigade_core::store::{Mail, Mark, StoreError};
use brigade_wire::name::{MemberName, TeamName};

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::{Stream, Subjects};
use crate::mail_message::MailMessage;
use crate::marks::{KnownRange, MailboxMarks, READ_KEPT};
use crate::write::PendingWrite;

/// A message is unconfirmed if the watch has received it, but no read of the stream has returned it yet.
/// Unconfirmed messages cannot leave the inbox. If `UNCONFIRMED_LIMIT` messages are unconfirmed, a background task
/// reads the mailbox. If `MAX_UNCONFIRMED` messages are unconfirmed, the next call of `inbox` reads the mailbox.
const UNCONFIRMED_LIMIT: usize = 64;
const MAX_UNCONFIRMED: usize = 256;
/// How long to wait before the next request if a replica is behind.
const REPLICA_PAUSE: Duration = Duration::from_millis(5);

/// The part of a mailbox that this process knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedMailbox {
    /// The cache holds all messages from the start of the inbox up to this sequence.
    complete_upto: u64,
    /// The sequence of the last known message. The watch may have missed an earlier message.
    last_seq: u64,
    messages: BTreeMap<u64, MailMessage>,
    /// Whether the marks were confirmed to be current (see `confirm_marks`).
    marks_confirmed: bool,
    /// The generation of the watch that was running when the mailbox was read. That watch receives all later
    /// messages.
    generation: Option<u64>,
    /// Whether a background task is reading the unconfirmed messages.
    confirming: bool,
    /// Whether the mailbox is too large to hold all of it. The cache then holds a part of each sender's mail.
    crowded: bool,
    /// The read marks that this process last read or wrote, and the sequence at which they were written.
    marks: Option<(MailboxMarks, u64)>,
}

impl CachedMailbox {
    /// Adds a message that the watch received. Does nothing if the watch may have missed messages since the
    /// mailbox was read. Returns whether the caller should start a background read.
    pub(crate) fn add_heard(&mut self, generation: u64, mail_message: &MailMessage) -> bool {
        if self.generation != Some(generation) {
            return false;
        }
        self.last_seq = self.last_seq.max(mail_message.seq);
        self.messages.insert(mail_message.seq, mail_message.clone());
        let many = !self.confirming && self.unconfirmed() >= UNCONFIRMED_LIMIT;
        self.confirming |= many;
        many
    }

    /// Returns the number of unconfirmed messages (see [`UNCONFIRMED_LIMIT`]).
    fn unconfirmed(&self) -> usize {
        self.messages.range(self.complete_upto + 1..).count()
    }

    /// Adds the messages of a read. The cache then has every message up to `complete_upto`.
    pub(crate) fn add_read(&mut self, messages: Vec<MailMessage>, complete_upto: u64) {
        self.complete_upto = self.complete_upto.max(complete_upto);
        self.last_seq = self.last_seq.max(complete_upto);
        for mail_message in messages {
            self.last_seq = self.last_seq.max(mail_message.seq);
            self.messages.insert(mail_message.seq, mail_message);
        }
    }

    /// Records that the cache has every message up to this sequence.
    pub(crate) fn confirm_upto(&mut self, generation: u64, seq: u64) {
        if self.generation == Some(generation) {
            self.complete_upto = self.complete_upto.max(seq);
        }
    }

    /// Replaces the cached read marks with newer read marks that the watch received.
    pub(crate) fn add_heard_marks(&mut self, generation: u64, marks: MailboxMarks, seq: u64) {
        let is_newer = self.marks.as_ref().is_none_or(|(_, cached)| *cached < seq);
        if self.generation == Some(generation) && is_newer {
            self.marks = Some((marks, seq));
        }
    }

    /// Returns the cached read marks, unless the watch may have missed a newer version.
    fn current_marks(&self, generation: Option<u64>) -> Option<(MailboxMarks, u64)> {
        let heard = generation.is_some() && self.generation == generation;
        self.marks.clone().filter(|_| heard)
    }
}

/// How many mailboxes to cache.
const MAX_CACHED: usize = 1000;

/// A cached mailbox. The watch and the readers of the mailbox share it.
pub(crate) type MailboxHandle = Arc<tokio::sync::Mutex<CachedMailbox>>;

/// A cache of the mailboxes that this process has read.
#[derive(Debug, Default)]
pub(crate) struct MailboxCache(Mutex<HashMap<(TeamName, MemberName), MailboxHandle>>);

impl MailboxCache {
    /// Returns the cached mailbox. Creates an empty one if it is missing.
    pub(crate) fn get_or_create(&self, team: &TeamName, member: &MemberName) -> MailboxHandle {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mailboxes.len() > MAX_CACHED {
            mailboxes.clear();
        }
        Arc::clone(mailboxes.entry((team.clone(), member.clone())).or_default())
    }

    /// Returns the cached mailboxes of a team.
    pub(crate) fn of_team(&self, team: &TeamName) -> Vec<(MemberName, MailboxHandle)> {
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = mailboxes.iter().filter(|((in_team, _), _)| in_team == team);
        theirs.map(|((_, name), mailbox)| (name.clone(), Arc::clone(mailbox))).collect()
    }

    /// Returns the cached mailbox, if there is one.
    pub(crate) fn get(&self, team: &TeamName, member: &str) -> Option<MailboxHandle> {
        let member = member.parse().ok()?;
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.get(&(team.clone(), member)).map(Arc::clone)
    }
}

impl NatsConnection {
    /// Returns the read marks of a mailbox, and the sequence at which they were written.
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
        Ok((MailboxMarks::read(&found.payload, found.seq).map_err(malformed)?, found.seq))
    }

    /// Returns the current read marks, even if the replica that answers is behind. To confirm that the marks are
    /// current, writes them back unchanged: the write succeeds only if they are the last version. A process must
    /// do this once before it shows mail to a model. Later it knows the marks, because it writes them itself.
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

    /// Returns the sequence of the last message in a mailbox, or `heard` if it is higher. `heard` is the last
    /// sequence that the caller knows.
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

    /// Returns the messages in a mailbox. `generation` is the team's current watch generation, if this process
    /// watches the team.
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
        // Never return to older read marks, because a message could then be shown twice.
        let (marks, seq) = match cached.marks.take() {
            Some(seen) if seen.1 > seq => seen,
            _ => (marks, seq),
        };
        self.refresh(subjects, member, cached, &marks, last, heard).await?;
        // The watch does not add to a crowded mailbox. Every call of `inbox` reads it again.
        cached.generation = generation.filter(|_| !cached.crowded);
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

    /// Marks messages as read or shown.
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
            // If the cached read marks are outdated, the write fails, and the loop reads the marks again.
            let (marks, seq) = match cached.marks.take() {
                Some(seen) => seen,
                None => self.marks(subjects, member).await?,
            };
            let has = |cached: &CachedMailbox, key| {
                cached.messages.values().any(|mail_message| mail_message.key == key)
            };
            if !keys.iter().all(|key| has(cached, *key)) {
                let last = self.newest(subjects, member, 0).await?;
                self.refresh(subjects, member, cached, &marks, last, false).await?;
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
    /// Returns the messages of one incarnation of the team, without repetitions. If a sender retries after the
    /// server has forgotten the id of the message, the stream stores the message twice.
    fn of_incarnation<'m>(&'m self, incarnation: &'m str) -> impl Iterator<Item = &'m MailMessage> {
        let mut seen = HashSet::new();
        let messages = self
            .messages
            .values()
            .filter(move |mail_message| mail_message.incarnation == incarnation);
        messages.filter(move |mail_message| seen.insert((&mail_message.from, mail_message.key)))
    }
}
