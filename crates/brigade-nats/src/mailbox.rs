//! Mailboxes: send, read, mark.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_core::store::{Mail, Mark, Outgoing, StoreError};
use brigade_wire::name::{MemberName, TeamName};

use crate::engine::Engine;
use crate::error::Trouble;
use crate::layout::{Place, Stream};
use crate::letter::{self, CREATED, Letter};
use crate::marks::{Extent, Marks, STAY};
use crate::read::{Stored, Which};
use crate::write::{Draft, LIFE};

/// How often to look for a message that the server reports as a duplicate, and how long to wait in between.
const LOOKS: usize = 5;
const AGAIN: Duration = Duration::from_millis(200);
/// Limits on messages that were received by the watch but not confirmed by a read. An unconfirmed message cannot
/// leave the inbox. Above the first limit a background task reads the mailbox; above the second, the next
/// caller does.
const TOO_MUCH_HEARSAY: usize = 256;
/// Delay of that background read. Right after a message arrives, a caller is busy reading it.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// How long to wait for a replica that is behind.
const BEHIND: Duration = Duration::from_millis(5);

/// A mailbox as far as this process knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox {
    /// All messages from the start of the inbox up to this sequence are known.
    sure: u64,
    /// The last known message. A message before it may have been missed by the watch.
    upto: u64,
    letters: BTreeMap<u64, Letter>,
    /// Whether the marks were confirmed to be current (see `fence`).
    fenced: bool,
    /// The watch generation in which the mailbox was read: later messages were received by that watch.
    following: Option<u64>,
    /// Whether a background task is reading the unconfirmed messages.
    looked_up: bool,
    /// The marks this process last read or wrote, and their sequence.
    marks: Option<(Marks, u64)>,
}

impl Mailbox {
    /// Adds a message received by the watch, if the watch has missed nothing since the mailbox was read. Returns
    /// whether the caller should start a background read.
    pub(crate) fn hear(&mut self, following: u64, letter: Letter) -> bool {
        if self.following != Some(following) {
            return false;
        }
        self.upto = self.upto.max(letter.seq);
        self.letters.insert(letter.seq, letter);
        let many = !self.looked_up && self.only_heard() >= HEARSAY;
        self.looked_up |= many;
        many
    }

    /// How many messages are not confirmed by a read.
    fn only_heard(&self) -> usize {
        self.letters.range(self.sure + 1..).count()
    }

    /// Adds messages that were read from the stream, in order.
    fn take(&mut self, read: &[Stored]) {
        for stored in read {
            self.sure = self.sure.max(stored.seq);
            self.upto = self.upto.max(stored.seq);
            if let Some(letter) = Letter::read(stored) {
                self.letters.insert(letter.seq, letter);
            }
        }
    }

    /// Records that every message up to this sequence was received or read.
    pub(crate) fn heard_upto(&mut self, following: u64, seq: u64) {
        if self.following == Some(following) {
            self.sure = self.sure.max(seq);
        }
    }

    /// Replaces the marks by newer ones that the watch received.
    pub(crate) fn hear_marks(&mut self, following: u64, marks: Marks, seq: u64) {
        let is_newer = self.marks.as_ref().is_none_or(|(_, known)| *known < seq);
        if self.following == Some(following) && is_newer {
            self.marks = Some((marks, seq));
        }
    }

    /// The marks, if the watch cannot have missed a newer version.
    fn marks_heard(&self, following: Option<u64>) -> Option<(Marks, u64)> {
        let heard = following.is_some() && self.following == following;
        self.marks.clone().filter(|_| heard)
    }
}

/// How many mailboxes to cache.
const REMEMBERED: usize = 1000;

/// A cached mailbox, shared by its readers and the watch.
pub(crate) type Shared = Arc<tokio::sync::Mutex<Mailbox>>;

/// The mailboxes this process has read.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes(Mutex<HashMap<(TeamName, MemberName), Shared>>);

impl Mailboxes {
    /// The cached mailbox, created if necessary.
    pub(crate) fn of(&self, team: &TeamName, of: &MemberName) -> Shared {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mailboxes.len() > REMEMBERED {
            mailboxes.clear();
        }
        Arc::clone(mailboxes.entry((team.clone(), of.clone())).or_default())
    }

    /// The cached mailboxes of a team.
    pub(crate) fn of_team(&self, team: &TeamName) -> Vec<(MemberName, Shared)> {
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = mailboxes.iter().filter(|((of, _), _)| of == team);
        theirs.map(|((_, name), mailbox)| (name.clone(), Arc::clone(mailbox))).collect()
    }

    /// The cached mailbox, if there is one.
    pub(crate) fn known(&self, team: &TeamName, of: &str) -> Option<Shared> {
        let of = of.parse().ok()?;
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.get(&(team.clone(), of)).map(Arc::clone)
    }
}

impl Engine {
    /// Puts a message into a mailbox.
    pub(crate) async fn post(
        &self,
        place: &Place,
        to: &MemberName,
        message: &Outgoing,
        life: &str,
    ) -> Result<(), StoreError> {
        let entry = letter::entry(message);
        let subject = place.letter(to, &message.from, letter::weight(&message.text));
        let doing = format!("send a message to {to}");
        // The same message id sent to two members is two messages.
        let id = format!("{}>{to}", message.msg_id);
        let draft = Draft { id: Some(id.clone()), ..Draft::new(subject.clone(), entry.as_bytes()) };
        let draft = draft.with(LIFE, life).with(CREATED, message.team_created.to_string());
        let began = Instant::now();
        loop {
            let ack = self.write_once(draft.clone(), &doing).await?;
            if !ack.known || self.has(place, &subject, &id, &doing).await? {
                return Ok(());
            }
            if !ack.under_way {
                // Another sender used this id, and the server would drop this message as a duplicate.
                return self.write(Draft { id: None, ..draft }, &doing).await.map(drop);
            }
            self.pause(began, self.patience, "the message is still being stored", &doing).await?;
        }
    }

    /// Whether a message with this id is on a subject.
    async fn has(
        &self,
        place: &Place,
        subject: &str,
        id: &str,
        doing: &str,
    ) -> Result<bool, StoreError> {
        let stream = place.stream(Stream::Mail);
        let is = |stored: &Stored| stored.header("Nats-Msg-Id") == Some(id);
        // The answering replica may be behind.
        for _ in 0..LOOKS {
            if self.last(&stream, subject, doing).await?.as_ref().is_some_and(is)
                || self.read(&stream, subject, Which::From(1), doing).await?.iter().any(is)
            {
                return Ok(true);
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(false)
    }

    /// The marks of a mailbox, and their sequence.
    async fn marks(&self, place: &Place, of: &MemberName) -> Result<(Marks, u64), StoreError> {
        let doing = format!("read the marks of {of}");
        let found = self.last(&place.stream(Stream::Mail), &place.marks(of), &doing).await?;
        let Some(found) = found else { return Ok((Marks::default(), 0)) };
        let garbled = |error: serde_json::Error| Trouble::Garbled(error.to_string()).doing(&doing);
        Ok((serde_json::from_slice(&found.payload).map_err(garbled)?, found.seq))
    }

    /// The current marks, even if the answering replica is behind. Writes them back unchanged, which succeeds
    /// only if they are the last version. Needed once before showing mail to a model; after that the process
    /// knows its own marks.
    async fn fence(&self, place: &Place, of: &MemberName) -> Result<(Marks, u64), StoreError> {
        loop {
            let (marks, seq) = self.marks(place, of).await?;
            let again = marks.unchanged();
            match self.write_marks(place, of, &again, seq).await {
                Err(StoreError::Conflict) => tokio::time::sleep(BEHIND).await,
                written => return written.map(|seq| (again, seq)),
            }
        }
    }

    async fn write_marks(
        &self,
        place: &Place,
        of: &MemberName,
        marks: &Marks,
        onto: u64,
    ) -> Result<u64, StoreError> {
        let text = serde_json::to_vec(marks).unwrap_or_default();
        let subject = place.marks(of);
        let draft = Draft::new(subject.clone(), &text).onto(subject, onto);
        self.write(draft, &format!("mark the mail of {of}")).await
    }

    /// Reads the messages that arrived since the mailbox was last read.
    async fn refresh(
        &self,
        place: &Place,
        of: &MemberName,
        known: &mut Mailbox,
        floor: u64,
        last: u64,
        heard: bool,
    ) -> Result<(), StoreError> {
        let (stream, filter) = (place.stream(Stream::Mail), place.mailbox(of));
        let doing = format!("read the mail of {of}");
        if last > if heard { known.upto } else { known.sure } {
            let from = known.sure.max(floor) + 1;
            known.take(&self.read(&stream, &filter, Which::From(from), &doing).await?);
        }
        known.letters = known.letters.split_off(&(floor + 1));
        Ok(())
    }

    /// Reads the unconfirmed messages in the background, so that no caller waits for it.
    pub(crate) async fn look_up(&self, place: &Place, of: &MemberName, mailbox: &Shared) {
        tokio::time::sleep(AFTERWARDS).await;
        let (stream, filter) = (place.stream(Stream::Mail), place.mailbox(of));
        let from = mailbox.lock().await.sure + 1;
        let doing = format!("read the mail of {of}");
        let read = self.read(&stream, &filter, Which::From(from), &doing).await;
        let mut known = mailbox.lock().await;
        known.looked_up = false;
        // If the read failed, the next received message starts another.
        known.take(&read.unwrap_or_default());
    }

    /// The sequence of the last message in a mailbox. Everything up to `heard` is known.
    async fn newest(&self, place: &Place, of: &MemberName, heard: u64) -> Result<u64, StoreError> {
        let (stream, filter) = (place.stream(Stream::Mail), place.mailbox(of));
        let doing = format!("read the mail of {of}");
        let last = self.last_beyond(&stream, &filter, heard, &doing).await?;
        Ok(last.map_or(0, |last| last.seq).max(heard))
    }

    /// The messages in a mailbox. `following` is the current watch generation of the team, if this process
    /// watches it.
    pub(crate) async fn inbox(
        &self,
        place: &Place,
        of: &MemberName,
        life: &str,
        known: &mut Mailbox,
        following: Option<u64>,
    ) -> Result<Vec<Mail>, StoreError> {
        let known_all = following.is_some() && known.following == following;
        let heard = known_all && known.only_heard() < TOO_MUCH_HEARSAY;
        let marks_heard = known.marks_heard(following);
        let marks = async {
            match marks_heard {
                _ if following.is_some() && !known.fenced => self.fence(place, of).await,
                Some(heard) => Ok(heard),
                None => self.marks(place, of).await,
            }
        };
        let newest = self.newest(place, of, if heard { known.upto } else { 0 });
        let ((marks, seq), last) = tokio::try_join!(marks, newest)?;
        known.fenced |= following.is_some();
        // Never go back to older marks, or a message would be shown twice.
        let (marks, seq) = match known.marks.take() {
            Some(seen) if seen.1 > seq => seen,
            _ => (marks, seq),
        };
        self.refresh(place, of, known, marks.begins(last), last, heard).await?;
        known.following = following;
        let mail = |letter: &Letter| Mail {
            key: letter.key,
            json: letter.marked(marks.is_read(letter.seq)),
        };
        let (read, unread): (Vec<&Letter>, Vec<&Letter>) =
            known.of_life(life).partition(|letter| marks.is_read(letter.seq));
        let gone = read.len().saturating_sub(STAY);
        let mut there: Vec<&Letter> = read.into_iter().skip(gone).chain(unread).collect();
        there.sort_unstable_by_key(|letter| letter.seq);
        let mail = there.into_iter().map(mail).collect();
        known.marks = Some((marks, seq));
        Ok(mail)
    }

    /// Marks messages.
    pub(crate) async fn mark(
        &self,
        place: &Place,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
        life: &str,
        known: &mut Mailbox,
    ) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        loop {
            // The cached marks are good enough: if they are old, the conditional write fails.
            let (marks, seq) = match known.marks.take() {
                Some(seen) => seen,
                None => self.marks(place, of).await?,
            };
            let has = |known: &Mailbox, key| known.letters.values().any(|letter| letter.key == key);
            if !keys.iter().all(|key| has(known, *key)) {
                let last = self.newest(place, of, 0).await?;
                self.refresh(place, of, known, marks.begins(last), last, false).await?;
            }
            let extent = Extent { began: marks.begins(known.upto), sure: known.sure };
            // Ignore messages from an earlier team of the same name.
            let above = known.letters.range(extent.began + 1..);
            let above = above.filter(|(_, letter)| letter.life == life);
            let all: Vec<(u64, MessageKey)> =
                above.map(|(seq, letter)| (*seq, letter.key)).collect();
            let Some(next) = marks.with(extent, &all, keys, mark) else {
                known.marks = Some((marks, seq));
                return Ok(());
            };
            match self.write_marks(place, of, &next, seq).await {
                Err(StoreError::Conflict) => {}
                written => {
                    known.marks = Some((next, written?));
                    return Ok(());
                }
            }
        }
    }
}

impl Mailbox {
    /// The messages of this incarnation, each once. A message that was sent again after the server forgot its
    /// id is stored twice.
    fn of_life<'m>(&'m self, life: &'m str) -> impl Iterator<Item = &'m Letter> {
        let mut seen = HashSet::new();
        let letters = self.letters.values().filter(move |letter| letter.life == life);
        letters.filter(move |letter| seen.insert(letter.key))
    }
}
