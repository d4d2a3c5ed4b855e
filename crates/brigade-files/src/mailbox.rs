//! One member's mailbox: the inbox shared with Claude Code, and brigade's journal and state for
//! that inbox.
//!
//! A message is acknowledged once it is in the journal. Messages in the journal that are not yet in
//! the inbox form the outbox. A mailbox has two locks. The first lock is a `flock` on brigade's
//! state file. It excludes other brigade processes, and the kernel releases it when its holder
//! dies. The second lock is Claude Code's lock on the inbox, which excludes native processes. The
//! next process that holds both locks delivers the whole outbox. A process never waits for one lock
//! while it holds the other.

mod commit;
mod draft;
mod observe;
pub(crate) mod state;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use brigade_wire::inbox::{self, Inbox};
use serde_json::value::RawValue;

use self::state::{MailboxHead, MailboxStateFile, OverwriteRisk};
use super::dir::{Dir, FileStamp};
use super::index::{self, Index};
use super::journal::{Journal, JournalPosition, JournalTail};
use super::layout::{lock_name, member_file};
use super::lock::{self, LockAttempt, LockPath, LockRecorder, LockWaiter, TryOutcome};
use super::lock_id::LockId;
use super::team_state::TeamStateDir;
use super::temp_file;
use brigade_core::clock::Clock;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::mailbox_limit::UnreadMail;
use brigade_core::store::{Mark, Outgoing, StoreError, WriteObstacle};

/// Minimum time between two writes by brigade to a contended inbox, in nanoseconds, so that native
/// programs can write in between.
const NATIVE_TURN_NANOS: i64 = 2_000_000;

/// After brigade stole the lock of a suspended program, the program may resume and overwrite the
/// inbox. Brigade takes that risk into account for this long.
const STALE_WRITER_WINDOW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// An open mailbox.
#[derive(Debug)]
pub(crate) struct FileMailbox {
    /// The member who owns the mailbox.
    pub(crate) member: String,
    pub(crate) journal: Journal,
    pub(crate) state: MailboxStateFile,
    /// Brigade's folder for mail.
    pub(crate) mail_dir: Arc<Dir>,
    /// Brigade's folder for the team.
    pub(crate) team_state: Arc<TeamStateDir>,
    /// The unread mail when it was last counted.
    pub(crate) counted: Option<Arc<CountedMail>>,
}

/// The unread mail of each sender.
#[derive(Debug)]
pub(crate) struct CountedMail {
    /// The inbox, the length of the journal and the length of the outbox when the mail was counted. While they stay the
    /// same, the count is valid.
    pub(crate) files: (FileStamp, u64, u64),
    pub(crate) senders: HashMap<String, UnreadMail>,
}

/// Work to do on a mailbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MailboxWork<'w> {
    /// Deliver the journal's messages to the inbox, at least up to this journal offset.
    Merge { upto: u64 },
    /// Deliver pending messages, and record changes that other programs made to the inbox.
    Refresh,
    /// Empty the inbox if it holds only read messages.
    Prune,
    /// Mark messages as read or shown.
    Mark { keys: &'w [MessageKey], mark: Mark },
}

/// The result of comparing the inbox with the saved state, without holding the inbox lock.
enum RefreshOutcome {
    UpToDate,
    /// The inbox does not parse: a program is still writing it, or it is damaged.
    Torn(FileStamp),
    /// Overwritten messages have to be merged into the inbox again.
    Rewound,
}

/// The inputs of an attempt to work on a mailbox.
pub(crate) struct MailboxContext<'w> {
    pub(crate) inboxes: &'w Dir,
    pub(crate) clock: &'w dyn Clock,
    /// Returns the creation time of the current team in milliseconds, or `None` if the roster
    /// cannot be read.
    pub(crate) team_created: &'w dyn Fn() -> Option<u64>,
}

/// Records the inbox lock in the head of the state file.
struct MailboxLockRecorder<'t> {
    state: &'t MailboxStateFile,
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

/// Releases the lock on the state file when dropped.
struct StateUnlock<'s>(&'s MailboxStateFile);

impl Drop for StateUnlock<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl FileMailbox {
    pub(super) fn file(&self) -> String {
        member_file(&self.member)
    }

    /// Brings the index of the journal up to date, if this process has to do that.
    pub(crate) fn update_index(&self) {
        let name = index::mailbox(&self.member);
        Index::update_if_due(&self.team_state.dir, &name, &self.journal);
    }

    /// Tries once to do the work. Never waits for a lock, so other processes are blocked only
    /// briefly.
    pub(crate) fn attempt(
        &self,
        context: &MailboxContext<'_>,
        work: MailboxWork<'_>,
        waiter: &mut LockWaiter,
    ) -> Result<TryOutcome<()>, StoreError> {
        if !self.state.try_lock()? {
            return Ok(TryOutcome::Wait(WriteObstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = StateUnlock(&self.state);
        let mut head = match self.state.head()? {
            Some(head) => self.resolve(context, head)?,
            None => MailboxHead::default(),
        };
        let mut tail = self.tail(&mut head)?;
        if matches!(work, MailboxWork::Merge { upto } if head.after.upto.offset >= upto) {
            return Ok(TryOutcome::Done(()));
        }
        if matches!(work, MailboxWork::Refresh) && !tail.has_sent() {
            head.after.upto = tail.end;
            match self.refresh(context, &mut head, &tail)? {
                RefreshOutcome::UpToDate => return Ok(TryOutcome::Done(())),
                // Do not take the lock yet. Claude Code 2.1.50 first creates a new inbox and then
                // takes the lock. If we hold the lock at that moment, Claude Code loses its
                // message.
                RefreshOutcome::Torn(stamp) if !waiter.is_torn_for_good(stamp) => {
                    let path = context.inboxes.path(&self.file());
                    return Ok(TryOutcome::Wait(WriteObstacle::Torn { path }));
                }
                RefreshOutcome::Torn(_) => {}
                RefreshOutcome::Rewound => tail = self.tail(&mut head)?,
            }
        }
        // If several brigade processes wait for one inbox, let native programs write first. Native
        // programs retry less often, and Claude Code 2.1.50 loses a message that it cannot write
        // immediately. Our messages are safe in the journal, and a later write delivers several of
        // them at once.
        let since = nanoseconds(context.clock).wrapping_sub(head.written_at);
        if (waiter.has_waited || head.contended) && (0..NATIVE_TURN_NANOS).contains(&since) {
            return Ok(TryOutcome::Wait(WriteObstacle::Busy { path: self.state.path().clone() }));
        }
        let lock = match self.try_lock_inbox(context, &mut head, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        head.contended = waiter.has_waited || tail.sent_count() > 1;
        let mut draft = match self.draft(context, &mut head, &mut tail, waiter, work)? {
            Ok(draft) => draft,
            Err(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        head.power_safe |= self.merge(context, &mut draft, &tail, work)?;
        // Mark messages after the merge. A reader may already have seen a pending message, and only
        // a merged message can be marked.
        if let MailboxWork::Mark { keys, mark } = work {
            self.mark(context, &mut draft, keys, mark)?;
        }
        self.commit(context, &lock, &mut head, &draft, tail.end)
    }

    /// Tries once to acquire Claude Code's lock on the inbox. The caller holds the state lock.
    fn try_lock_inbox<'l>(
        &'l self,
        context: &MailboxContext<'l>,
        head: &mut MailboxHead,
        waiter: &mut LockWaiter,
    ) -> Result<LockAttempt<'l>, StoreError> {
        let abandoned = Some(head.lock).filter(|&lock| lock != LockId::default());
        let at = LockPath {
            dir: context.inboxes,
            name: lock_name(&self.file()),
            spare: Some((&self.mail_dir, lock_name(&self.member))),
        };
        let mut recorder = MailboxLockRecorder { state: &self.state, head, clock: context.clock };
        waiter.try_lock(at, abandoned, &mut recorder)
    }

    /// Tries once to remove the inbox, after `keep` has stored a copy of its contents. Holds both
    /// locks meanwhile. Returns whether there was an inbox.
    pub(crate) fn try_set_aside(
        &self,
        context: &MailboxContext<'_>,
        waiter: &mut LockWaiter,
        keep: &dyn Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<TryOutcome<bool>, StoreError> {
        if !self.state.try_lock()? {
            return Ok(TryOutcome::Wait(WriteObstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = StateUnlock(&self.state);
        let mut head = match self.state.head()? {
            Some(head) => self.resolve(context, head)?,
            None => MailboxHead::default(),
        };
        let lock = match self.try_lock_inbox(context, &mut head, waiter)? {
            LockAttempt::Acquired(lock) => lock,
            LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
        };
        let file = self.file();
        let Some(contents) = context.inboxes.read(&file)? else {
            return Ok(TryOutcome::Done(false));
        };
        keep(&contents.bytes)?;
        if context.inboxes.stamp(&file)? != Some(contents.stamp) || !lock.is_held()? {
            return Ok(TryOutcome::Retry);
        }
        context.inboxes.remove(&file).map(TryOutcome::Done)
    }

    /// Completes the last write if its rename happened, and reverts the write otherwise.
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
            // Write the head before removing the temporary file. If the file were removed first,
            // the old head would count the messages in that file as delivered.
            self.state.write_head(&head)?;
            context.inboxes.remove(&name)?;
        } else if !head.verified {
            if LockId::find(context.inboxes, &lock_name(&file))? != Some(head.lock) {
                // The writer died before it could check its lock after the rename, and its lock is
                // gone. Another process may have stolen that lock.
                head.mark_at_risk(head.before.upto, context.clock);
            }
            head.verified = true;
            head.before = head.after;
            self.state.write_head(&head)?;
        }
        head.before = head.after;
        Ok(head)
    }

    /// Returns the journal records that are not merged yet. After a rewind, messages that are
    /// recorded as read are left out. Messages that are recorded only as gone are returned.
    ///
    /// If the head is missing or refers to another journal, returns the records of the whole
    /// journal, without messages recorded as read or gone.
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

    /// Records changes that other programs made to the inbox, without taking the inbox lock.
    fn refresh(
        &self,
        context: &MailboxContext<'_>,
        head: &mut MailboxHead,
        tail: &JournalTail,
    ) -> Result<RefreshOutcome, StoreError> {
        let file = self.file();
        // We hold the state lock, so no other brigade process works on this inbox. If the recorded
        // inbox lock still exists, the brigade process that created it is dead.
        lock::remove_abandoned(context.inboxes, &lock_name(&file), head.lock)?;
        if context.inboxes.stamp(&file)?.unwrap_or_default() == head.inbox_stamp {
            return Ok(RefreshOutcome::UpToDate);
        }
        let contents = context.inboxes.read(&file)?;
        let (bytes, stamp) = match &contents {
            Some(contents) => (contents.bytes.as_slice(), contents.stamp),
            None => (inbox::EMPTY, FileStamp::default()),
        };
        let Ok(inbox) = Inbox::read(bytes) else { return Ok(RefreshOutcome::Torn(stamp)) };
        let rewound = self.observe(context, head, &tail.records, &inbox, stamp)?;
        Ok(if rewound { RefreshOutcome::Rewound } else { RefreshOutcome::UpToDate })
    }

    /// Cleans up the inbox. Call this only after every native program that used the inbox has ended. From then on,
    /// a remaining lock has no owner, and no program can overwrite the inbox with an old copy.
    pub(crate) fn recover_after_natives_ended(
        &self,
        context: &MailboxContext<'_>,
    ) -> Result<TryOutcome<()>, StoreError> {
        if !self.state.try_lock()? {
            return Ok(TryOutcome::Wait(WriteObstacle::Busy { path: self.state.path().clone() }));
        }
        let _unlock = StateUnlock(&self.state);
        let Some(head) = self.state.head()? else { return Ok(TryOutcome::Done(())) };
        let mut head = self.resolve(context, head)?;
        lock::remove_any(context.inboxes, &lock_name(&self.file()))?;
        let tail = self.tail(&mut head)?;
        // Compare the inbox with the state before clearing the recorded risk, because overwritten
        // messages are restored only while a risk is recorded.
        if matches!(self.refresh(context, &mut head, &tail)?, RefreshOutcome::Torn(_)) {
            return Ok(TryOutcome::Done(()));
        }
        if head.risk.take().is_some() {
            self.state.write_head(&head)?;
        }
        Ok(TryOutcome::Done(()))
    }

    /// Returns the size of the journal records that may contain messages which are not in the inbox yet.
    pub(crate) fn outbox_len(&self) -> Result<u64, StoreError> {
        let head = self.state.head()?.unwrap_or_default();
        Ok(self.journal.len()?.saturating_sub(head.before.upto.offset.min(head.after.upto.offset)))
    }

    /// Returns the messages that are acknowledged but not yet in the inbox.
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

    /// Removes temporary files that killed processes left behind. Call this only after
    /// [`MailboxWork::Refresh`] has completed the last write, because the state may still refer to
    /// the temporary file of that write.
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
        temp_file::sweep(inboxes, &names, |name| name == file || name == lock_name(&file));
        Ok(())
    }
}

impl JournalTail {
    /// Removes the messages that were read, according to the events that `is_read` accepts.
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
    /// Records that messages merged after `from` may be overwritten by a program that does not know
    /// that it lost its lock.
    pub(super) fn mark_at_risk(&mut self, from: JournalPosition, clock: &dyn Clock) {
        let until =
            clock.now().saturating_add(STALE_WRITER_WINDOW).unwrap_or_default().as_millisecond();
        let from = self.risk.map_or(from.offset, |risk| risk.from.min(from.offset));
        self.risk = Some(OverwriteRisk { from, until });
    }
}

/// Returns the current time in nanoseconds since 1970.
pub(super) fn nanoseconds(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.now().as_nanosecond()).unwrap_or_default()
}

fn sent_key(record: &Record) -> Option<MessageKey> {
    match &record.event {
        Event::Sent { key, .. } => Some(*key),
        _ => None,
    }
}

/// Returns a message as the inbox entry that is stored in the journal.
pub(crate) fn inbox_entry(message: &Outgoing) -> Box<RawValue> {
    // An inbox entry is plain data, so serialization cannot fail.
    serde_json::value::to_raw_value(&message.to_inbox_entry()).unwrap_or_default()
}

/// Parses an inbox. The error names `file` as the damaged file.
fn parse_inbox<'b>(file: &str, bytes: &'b [u8]) -> Result<Inbox<'b>, StoreError> {
    let damaged = |damage| StoreError::Damaged { place: file.to_owned(), damage };
    Inbox::read(bytes).map_err(damaged)
}

/// Returns whether a message was sent to the team created at `created`, not to an earlier team of
/// the same name. Returns true if the message or `created` lacks the creation time.
fn is_for_team(record: &Record, created: Option<u64>) -> bool {
    match (&record.event, created) {
        (Event::Sent { team_created: 0, .. }, _) | (_, None) => true,
        (Event::Sent { team_created, .. }, Some(created)) => *team_created == created,
        _ => true,
    }
}
