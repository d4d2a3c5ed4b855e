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

use super::dir::{Dir, FileStamp};
use super::draft::is_for_team;
use super::journal::{Journal, JournalPosition, JournalTail};
use super::lock::{self, LockAttempt, LockPath, LockRecorder, LockWaiter};
use super::lock_id::LockId;
use super::state::{self, MailboxHead, OverwriteRisk, StateFile};
use crate::clock::Clock;
use crate::event::{Event, MessageKey, Record};
use crate::store::{Mark, Obstacle, Outgoing, StoreError};

/// How long, in nanoseconds, an inbox is left alone by us between two writes if there is a crowd.
const NATIVE_TURN_NANOS: i64 = 2_000_000;

/// How long a program that slept through the loss of its lock is expected to come back.
const STALE_WRITER_WINDOW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// A mailbox, open.
#[derive(Debug)]
pub(crate) struct FileMailbox {
    /// Whose it is.
    pub(crate) member: String,
    pub(crate) journal: Journal,
    pub(crate) state: StateFile,
    /// Our own folder for mail.
    pub(crate) mail_dir: Arc<Dir>,
    /// Where copies of damaged inboxes go.
    pub(crate) damaged_copies: Dir,
}

/// What is to be done to a mailbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MailboxWork<'w> {
    /// See to it that the journal is in the inbox as far as this.
    Merge { upto: u64 },
    /// Put into the inbox what waits, and into the journal what others did.
    Refresh,
    /// Take out of the inbox what is read, if there is nothing else in it.
    Prune,
    /// Mark messages.
    Mark { keys: &'w [MessageKey], mark: Mark },
}

/// What one try came to.
#[derive(Debug)]
pub(crate) enum MailboxOutcome {
    Done,
    Wait(Obstacle),
    /// Somebody changed the inbox under us; nothing was done.
    Retry,
}

/// What a look at the inbox without its lock came to.
enum RefreshOutcome {
    UpToDate,
    /// Torn under our eyes, or for good.
    Torn(FileStamp),
    /// Messages have to be merged again.
    Rewound,
}

/// What a try needs to know of the world.
pub(crate) struct MailboxContext<'w> {
    pub(crate) inboxes: &'w Dir,
    pub(crate) clock: &'w dyn Clock,
    /// When the team that is there now was created, in milliseconds, if that can be read.
    pub(crate) team_created: &'w dyn Fn() -> Option<u64>,
}

/// Takes the lock of the inbox, and keeps the head up to date about it.
struct MailboxLockRecorder<'t> {
    state: &'t StateFile,
    head: &'t mut MailboxHead,
    clock: &'t dyn Clock,
}

impl LockRecorder for MailboxLockRecorder<'_> {
    fn record_acquire(&mut self, id: LockId) -> Result<(), StoreError> {
        self.head.lock = id;
        self.state.write_head(self.head)
    }

    fn record_steal(&mut self) -> Result<(), StoreError> {
        self.head.mark_at_risk(self.head.after.upto, self.clock);
        self.state.write_head(self.head)
    }
}

/// Gives the state's lock back.
struct StateUnlock<'s>(&'s StateFile);

impl Drop for StateUnlock<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl FileMailbox {
    pub(super) fn file(&self) -> String {
        format!("{}.json", self.member)
    }

    /// Tries once to do the work. Nothing waits in here, so nobody is kept waiting for long.
    pub(crate) fn attempt(
        &self,
        context: &MailboxContext<'_>,
        work: MailboxWork<'_>,
        waiter: &mut LockWaiter,
    ) -> Result<MailboxOutcome, StoreError> {
        if !self.state.try_lock()? {
            return Ok(MailboxOutcome::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = StateUnlock(&self.state);
        let mut head = match self.state.head()? {
            Some(head) => self.resolve(context, head)?,
            None => MailboxHead::default(),
        };
        let mut tail = self.tail(&mut head)?;
        if matches!(work, MailboxWork::Merge { upto } if head.after.upto.offset >= upto) {
            return Ok(MailboxOutcome::Done);
        }
        if matches!(work, MailboxWork::Refresh) && !tail.has_sent() {
            head.after.upto = tail.end;
            match self.refresh(context, &mut head)? {
                RefreshOutcome::UpToDate => return Ok(MailboxOutcome::Done),
                // Claude Code 2.1.50 makes a new inbox before it takes the lock, and what it has for it is
                // lost if the lock is ours at that moment.
                RefreshOutcome::Torn(stamp) if !waiter.is_torn_for_good(stamp) => {
                    let path = context.inboxes.path(&self.file());
                    return Ok(MailboxOutcome::Wait(Obstacle::Torn { path }));
                }
                RefreshOutcome::Torn(_) => {}
                RefreshOutcome::Rewound => tail = self.tail(&mut head)?,
            }
        }
        // Where several of us wait for one inbox, a native program may be waiting as well, and it has
        // less patience: 2.1.50 loses what it cannot write at once. What we have to write keeps, and
        // the longer it waits the more goes into one write.
        let since = nanoseconds(context.clock).wrapping_sub(head.written_at);
        if (waiter.has_waited || head.contended) && (0..NATIVE_TURN_NANOS).contains(&since) {
            return Ok(MailboxOutcome::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let file = self.file();
        let abandoned = Some(head.lock).filter(|&lock| lock != LockId::default());
        let at = LockPath {
            dir: context.inboxes,
            name: format!("{file}.lock"),
            spare: Some((&self.mail_dir, format!("{}.lock", self.member))),
        };
        let mut recorder =
            MailboxLockRecorder { state: &self.state, head: &mut head, clock: context.clock };
        let lock = match waiter.try_lock(at, abandoned, &mut recorder)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(MailboxOutcome::Wait(obstacle)),
        };
        head.contended = waiter.has_waited || tail.sent_count() > 1;
        let mut draft = match self.draft(context, &mut head, &mut tail, waiter, work)? {
            Ok(draft) => draft,
            Err(obstacle) => return Ok(MailboxOutcome::Wait(obstacle)),
        };
        head.power_safe |= self.merge(context, &mut draft, &tail, work)?;
        // Behind the merging: what waited could be seen, and so be marked.
        if let MailboxWork::Mark { keys, mark } = work {
            self.mark(context, &mut draft, keys, mark)?;
        }
        self.commit(context, &lock, &mut head, &draft, tail.end)
    }

    /// Makes the head true: finds out whether the last write got as far as its rename.
    fn resolve(
        &self,
        context: &MailboxContext<'_>,
        mut head: MailboxHead,
    ) -> Result<MailboxHead, StoreError> {
        let Some(temp) = head.temp.take() else { return Ok(head) };
        let file = self.file();
        let name = temp.name(&file);
        if context.inboxes.stamp(&name)?.is_some() {
            head.after = head.before;
            head.inbox_stamp = FileStamp::default();
            // First the head, then the file: were it gone with the old head standing, what it held
            // would count as delivered.
            self.state.write_head(&head)?;
            context.inboxes.remove(&name)?;
        } else if !head.verified {
            if LockId::find(context.inboxes, &format!("{file}.lock"))? != Some(head.lock) {
                // Its writer died before it could look back, and somebody took its lock.
                head.mark_at_risk(head.before.upto, context.clock);
            }
            head.verified = true;
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
    pub(super) fn tail(&self, head: &mut MailboxHead) -> Result<JournalTail, StoreError> {
        let mut tail = self.journal.read_from(head.after.upto.offset)?;
        if tail.start == head.after.upto && *head != MailboxHead::default() {
            tail.drop_read(|read| {
                matches!(read, Event::Read { gone: false, .. } | Event::Shown { .. })
            });
            return Ok(tail);
        }
        *head =
            MailboxHead { lock: head.lock, power_safe: head.power_safe, ..MailboxHead::default() };
        let mut tail = self.journal.read_from(0)?;
        tail.drop_read(|read| matches!(read, Event::Read { .. } | Event::Shown { .. }));
        Ok(tail)
    }

    /// Writes down what others did, without keeping anybody from the inbox.
    fn refresh(
        &self,
        context: &MailboxContext<'_>,
        head: &mut MailboxHead,
    ) -> Result<RefreshOutcome, StoreError> {
        let file = self.file();
        // We hold what its maker held: a lock that one of us made and left is that of a dead one.
        lock::remove_abandoned(context.inboxes, &format!("{file}.lock"), head.lock)?;
        if context.inboxes.stamp(&file)?.unwrap_or_default() == head.inbox_stamp {
            return Ok(RefreshOutcome::UpToDate);
        }
        let contents = context.inboxes.read(&file)?;
        let (bytes, stamp) = match &contents {
            Some(contents) => (contents.bytes.as_slice(), contents.stamp),
            None => (inbox::EMPTY, FileStamp::default()),
        };
        let Ok(inbox) = Inbox::read(bytes) else { return Ok(RefreshOutcome::Torn(stamp)) };
        let rewound = self.observe(context, head, &inbox, stamp)?;
        Ok(if rewound { RefreshOutcome::Rewound } else { RefreshOutcome::UpToDate })
    }

    /// Every native program that used this inbox is known to have ended. So a lock that is left is
    /// nobody's, and nobody comes back who lost one and does not know it.
    pub(crate) fn natives_ended(
        &self,
        context: &MailboxContext<'_>,
    ) -> Result<MailboxOutcome, StoreError> {
        if !self.state.try_lock()? {
            return Ok(MailboxOutcome::Wait(Obstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = StateUnlock(&self.state);
        let Some(head) = self.state.head()? else { return Ok(MailboxOutcome::Done) };
        let mut head = self.resolve(context, head)?;
        lock::remove_any(context.inboxes, &format!("{}.lock", self.file()))?;
        let _tail = self.tail(&mut head)?;
        // Once more with the doubt: what was overwritten so far is put back.
        if matches!(self.refresh(context, &mut head)?, RefreshOutcome::Torn(_)) {
            return Ok(MailboxOutcome::Done);
        }
        if head.risk.take().is_some() {
            self.state.write_head(&head)?;
        }
        Ok(MailboxOutcome::Done)
    }

    /// The messages that are acknowledged and not in the inbox yet.
    pub(crate) fn undelivered(
        &self,
        context: &MailboxContext<'_>,
    ) -> Result<Vec<Outgoing>, StoreError> {
        let mut head = self.state.head()?.unwrap_or_default();
        if let Some(temp) = head.temp
            && context.inboxes.stamp(&temp.name(&self.file()))?.is_some()
        {
            head.after = head.before;
        }
        let tail = self.tail(&mut head)?;
        let created = if tail.has_sent() { (context.team_created)() } else { None };
        let for_team = tail.records.iter().filter(|record| is_for_team(record, created));
        let sent = for_team.filter_map(|record| match &record.event {
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
        let _unlock = StateUnlock(&self.state);
        let pending_temp =
            self.state.head()?.and_then(|head| head.temp).map(|t| t.name(&self.file()));
        let mut names = inboxes.names()?;
        names.retain(|name| Some(name) != pending_temp.as_ref());
        let file = self.file();
        state::sweep(inboxes, &names, |name| {
            name == file || name.strip_suffix(".lock") == Some(&file)
        });
        Ok(())
    }
}

impl JournalTail {
    /// Leaves out the messages that `is_read` of something said of them.
    fn drop_read(&mut self, is_read: impl Fn(&Event) -> bool) {
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

impl MailboxHead {
    /// From now on, what is merged behind `from` may be overwritten by a program that does not know
    /// that it lost its lock.
    pub(super) fn mark_at_risk(&mut self, from: JournalPosition, clock: &dyn Clock) {
        let until =
            clock.now().saturating_add(STALE_WRITER_WINDOW).unwrap_or_default().as_millisecond();
        let from = self.risk.map_or(from.offset, |risk| risk.from.min(from.offset));
        self.risk = Some(OverwriteRisk { from, until });
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
pub(crate) fn inbox_entry(message: &Outgoing) -> Box<RawValue> {
    // Plain data; this cannot fail.
    serde_json::value::to_raw_value(&message.as_new()).unwrap_or_default()
}
