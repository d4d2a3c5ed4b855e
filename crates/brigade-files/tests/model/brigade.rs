//! A brigade process that sends messages, or that only delivers messages left in the journal.

use crate::ids::Ids;
use crate::merge::{self, ours};
use crate::rules::{Intent, ProtocolRules, Rewind};
use crate::state::{ModelHeader, ModelInbox, ModelLock, ModelProcess, ModelState, NEW, fault};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum BrigadeStep {
    Append,
    #[default]
    Flock,
    Resolve,
    /// Writes the result of `Resolve` into the header.
    WriteResolved,
    Decide,
    Lock,
    RiskThenRemoveLock,
    /// Removes a stale or abandoned lock by renaming it.
    RemoveLock,
    /// Writes the identity of this process's lock into the header.
    Record,
    Merge,
    CheckLock,
    CheckInbox,
    Intent,
    Withdraw,
    Rename,
    CheckLockAfter,
    /// Writes the header after the merge.
    WriteMerged,
    Release,
    RiskThenUnflock,
    Unflock,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct BrigadeProcess {
    pub(crate) step: BrigadeStep,
    unsent: Ids,
    /// The journal offset after the newest message of this process; `None` if the process sends no
    /// message.
    target: Option<u8>,
    /// Whether this is the last process of the run. The last process starts when all others are
    /// done, and does not give up.
    pub(crate) last: bool,
    pub(crate) merged: u8,
    /// The lock directory that this process created.
    pub(crate) dir: u8,
    /// The lock directory that this process is about to remove, and whether that lock was stale.
    pub(crate) seen: u8,
    seen_stale: bool,
    /// The inbox file that this process read, its temp file, and the new contents.
    pub(crate) file: u8,
    pub(crate) tmp: u8,
    pub(crate) content: Ids,
    /// The header that this process will write next.
    pub(crate) next: ModelHeader,
}

impl BrigadeProcess {
    pub(crate) fn sender(messages: &[u8]) -> Self {
        let step = if messages.is_empty() { BrigadeStep::Done } else { BrigadeStep::Append };
        Self { step, unsent: Ids::from_slice(messages), ..Self::default() }
    }

    pub(crate) fn flusher(last: bool) -> Self {
        Self { last, ..Self::default() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step == BrigadeStep::Done
    }

    pub(crate) fn can_step(&self, state: &ModelState, alone: bool) -> bool {
        match self.step {
            BrigadeStep::Done => false,
            BrigadeStep::Flock => state.flock.is_none() && (alone || !self.last),
            _ => true,
        }
    }

    pub(crate) fn can_give_up(&self) -> bool {
        self.step == BrigadeStep::Flock && !self.last
    }

    pub(crate) fn start_next_message(&mut self) {
        let step = if self.unsent.is_empty() { BrigadeStep::Done } else { BrigadeStep::Append };
        *self = Self { step, unsent: self.unsent, last: self.last, ..Self::default() };
    }

    pub(crate) fn fault_if_stale(&self, dir: u8) -> u16 {
        match self.step {
            BrigadeStep::RemoveLock if self.seen == dir && !self.seen_stale => {
                fault::PAUSED_ELSEWHERE
            }
            _ if self.dir != dir => 0,
            BrigadeStep::Rename => fault::PAUSED_BEFORE_RENAME,
            _ => fault::PAUSED_ELSEWHERE,
        }
    }
}

pub(crate) fn step(
    state: &mut ModelState,
    rules: &ProtocolRules,
    index: u8,
    mut this: BrigadeProcess,
) {
    let held = state.lock.is_some_and(|lock| lock.dir == this.dir);
    let stale = state.lock.is_some_and(|lock| lock.stale);
    match this.step {
        BrigadeStep::Append => {
            let message = this.unsent.get(0);
            this.unsent = this.unsent.starting_at(1);
            state.journal.push(message);
            this.target = Some(state.journal.len());
            this.step = BrigadeStep::Flock;
        }
        BrigadeStep::Flock => {
            state.flock = Some(index);
            this.step = BrigadeStep::Resolve;
        }
        BrigadeStep::Resolve => resolve(state, rules, &mut this),
        BrigadeStep::Decide => decide(state, &mut this),
        BrigadeStep::Lock => lock(state, rules, &mut this),
        BrigadeStep::RemoveLock => remove_lock(state, rules, &mut this),
        BrigadeStep::Merge => merge::merge(state, rules, &mut this),
        BrigadeStep::CheckInbox | BrigadeStep::CheckLock => {
            let held = held && !(rules.check_age && stale);
            let kept = if this.step == BrigadeStep::CheckLock {
                held
            } else {
                state.inbox.file == this.file
            };
            if !kept {
                this.next = ModelHeader { upto: state.header.base, tmp: 0, ..state.header };
                this.step = if rules.check_last {
                    BrigadeStep::Withdraw
                } else {
                    step_after_withdrawal(&mut this, held)
                };
            } else if rules.check_last {
                this.step = if this.step == BrigadeStep::CheckInbox {
                    BrigadeStep::CheckLock
                } else {
                    BrigadeStep::Rename
                };
            } else {
                this.step = if this.step == BrigadeStep::CheckLock {
                    BrigadeStep::CheckInbox
                } else {
                    BrigadeStep::Intent
                };
            }
        }
        BrigadeStep::Rename => {
            state.inbox = ModelInbox { file: this.tmp, ids: this.content };
            state.tmp = 0;
            (this.content, this.file, this.tmp) = (Ids::default(), 0, 0);
            this.step = match rules.intent {
                Intent::AfterRename => BrigadeStep::WriteMerged,
                _ if rules.check_lock_after => BrigadeStep::CheckLockAfter,
                _ => BrigadeStep::Release,
            };
        }
        BrigadeStep::CheckLockAfter => {
            let header = state.header;
            this.next = ModelHeader { base: header.upto, tmp: 0, ours: header.tmp, ..header };
            if !held {
                this.next = this.next.with_risk(rules, header.base, state.inbox);
            }
            this.merged = header.upto;
            this.dir = if held && !(rules.check_age && stale) { this.dir } else { 0 };
            this.step = BrigadeStep::WriteMerged;
        }
        BrigadeStep::Release => {
            let moved = state.lock.take();
            this.step = BrigadeStep::Unflock;
            if let Some(moved) = moved.filter(|lock| lock.dir != this.dir) {
                removed_wrong_lock(state, rules, &mut this, moved);
            }
            this.dir = 0;
        }
        BrigadeStep::Unflock => {
            state.flock = None;
            this.start_next_message();
        }
        BrigadeStep::WriteResolved
        | BrigadeStep::RiskThenRemoveLock
        | BrigadeStep::Record
        | BrigadeStep::Intent
        | BrigadeStep::Withdraw
        | BrigadeStep::WriteMerged
        | BrigadeStep::RiskThenUnflock => {
            state.header = this.next;
            this.next = ModelHeader::default();
            this.step = match this.step {
                BrigadeStep::WriteResolved => BrigadeStep::Decide,
                BrigadeStep::RiskThenRemoveLock => BrigadeStep::RemoveLock,
                BrigadeStep::Record => BrigadeStep::Merge,
                BrigadeStep::Intent if rules.check_last && rules.recheck => BrigadeStep::CheckInbox,
                BrigadeStep::Intent => BrigadeStep::Rename,
                BrigadeStep::Withdraw => {
                    step_after_withdrawal(&mut this, held && !(rules.check_age && stale))
                }
                BrigadeStep::WriteMerged if this.dir != 0 => BrigadeStep::Release,
                _ => BrigadeStep::Unflock,
            };
        }
        BrigadeStep::Done => unreachable!("a process that is done takes no step"),
    }
    state.processes[usize::from(index)] = ModelProcess::Brigade(this);
}

/// Determines how much of the journal is merged. This depends on the header, and on whether the
/// temp file that the header names still exists.
fn resolve(state: &mut ModelState, rules: &ProtocolRules, this: &mut BrigadeProcess) {
    let header = state.header;
    if header.tmp == 0 {
        this.merged = header.upto;
        decide(state, this);
    } else if header.tmp == state.tmp {
        this.merged = header.base;
        if rules.clear_header_first {
            this.next = ModelHeader { upto: header.base, tmp: 0, ..header };
            this.step = BrigadeStep::WriteResolved;
        } else {
            state.tmp = 0;
            this.step = BrigadeStep::Decide;
        }
    } else {
        this.merged = header.upto;
        this.next = ModelHeader { base: header.upto, tmp: 0, ours: header.tmp, ..header };
        // The writer of this header died before it could check its lock again.
        if state.lock.is_none_or(|lock| lock.dir != header.lock) {
            this.next = this.next.with_risk(rules, header.base, state.inbox);
        }
        this.step = BrigadeStep::WriteResolved;
        if !rules.check_lock_after {
            this.next = ModelHeader::default();
            decide(state, this);
        }
    }
}

/// Decides whether this process has anything to merge or restore.
fn decide(state: &ModelState, this: &mut BrigadeProcess) {
    let reached = this.merged >= this.target.unwrap_or_else(|| state.journal.len());
    let rewritten = state.inbox.file != ours(state);
    this.step = if reached && (state.header.risks.is_empty() || !rewritten) {
        BrigadeStep::Unflock
    } else {
        BrigadeStep::Lock
    };
}

/// Creates the lock with `mkdir`, or inspects the existing lock on EEXIST.
fn lock(state: &mut ModelState, rules: &ProtocolRules, this: &mut BrigadeProcess) {
    let merged = this.merged;
    let at_steal = |state: &ModelState, mut header: ModelHeader| {
        header = header.with_risk(rules, merged, state.inbox);
        // Model the best form of the original protocol, in which writes before the steal do not
        // count as overwrites.
        if rules.rewind == Rewind::Original && header.tmp == 0 {
            header.ours = state.inbox.file;
        }
        header
    };
    let Some(lock) = state.lock else {
        state.lock = Some(ModelLock { dir: NEW, stale: false, by_brigade: true });
        this.dir = NEW;
        this.next = ModelHeader { lock: NEW, ..state.header };
        if this.seen_stale && !rules.record_risk_first {
            this.next = at_steal(state, this.next);
        }
        (this.seen, this.seen_stale) = (0, false);
        this.step = BrigadeStep::Record;
        return;
    };
    (this.seen, this.seen_stale) = (lock.dir, lock.stale);
    let known = lock.dir == state.header.lock;
    if known && !(lock.stale && rules.record_risk_first) {
        // Remove the lock of a dead brigade process immediately, unless the lock is stale. A native process may be
        // about to remove a stale lock too, so treat the lock like any other stale lock.
        this.seen_stale = false;
        this.step = BrigadeStep::RemoveLock;
    } else if lock.stale {
        this.step = BrigadeStep::RemoveLock;
        if rules.record_risk_first {
            this.next = at_steal(state, state.header);
            this.step = BrigadeStep::RiskThenRemoveLock;
        }
    } else {
        state.flock = None;
        *this = BrigadeProcess {
            unsent: this.unsent,
            target: this.target,
            last: this.last,
            ..BrigadeProcess::default()
        };
    }
}

fn remove_lock(state: &mut ModelState, rules: &ProtocolRules, this: &mut BrigadeProcess) {
    this.step = BrigadeStep::Lock;
    let wrong = state.lock.take().filter(|moved| moved.dir != this.seen);
    this.seen = 0;
    this.seen_stale &= !rules.record_risk_first;
    if let Some(wrong) = wrong {
        removed_wrong_lock(state, rules, this, wrong);
    }
}

fn removed_wrong_lock(
    state: &mut ModelState,
    rules: &ProtocolRules,
    this: &mut BrigadeProcess,
    lock: ModelLock,
) {
    assert!(!lock.by_brigade, "the flock should keep other brigade processes from locking");
    state.faults |= fault::REMOVED_WRONG;
    if rules.verify_removed {
        this.next = state.header.with_risk(rules, this.merged, state.inbox);
        this.step = BrigadeStep::RiskThenUnflock;
    }
}

fn step_after_withdrawal(this: &mut BrigadeProcess, held: bool) -> BrigadeStep {
    (this.file, this.tmp, this.content, this.next) = (0, 0, Ids::default(), ModelHeader::default());
    if held {
        return BrigadeStep::Merge;
    }
    this.dir = 0;
    BrigadeStep::Lock
}
