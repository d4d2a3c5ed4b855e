//! The files of one mailbox and the processes that work on them; one step is one system call.

use crate::brigade::{self, Brigade};
use crate::ids::Ids;
use crate::merge;
use crate::native::{self, Native};
use crate::rules::Rules;

/// The identity that a file or lock gets when it is made; [`World::renumber`] gives it a small one.
pub(crate) const NEW: u8 = 255;
pub(crate) const PROCESSES: usize = 5;
/// Which of them is the native reader.
const READER: usize = 3;

/// What went wrong in a run, to say which promises still hold in it.
pub(crate) mod fault {
    /// Some lock grew stale.
    pub(crate) const AGED: u16 = 1;
    /// A native process was paused while it held the lock.
    pub(crate) const NATIVE_LATE: u16 = 2;
    /// A native process saw a stale lock, and took away the one that was made after it.
    pub(crate) const NATIVE_TOOK_WRONG: u16 = 4;
    /// A native process took a lock from a native one.
    pub(crate) const NATIVE_ROBBED_NATIVE: u16 = 8;
    /// A native process gave back a lock that was no longer its own, but another native one's.
    pub(crate) const NATIVE_FREED_NATIVE: u16 = 16;
    /// A brigade process was paused between its last look and the rename.
    pub(crate) const LATE_RENAME: u16 = 32;
    /// … anywhere else while it relied on the lock.
    pub(crate) const LATE_ELSEWHERE: u16 = 64;
    /// A brigade process looked at a lock, and took away the one that a native one made after it.
    pub(crate) const TOOK_WRONG: u16 = 128;
    /// Some lock grew stale before all natives died.
    pub(crate) const AGED_BEFORE: u16 = 256;
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Inbox {
    pub(crate) file: u8,
    pub(crate) ids: Ids,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lock {
    pub(crate) dir: u8,
    pub(crate) stale: bool,
    /// For the report only; no process can see this.
    pub(crate) by_brigade: bool,
}

/// The header of the state file. Offsets count journal records, and 0 stands for no file or lock.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Header {
    pub(crate) base: u8,
    pub(crate) upto: u8,
    pub(crate) tmp: u8,
    pub(crate) lock: u8,
    /// The inbox as a brigade process last wrote it or looked into it, unless `tmp` became it.
    pub(crate) ours: u8,
    /// One more than the offset from which messages are at risk; an entry for each steal.
    pub(crate) risks: Ids,
    /// What stood in the inbox at the first steal.
    pub(crate) known: Ids,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Process {
    Brigade(Brigade),
    Native(Native),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    Step(u8),
    /// A sender has tried often enough; its message stays in the journal for the next process.
    GiveUp(u8),
    Kill(u8),
    /// Ten seconds pass in which nobody touches the lock.
    Age,
    /// All native processes die; one that is started, by somebody who knows, reads.
    Restart,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) inbox: Inbox,
    pub(crate) lock: Option<Lock>,
    /// Which process holds the flock.
    pub(crate) flock: Option<u8>,
    pub(crate) journal: Ids,
    pub(crate) header: Header,
    /// The one temp file that matters: the one that the header names or its holder is writing.
    pub(crate) tmp: u8,
    pub(crate) processes: [Process; PROCESSES],
    /// What the native reader has shown and pruned, in order.
    pub(crate) delivered: Ids,
    /// The same, of readers that are dead.
    pub(crate) delivered_before: Ids,
    /// What native processes were told is in the inbox.
    pub(crate) native_sent: Ids,
    pub(crate) kills: u8,
    pub(crate) pauses: u8,
    pub(crate) restarts: u8,
    pub(crate) faults: u16,
}

impl World {
    pub(crate) fn is_final(&self) -> bool {
        self.processes.iter().all(Process::is_done)
    }

    pub(crate) fn actions(&self, actions: &mut Vec<Action>) {
        let alone = self.processes.iter().filter(|process| !process.is_done()).count() == 1;
        for (index, process) in (0..).zip(&self.processes) {
            match process {
                Process::Brigade(me) => {
                    if me.can_step(self, alone) {
                        actions.push(Action::Step(index));
                    }
                    if me.can_give_up() {
                        actions.push(Action::GiveUp(index));
                    }
                    // One that holds nothing dies as one that gives up.
                    if self.kills > 0 && self.flock == Some(index) {
                        actions.push(Action::Kill(index));
                    }
                }
                Process::Native(me) => {
                    if me.can_step(self) {
                        actions.push(Action::Step(index));
                    }
                }
            }
        }
        if self.restarts > 0 && self.flock.is_none() {
            actions.push(Action::Restart);
        }
        let fresh = self.lock.filter(|lock| !lock.stale);
        if fresh.is_some_and(|lock| self.pauses > 0 || self.fault_of_age(lock.dir) == 0) {
            actions.push(Action::Age);
        }
    }

    pub(crate) fn next(&self, rules: &Rules, action: Action) -> Self {
        let mut world = *self;
        match action {
            Action::Step(index) => match world.processes[usize::from(index)] {
                Process::Brigade(me) => brigade::step(&mut world, rules, index, me),
                Process::Native(me) => native::step(&mut world, index, me),
            },
            Action::GiveUp(index) => {
                if let Process::Brigade(me) = &mut world.processes[usize::from(index)] {
                    me.turn_to_next();
                }
            }
            Action::Kill(index) => {
                world.kills -= 1;
                world.flock = None;
                if let Process::Brigade(me) = &mut world.processes[usize::from(index)] {
                    *me = Brigade::flushing(me.last);
                }
            }
            Action::Age => {
                let lock = world.lock.as_mut().expect("a lock that ages");
                lock.stale = true;
                let fault = self.fault_of_age(lock.dir);
                world.faults |= fault | fault::AGED;
                world.pauses -= u8::from(fault != 0);
            }
            Action::Restart => {
                world.restarts -= 1;
                for process in &mut world.processes {
                    if let Process::Native(me) = process {
                        *me = Native::absent();
                    }
                }
                merge::natives_ended(&mut world, rules);
                world.processes[READER] = Process::Native(Native::reader(1));
                world.delivered_before = world.delivered_before.followed_by(world.delivered);
                world.delivered = Ids::default();
                // From here on nothing is to come twice because of what was before.
                if world.faults & fault::AGED != 0 {
                    world.faults = world.faults & !fault::AGED | fault::AGED_BEFORE;
                }
            }
        }
        world.renumber();
        world
    }

    /// Whose pause it is if this lock grows old now; 0 if nobody relies on its being young.
    fn fault_of_age(&self, dir: u8) -> u16 {
        self.processes.iter().fold(0, |faults, process| {
            faults
                | match process {
                    Process::Brigade(me) => me.fault_of_age(dir),
                    Process::Native(me) if me.dir == dir => fault::NATIVE_LATE,
                    Process::Native(_) => 0,
                }
        })
    }

    /// Identities matter only in being the same or not, so worlds that differ in nothing else are
    /// made equal.
    fn renumber(&mut self) {
        let mut dirs = Numbers::default();
        let mut files = Numbers::default();
        if let Some(lock) = &mut self.lock {
            dirs.renumber(&mut lock.dir);
        }
        dirs.renumber(&mut self.header.lock);
        files.renumber(&mut self.inbox.file);
        files.renumber(&mut self.header.ours);
        files.renumber(&mut self.header.tmp);
        for process in &mut self.processes {
            match process {
                Process::Brigade(me) => {
                    dirs.renumber(&mut me.dir);
                    dirs.renumber(&mut me.seen);
                    dirs.renumber(&mut me.next.lock);
                    files.renumber(&mut me.file);
                    files.renumber(&mut me.tmp);
                    files.renumber(&mut me.next.ours);
                    files.renumber(&mut me.next.tmp);
                }
                Process::Native(me) => {
                    dirs.renumber(&mut me.dir);
                    dirs.renumber(&mut me.seen);
                }
            }
        }
        // A temp file that nobody knows is litter.
        self.tmp = files.known(self.tmp);
    }
}

impl Process {
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Brigade(me) => format!("brigade {:?}", me.at),
            Self::Native(me) => format!("native {:?}", me.at),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Brigade(me) => me.is_done(),
            Self::Native(me) => me.is_done(),
        }
    }
}

/// Old identities by their new ones.
#[derive(Default)]
struct Numbers {
    old: [u8; 15],
    len: u8,
}

impl Numbers {
    fn renumber(&mut self, number: &mut u8) {
        if *number == 0 {
            return;
        }
        let mut new = self.known(*number);
        if new == 0 {
            self.old[usize::from(self.len)] = *number;
            self.len += 1;
            new = self.len;
        }
        *number = new;
    }

    fn known(&self, number: u8) -> u8 {
        (1..=self.len).find(|&new| self.old[usize::from(new) - 1] == number).unwrap_or(0)
    }
}
