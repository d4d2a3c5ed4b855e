//! A brigade process: sends its messages, or only flushes what others left in the journal.

use crate::ids::Ids;
use crate::merge::{self, ours};
use crate::rules::{Intent, Rewind, Rules};
use crate::world::{Header, Inbox, Lock, NEW, Process, World, fault};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum At {
    Append,
    #[default]
    Flock,
    Resolve,
    /// Writes what `Resolve` found into the header.
    Settle,
    Decide,
    Lock,
    RiskThenTake,
    /// Renames a lock away that it may take.
    Take,
    /// Writes the identity of its lock into the header.
    Record,
    Merge,
    CheckLock,
    CheckInbox,
    Intent,
    Withdraw,
    Rename,
    LookBack,
    /// Writes the header with the merge behind it.
    Close,
    Release,
    RiskThenUnflock,
    Unflock,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Brigade {
    pub(crate) at: At,
    unsent: Ids,
    /// The end of its newest message in the journal; none for one that only flushes.
    goal: Option<u8>,
    /// It is the last process of the run: it starts when all others are done, and does not give up.
    pub(crate) last: bool,
    pub(crate) merged: u8,
    /// The lock directory it made.
    pub(crate) dir: u8,
    /// The lock directory it is about to take away, and whether that one was stale.
    pub(crate) seen: u8,
    seen_stale: bool,
    /// The inbox that it read, and what it will put in its place.
    pub(crate) file: u8,
    pub(crate) tmp: u8,
    pub(crate) content: Ids,
    /// The header that it will write.
    pub(crate) next: Header,
}

impl Brigade {
    pub(crate) fn sending(messages: &[u8]) -> Self {
        let at = if messages.is_empty() { At::Done } else { At::Append };
        Self { at, unsent: Ids::of(messages), ..Self::default() }
    }

    pub(crate) fn flushing(last: bool) -> Self {
        Self { last, ..Self::default() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    pub(crate) fn can_step(&self, world: &World, alone: bool) -> bool {
        match self.at {
            At::Done => false,
            At::Flock => world.flock.is_none() && (alone || !self.last),
            _ => true,
        }
    }

    pub(crate) fn can_give_up(&self) -> bool {
        self.at == At::Flock && !self.last
    }

    pub(crate) fn turn_to_next(&mut self) {
        let at = if self.unsent.is_empty() { At::Done } else { At::Append };
        *self = Self { at, unsent: self.unsent, last: self.last, ..Self::default() };
    }

    pub(crate) fn fault_of_age(&self, dir: u8) -> u16 {
        match self.at {
            At::Take if self.seen == dir && !self.seen_stale => fault::LATE_ELSEWHERE,
            _ if self.dir != dir => 0,
            At::Rename => fault::LATE_RENAME,
            _ => fault::LATE_ELSEWHERE,
        }
    }
}

pub(crate) fn step(world: &mut World, rules: &Rules, index: u8, mut me: Brigade) {
    let held = world.lock.is_some_and(|lock| lock.dir == me.dir);
    let stale = world.lock.is_some_and(|lock| lock.stale);
    match me.at {
        At::Append => {
            let message = me.unsent.get(0);
            me.unsent = me.unsent.starting_at(1);
            world.journal.push(message);
            me.goal = Some(world.journal.len());
            me.at = At::Flock;
        }
        At::Flock => {
            world.flock = Some(index);
            me.at = At::Resolve;
        }
        At::Resolve => resolve(world, rules, &mut me),
        At::Decide => decide(world, &mut me),
        At::Lock => lock(world, rules, &mut me),
        At::Take => take(world, rules, &mut me),
        At::Merge => merge::merge(world, rules, &mut me),
        At::CheckInbox | At::CheckLock => {
            let held = held && !(rules.mind_age && stale);
            let kept = if me.at == At::CheckLock { held } else { world.inbox.file == me.file };
            if !kept {
                me.next = Header { upto: world.header.base, tmp: 0, ..world.header };
                me.at =
                    if rules.check_last { At::Withdraw } else { after_withdrawal(&mut me, held) };
            } else if rules.check_last {
                me.at = if me.at == At::CheckInbox { At::CheckLock } else { At::Rename };
            } else {
                me.at = if me.at == At::CheckLock { At::CheckInbox } else { At::Intent };
            }
        }
        At::Rename => {
            world.inbox = Inbox { file: me.tmp, ids: me.content };
            world.tmp = 0;
            (me.content, me.file, me.tmp) = (Ids::default(), 0, 0);
            me.at = match rules.intent {
                Intent::Late => At::Close,
                _ if rules.look_back => At::LookBack,
                _ => At::Release,
            };
        }
        At::LookBack => {
            let header = world.header;
            me.next = Header { base: header.upto, tmp: 0, ours: header.tmp, ..header };
            if !held {
                me.next = me.next.at_risk(rules, header.base, world.inbox);
            }
            me.merged = header.upto;
            me.dir = if held && !(rules.mind_age && stale) { me.dir } else { 0 };
            me.at = At::Close;
        }
        At::Release => {
            let moved = world.lock.take();
            me.at = At::Unflock;
            if let Some(moved) = moved.filter(|lock| lock.dir != me.dir) {
                took_wrong(world, rules, &mut me, moved);
            }
            me.dir = 0;
        }
        At::Unflock => {
            world.flock = None;
            me.turn_to_next();
        }
        At::Settle
        | At::RiskThenTake
        | At::Record
        | At::Intent
        | At::Withdraw
        | At::Close
        | At::RiskThenUnflock => {
            world.header = me.next;
            me.next = Header::default();
            me.at = match me.at {
                At::Settle => At::Decide,
                At::RiskThenTake => At::Take,
                At::Record => At::Merge,
                At::Intent if rules.check_last && rules.recheck => At::CheckInbox,
                At::Intent => At::Rename,
                At::Withdraw => after_withdrawal(&mut me, held && !(rules.mind_age && stale)),
                At::Close if me.dir != 0 => At::Release,
                _ => At::Unflock,
            };
        }
        At::Done => unreachable!("a process that is done takes no step"),
    }
    world.processes[usize::from(index)] = Process::Brigade(me);
}

/// What is merged, by the header and by whether its temp file is still there.
fn resolve(world: &mut World, rules: &Rules, me: &mut Brigade) {
    let header = world.header;
    if header.tmp == 0 {
        me.merged = header.upto;
        decide(world, me);
    } else if header.tmp == world.tmp {
        me.merged = header.base;
        if rules.disown_first {
            me.next = Header { upto: header.base, tmp: 0, ..header };
            me.at = At::Settle;
        } else {
            world.tmp = 0;
            me.at = At::Decide;
        }
    } else {
        me.merged = header.upto;
        me.next = Header { base: header.upto, tmp: 0, ours: header.tmp, ..header };
        // Its maker died before it looked back.
        if world.lock.is_none_or(|lock| lock.dir != header.lock) {
            me.next = me.next.at_risk(rules, header.base, world.inbox);
        }
        me.at = At::Settle;
        if !rules.look_back {
            me.next = Header::default();
            decide(world, me);
        }
    }
}

/// Is there anything to do?
fn decide(world: &World, me: &mut Brigade) {
    let reached = me.merged >= me.goal.unwrap_or_else(|| world.journal.len());
    let rewritten = world.inbox.file != ours(world);
    me.at = if reached && (world.header.risks.is_empty() || !rewritten) {
        At::Unflock
    } else {
        At::Lock
    };
}

/// mkdir, and on EEXIST a look at what is there.
fn lock(world: &mut World, rules: &Rules, me: &mut Brigade) {
    let merged = me.merged;
    let at_steal = |world: &World, mut header: Header| {
        header = header.at_risk(rules, merged, world.inbox);
        // Read kindly: rewrites before the steal are not those that it must fear.
        if rules.rewind == Rewind::First && header.tmp == 0 {
            header.ours = world.inbox.file;
        }
        header
    };
    let Some(lock) = world.lock else {
        world.lock = Some(Lock { dir: NEW, stale: false, by_brigade: true });
        me.dir = NEW;
        me.next = Header { lock: NEW, ..world.header };
        if me.seen_stale && !rules.risk_first {
            me.next = at_steal(world, me.next);
        }
        (me.seen, me.seen_stale) = (0, false);
        me.at = At::Record;
        return;
    };
    (me.seen, me.seen_stale) = (lock.dir, lock.stale);
    let known = lock.dir == world.header.lock;
    if known && !(lock.stale && rules.risk_first) {
        // What is known to be a dead one's is taken at once. If it is stale a native process may be
        // about to take it too, and then it counts as unknown.
        me.seen_stale = false;
        me.at = At::Take;
    } else if lock.stale {
        me.at = At::Take;
        if rules.risk_first {
            me.next = at_steal(world, world.header);
            me.at = At::RiskThenTake;
        }
    } else {
        world.flock = None;
        *me = Brigade { unsent: me.unsent, goal: me.goal, last: me.last, ..Brigade::default() };
    }
}

fn take(world: &mut World, rules: &Rules, me: &mut Brigade) {
    me.at = At::Lock;
    let wrong = world.lock.take().filter(|moved| moved.dir != me.seen);
    me.seen = 0;
    me.seen_stale &= !rules.risk_first;
    if let Some(wrong) = wrong {
        took_wrong(world, rules, me, wrong);
    }
}

fn took_wrong(world: &mut World, rules: &Rules, me: &mut Brigade, lock: Lock) {
    assert!(!lock.by_brigade, "the flock keeps brigade processes apart");
    world.faults |= fault::TOOK_WRONG;
    if rules.look_at_taken {
        me.next = world.header.at_risk(rules, me.merged, world.inbox);
        me.at = At::RiskThenUnflock;
    }
}

fn after_withdrawal(me: &mut Brigade, held: bool) -> At {
    (me.file, me.tmp, me.content, me.next) = (0, 0, Ids::default(), Header::default());
    if held {
        return At::Merge;
    }
    me.dir = 0;
    At::Lock
}
