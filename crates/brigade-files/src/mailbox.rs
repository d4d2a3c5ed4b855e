//! One member's mailbox: the inbox that Claude Code shares, and beside it our journal and state.
//!
//! A message is acknowledged when it stands in the journal. What of the journal is not yet in the
//! inbox is the outbox, and whoever next holds the locks puts all of it there. Two locks are taken,
//! neither of them waited for while the other is held: our own on the state (a `flock`, which the
//! kernel gives back when its holder dies) keeps brigade processes apart, and Claude Code's keeps
//! the native ones out.

use std::collections::HashSet;
use std::sync::Arc;

use brigade_wire::inbox::{self, Inbox};
use serde_json::value::RawValue;

use super::dir::{Dir, Stamp};
use super::draft::is_for;
use super::journal::{Journal, Place, Tail};
use super::lock::{self, LockAt, Patience, Taker, Try};
use super::lock_id::LockId;
use super::state::{self, Head, Risk, StateFile};
use brigade_core::clock::Clock;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{Mark, Obstacle, Outgoing, StoreError};

/// How long, in nanoseconds, an inbox is left alone by us between two writes if there is a crowd.
const COURTESY: i64 = 2_000_000;

/// How long a program that slept through the loss of its lock is expected to come back.
const SLEEPER: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// A mailbox, open.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Whose it is.
    pub(crate) member: String,
    pub(crate) journal: Journal,
    pub(crate) state: StateFile,
    /// Our own folder for mail.
    pub(crate) mail: Arc<Dir>,
    /// Where copies of damaged inboxes go.
    pub(crate) aside: Dir,
}

/// What is to be done to a mailbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'w> {
    /// See to it that the journal is in the inbox as far as this.
    Merge { upto: u64 },
    /// Put into the inbox what waits, and into the journal what others did.
    Look,
    /// Take out of the inbox what is read, if there is nothing else in it.
    Tidy,
    /// Mark messages.
    Mark { keys: &'w [MessageKey], mark: Mark },
}

/// What one try came to.
#[derive(Debug)]
pub(crate) enum Step {
    Done,
    Wait(Obstacle),
    /// Somebody changed the inbox under us; nothing was done.
    Again,
}

/// What a look at the inbox without its lock came to.
enum Looked {
    Settled,
    /// Torn under our eyes, or for good.
    Torn(Stamp),
    /// Messages have to be merged again.
    Rewound,
}

/// What a try needs to know of the world.
pub(crate) struct World<'w> {
    pub(crate) inboxes: &'w Dir,
    pub(crate) clock: &'w dyn Clock,
    /// When the team that is there now was created, in milliseconds, if that can be read.
    pub(crate) team_created: &'w dyn Fn() -> Option<u64>,
}

/// Takes the lock of the inbox, and keeps the head up to date about it.
struct MailboxTaker<'t> {
    state: &'t StateFile,
    head: &'t mut Head,
    clock: &'t dyn Clock,
}

impl Taker for MailboxTaker<'_> {
    fn taking(&mut self, id: LockId) -> Result<(), StoreError> {
        self.head.lock = id;
        self.state.write_head(self.head)
    }

    fn robbing(&mut self) -> Result<(), StoreError> {
        self.head.at_risk(self.head.after.upto, self.clock);
        self.state.write_head(self.head)
    }
}

/// Gives the state's lock back.
struct Unlock<'s>(&'s StateFile);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl Mailbox {
    pub(super) fn file(&self) -> String {
        format!("{}.json", self.member)
    }

    /// Tries once to do the work. Nothing waits in here, so nobody is kept waiting for long.
    pub(crate) fn attempt(
        &self,
        world: &World<'_>,
        work: Work<'_>,
        patience: &mut Patience,
    ) -> Result<Step, StoreError> {
        if !self.state.try_lock()? {
            return Ok(Step::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = Unlock(&self.state);
        let mut head = match self.state.head()? {
            Some(head) => self.resolve(world, head)?,
            None => Head::default(),
        };
        let mut tail = self.tail(&mut head)?;
        if matches!(work, Work::Merge { upto } if head.after.upto.offset >= upto) {
            return Ok(Step::Done);
        }
        if matches!(work, Work::Look) && !tail.has_sent() {
            head.after.upto = tail.end;
            match self.look(world, &mut head)? {
                Looked::Settled => return Ok(Step::Done),
                // Claude Code 2.1.50 makes a new inbox before it takes the lock, and what it has for it is
                // lost if the lock is ours at that moment.
                Looked::Torn(stamp) if !patience.is_torn_for_good(stamp) => {
                    let path = world.inboxes.path(&self.file());
                    return Ok(Step::Wait(Obstacle::Torn { path }));
                }
                Looked::Torn(_) => {}
                Looked::Rewound => tail = self.tail(&mut head)?,
            }
        }
        // Where several of us wait for one inbox, a native program may be waiting as well, and it has
        // less patience: 2.1.50 loses what it cannot write at once. What we have to write keeps, and
        // the longer it waits the more goes into one write.
        let since = nanoseconds(world.clock).wrapping_sub(head.closed_at);
        if (patience.has_waited || head.crowd) && (0..COURTESY).contains(&since) {
            return Ok(Step::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let file = self.file();
        let gone = Some(head.lock).filter(|&lock| lock != LockId::default());
        let at = LockAt {
            dir: world.inboxes,
            name: format!("{file}.lock"),
            spare: Some((&self.mail, format!("{}.lock", self.member))),
        };
        let mut taker = MailboxTaker { state: &self.state, head: &mut head, clock: world.clock };
        let lock = match patience.try_lock(at, gone, &mut taker)? {
            Try::Taken(lock) => lock,
            Try::Not(obstacle) => return Ok(Step::Wait(obstacle)),
        };
        head.crowd = patience.has_waited || tail.sent_count() > 1;
        let mut draft = match self.draft(world, &mut head, &mut tail, patience, work)? {
            Ok(draft) => draft,
            Err(obstacle) => return Ok(Step::Wait(obstacle)),
        };
        head.power_safe |= self.merge(world, &mut draft, &tail, work)?;
        // Behind the merging: what waited could be seen, and so be marked.
        if let Work::Mark { keys, mark } = work {
            self.mark(world, &mut draft, keys, mark)?;
        }
        self.commit(world, &lock, &mut head, &draft, tail.end)
    }

    /// Makes the head true: finds out whether the last write got as far as its rename.
    fn resolve(&self, world: &World<'_>, mut head: Head) -> Result<Head, StoreError> {
        let Some(temp) = head.temp.take() else { return Ok(head) };
        let file = self.file();
        let name = temp.name(&file);
        if world.inboxes.stamp(&name)?.is_some() {
            head.after = head.before;
            head.left = Stamp::default();
            // First the head, then the file: were it gone with the old head standing, what it held
            // would count as delivered.
            self.state.write_head(&head)?;
            world.inboxes.remove(&name)?;
        } else if !head.closed {
            if LockId::find(world.inboxes, &format!("{file}.lock"))? != Some(head.lock) {
                // Its writer died before it could look back, and somebody took its lock.
                head.at_risk(head.before.upto, world.clock);
            }
            head.closed = true;
            head.before = head.after;
            self.state.write_head(&head)?;
        }
        head.before = head.after;
        Ok(head)
    }

    /// What the journal holds behind what is merged, without what was seen to be read: after going
    /// back that may be among it. What was only found to be gone is merged again.
    ///
    /// A head that speaks of another journal, or none, is no help: then all of the journal is gone
    /// through, and what it knows to be read or gone is left out.
    pub(super) fn tail(&self, head: &mut Head) -> Result<Tail, StoreError> {
        let mut tail = self.journal.read_from(head.after.upto.offset)?;
        if tail.start == head.after.upto && *head != Head::default() {
            tail.forget(|read| {
                matches!(read, Event::Read { gone: false, .. } | Event::Shown { .. })
            });
            return Ok(tail);
        }
        *head = Head { lock: head.lock, power_safe: head.power_safe, ..Head::default() };
        let mut tail = self.journal.read_from(0)?;
        tail.forget(|read| matches!(read, Event::Read { .. } | Event::Shown { .. }));
        Ok(tail)
    }

    /// Writes down what others did, without keeping anybody from the inbox.
    fn look(&self, world: &World<'_>, head: &mut Head) -> Result<Looked, StoreError> {
        let file = self.file();
        // We hold what its maker held: a lock that one of us made and left is that of a dead one.
        lock::remove_abandoned(world.inboxes, &format!("{file}.lock"), head.lock)?;
        if world.inboxes.stamp(&file)?.unwrap_or_default() == head.left {
            return Ok(Looked::Settled);
        }
        let whole = world.inboxes.read(&file)?;
        let (bytes, stamp) = match &whole {
            Some(whole) => (whole.bytes.as_slice(), whole.stamp),
            None => (inbox::EMPTY, Stamp::default()),
        };
        let Ok(inbox) = Inbox::read(bytes) else { return Ok(Looked::Torn(stamp)) };
        let rewound = self.observe(world, head, &inbox, stamp)?;
        Ok(if rewound { Looked::Rewound } else { Looked::Settled })
    }

    /// Every native program that used this inbox is known to have ended. So a lock that is left is
    /// nobody's, and nobody comes back who lost one and does not know it.
    pub(crate) fn natives_ended(&self, world: &World<'_>) -> Result<Step, StoreError> {
        if !self.state.try_lock()? {
            return Ok(Step::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = Unlock(&self.state);
        let Some(head) = self.state.head()? else { return Ok(Step::Done) };
        let mut head = self.resolve(world, head)?;
        lock::remove_any(world.inboxes, &format!("{}.lock", self.file()))?;
        let _tail = self.tail(&mut head)?;
        // Once more with the doubt: what was overwritten so far is put back.
        if matches!(self.look(world, &mut head)?, Looked::Torn(_)) {
            return Ok(Step::Done);
        }
        if head.risk.take().is_some() {
            self.state.write_head(&head)?;
        }
        Ok(Step::Done)
    }

    /// The messages that are acknowledged and not in the inbox yet.
    pub(crate) fn waiting(&self, world: &World<'_>) -> Result<Vec<Outgoing>, StoreError> {
        let mut head = self.state.head()?.unwrap_or_default();
        if let Some(temp) = head.temp
            && world.inboxes.stamp(&temp.name(&self.file()))?.is_some()
        {
            head.after = head.before;
        }
        let tail = self.tail(&mut head)?;
        let created = if tail.has_sent() { (world.team_created)() } else { None };
        let meant = tail.records.iter().filter(|record| is_for(record, created));
        let sent = meant.filter_map(|record| match &record.event {
            Event::Sent { message, .. } => serde_json::from_str(message.get()).ok(),
            _ => None,
        });
        Ok(sent.collect())
    }

    /// Removes what killed processes left behind. Only after [`Work::Look`] has settled the last
    /// write, of whose temporary file the state may speak.
    pub(crate) fn sweep(&self, inboxes: &Dir) -> Result<(), StoreError> {
        if !self.state.try_lock()? {
            return Ok(());
        }
        let _unlock = Unlock(&self.state);
        let speaks_of = self.state.head()?.and_then(|head| head.temp).map(|t| t.name(&self.file()));
        let mut names = inboxes.names()?;
        names.retain(|name| Some(name) != speaks_of.as_ref());
        let file = self.file();
        state::sweep(inboxes, &names, |of| of == file || of.strip_suffix(".lock") == Some(&file));
        Ok(())
    }
}

impl Tail {
    /// Leaves out the messages that `is_read` of something said of them.
    fn forget(&mut self, is_read: impl Fn(&Event) -> bool) {
        let read: HashSet<MessageKey> = self
            .records
            .iter()
            .filter(|record| is_read(&record.event))
            .filter_map(|record| match record.event {
                Event::Read { key, .. } | Event::Shown { key, .. } => Some(key),
                _ => None,
            })
            .collect();
        self.records.retain(|record| sent_key(record).is_none_or(|key| !read.contains(&key)));
    }

    pub(super) fn has_sent(&self) -> bool {
        self.records.iter().any(|record| sent_key(record).is_some())
    }

    pub(super) fn sent_count(&self) -> usize {
        self.records.iter().filter(|record| sent_key(record).is_some()).count()
    }
}

impl Head {
    /// From now on, what is merged behind `from` may be overwritten by a program that does not know
    /// that it lost its lock.
    pub(super) fn at_risk(&mut self, from: Place, clock: &dyn Clock) {
        let until = clock.now().saturating_add(SLEEPER).unwrap_or_default().as_millisecond();
        let from = self.risk.map_or(from.offset, |risk| risk.from.min(from.offset));
        self.risk = Some(Risk { from, until });
    }
}

/// The time for comparing with a time not long ago.
pub(super) fn nanoseconds(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.now().as_nanosecond()).unwrap_or_default()
}

fn sent_key(record: &Record) -> Option<MessageKey> {
    match &record.event {
        Event::Sent { key, .. } => Some(*key),
        _ => None,
    }
}

/// An entry of an inbox as the journal has a message that is on its way.
pub(crate) fn entry(message: &Outgoing) -> Box<RawValue> {
    // Plain data; this cannot fail.
    serde_json::value::to_raw_value(&message.as_new()).unwrap_or_default()
}
