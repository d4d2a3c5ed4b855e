//! Mailboxes: send, look, mark.

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

/// How often a message is looked for that the server says it has, and how long between.
const LOOKS: usize = 5;
const AGAIN: Duration = Duration::from_millis(200);
/// How many messages may be known by hearing alone before they are looked up: what is not certain cannot leave
/// the inbox. Somebody does so meanwhile, and if not in time, then who looks.
const HEARSAY: usize = 64;
const TOO_MUCH_HEARSAY: usize = 256;
/// How long after it was heard: at that moment somebody looks at the message.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// How long to wait for a replica that is behind.
const BEHIND: Duration = Duration::from_millis(5);

/// A mailbox as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox {
    /// All its messages up to this number were read, from where the inbox begins.
    sure: u64,
    /// The last that was read or heard. One that was not heard may stand before it.
    upto: u64,
    letters: BTreeMap<u64, Letter>,
    /// Whether the marks were once seen as they are everywhere.
    fenced: bool,
    /// In which following of its team it was read: what came since was heard.
    following: Option<u64>,
    /// Whether somebody looks up what was only heard.
    looked_up: bool,
    /// The marks as this process last saw or wrote them.
    marks: Option<(Marks, u64)>,
}

impl Mailbox {
    /// Takes in what was heard, if nothing was missed since the mailbox was read. Gives whether what was only heard
    /// is to be looked up.
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

    /// How many are known by hearing alone.
    fn only_heard(&self) -> usize {
        self.letters.range(self.sure + 1..).count()
    }

    /// Takes in what was read, in order.
    fn take(&mut self, read: &[Stored]) {
        for stored in read {
            self.sure = self.sure.max(stored.seq);
            self.upto = self.upto.max(stored.seq);
            if let Some(letter) = Letter::read(stored) {
                self.letters.insert(letter.seq, letter);
            }
        }
    }

    /// Everything up to this number was heard, or found since.
    pub(crate) fn heard_upto(&mut self, following: u64, seq: u64) {
        if self.following == Some(following) {
            self.sure = self.sure.max(seq);
        }
    }

    /// The same of what somebody marked.
    pub(crate) fn hear_marks(&mut self, following: u64, marks: Marks, seq: u64) {
        let is_newer = self.marks.as_ref().is_none_or(|(_, known)| *known < seq);
        if self.following == Some(following) && is_newer {
            self.marks = Some((marks, seq));
        }
    }

    /// The marks, if nothing about them can have been missed.
    fn marks_heard(&self, following: Option<u64>) -> Option<(Marks, u64)> {
        let heard = following.is_some() && self.following == following;
        self.marks.clone().filter(|_| heard)
    }
}

/// How many mailboxes are remembered.
const REMEMBERED: usize = 1000;

/// A mailbox that whoever looks into it and whoever hears for it share.
pub(crate) type Shared = Arc<tokio::sync::Mutex<Mailbox>>;

/// The mailboxes this process has looked into.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes(Mutex<HashMap<(TeamName, MemberName), Shared>>);

impl Mailboxes {
    /// One of them.
    pub(crate) fn of(&self, team: &TeamName, of: &MemberName) -> Shared {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mailboxes.len() > REMEMBERED {
            mailboxes.clear();
        }
        Arc::clone(mailboxes.entry((team.clone(), of.clone())).or_default())
    }

    /// Those of a team that were looked into.
    pub(crate) fn of_team(&self, team: &TeamName) -> Vec<(MemberName, Shared)> {
        let mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = mailboxes.iter().filter(|((of, _), _)| of == team);
        theirs.map(|((_, name), mailbox)| (name.clone(), Arc::clone(mailbox))).collect()
    }

    /// One of them, if it was looked into.
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
        let doing = format!("send {to} a message");
        // The same id to two members is two messages.
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
                // Somebody else has used the id, so that this message would be taken for theirs.
                return self.write(Draft { id: None, ..draft }, &doing).await.map(drop);
            }
            self.pause(began, self.patience, "it is being stored", &doing).await?;
        }
    }

    /// Whether a message of this id stands under a subject.
    async fn has(
        &self,
        place: &Place,
        subject: &str,
        id: &str,
        doing: &str,
    ) -> Result<bool, StoreError> {
        let stream = place.stream(Stream::Mail);
        let is = |stored: &Stored| stored.header("Nats-Msg-Id") == Some(id);
        // The server that is asked may be behind.
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

    /// The marks of a mailbox, and their number.
    async fn marks(&self, place: &Place, of: &MemberName) -> Result<(Marks, u64), StoreError> {
        let doing = format!("read what {of} has read");
        let found = self.last(&place.stream(Stream::Mail), &place.marks(of), &doing).await?;
        let Some(found) = found else { return Ok((Marks::default(), 0)) };
        let garbled = |error: serde_json::Error| Trouble::Garbled(error.to_string()).doing(&doing);
        Ok((serde_json::from_slice(&found.payload).map_err(garbled)?, found.seq))
    }

    /// The marks as they are, and not as a replica that is behind believes: they are written again as
    /// they were seen, which only succeeds onto the last. Who is about to put mail before a model does
    /// so once; afterwards it knows what it marked itself.
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

    /// Reads what came into a mailbox since it was read last.
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

    /// Looks up what was only heard, and keeps nobody waiting for that.
    pub(crate) async fn look_up(&self, place: &Place, of: &MemberName, mailbox: &Shared) {
        tokio::time::sleep(AFTERWARDS).await;
        let (stream, filter) = (place.stream(Stream::Mail), place.mailbox(of));
        let from = mailbox.lock().await.sure + 1;
        let doing = format!("read the mail of {of}");
        let read = self.read(&stream, &filter, Which::From(from), &doing).await;
        let mut known = mailbox.lock().await;
        known.looked_up = false;
        // If it fails, it is tried again with the next that is heard.
        known.take(&read.unwrap_or_default());
    }

    /// The number of the last message in a mailbox, of which all up to a number was heard.
    async fn newest(&self, place: &Place, of: &MemberName, heard: u64) -> Result<u64, StoreError> {
        let (stream, filter) = (place.stream(Stream::Mail), place.mailbox(of));
        let doing = format!("read the mail of {of}");
        let last = self.last_beyond(&stream, &filter, heard, &doing).await?;
        Ok(last.map_or(0, |last| last.seq).max(heard))
    }

    /// What is in a mailbox. `following` is the number of the following of its team that goes on, if
    /// somebody waits here for mail.
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
        // Never older ones than were seen before: what was shown would be shown again.
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
            // What was seen last will do: were it old, the write would not be taken.
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
            // What an earlier team of this name has left is in nobody's way.
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
    /// The messages of this life of the team, each once: one that was sent again after the server had
    /// forgotten its id is the same.
    fn of_life<'m>(&'m self, life: &'m str) -> impl Iterator<Item = &'m Letter> {
        let mut seen = HashSet::new();
        let letters = self.letters.values().filter(move |letter| letter.life == life);
        letters.filter(move |letter| seen.insert(letter.key))
    }
}
