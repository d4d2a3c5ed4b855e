//! The files of one mailbox and the processes that use them. One step is one system call.

use crate::brigade::{self, BrigadeProcess};
use crate::ids::Ids;
use crate::merge;
use crate::native::{self, NativeProcess};
use crate::rules::ProtocolRules;

/// The identity of a newly created file or lock; [`ModelState::renumber`] replaces it with a small
/// number.
pub(crate) const NEW: u8 = 255;
pub(crate) const PROCESSES: usize = 5;
/// Index of the native reader.
const READER: usize = 3;

/// Faults in a run. They determine which properties must still hold.
pub(crate) mod fault {
    /// A lock became stale.
    pub(crate) const LOCK_STALE: u16 = 1;
    /// A native process was paused while it held the lock.
    pub(crate) const NATIVE_PAUSED: u16 = 2;
    /// A native process saw a stale lock, but removed the lock that replaced it.
    pub(crate) const NATIVE_REMOVED_WRONG: u16 = 4;
    /// A native process stole a lock from another native process.
    pub(crate) const NATIVE_STOLE_FROM_NATIVE: u16 = 8;
    /// A native process released a lock that by then belonged to another native process.
    pub(crate) const NATIVE_RELEASED_NATIVE: u16 = 16;
    /// A brigade process was paused between its last check and the rename.
    pub(crate) const PAUSED_BEFORE_RENAME: u16 = 32;
    /// A brigade process was paused anywhere else while it relied on the lock.
    pub(crate) const PAUSED_ELSEWHERE: u16 = 64;
    /// A brigade process inspected a lock, but removed a newer lock that a native process created
    /// afterwards.
    pub(crate) const REMOVED_WRONG: u16 = 128;
    /// A lock became stale before all native processes died.
    pub(crate) const LOCK_STALE_BEFORE_RESTART: u16 = 256;
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ModelInbox {
    pub(crate) file: u8,
    pub(crate) ids: Ids,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ModelLock {
    pub(crate) dir: u8,
    pub(crate) stale: bool,
    /// Whether a brigade process created the lock. Only reports and checks use this; no process can
    /// see it.
    pub(crate) by_brigade: bool,
}

/// The header of the state file. Offsets count journal records, and 0 stands for no file or lock.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ModelHeader {
    pub(crate) base: u8,
    pub(crate) upto: u8,
    pub(crate) tmp: u8,
    pub(crate) lock: u8,
    /// The inbox that a brigade process last wrote or read. Outdated if `tmp` has become the inbox
    /// since.
    pub(crate) ours: u8,
    /// For each steal, an offset plus one. Messages after that offset are at risk.
    pub(crate) risks: Ids,
    /// The messages in the inbox at the first steal.
    pub(crate) known: Ids,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ModelProcess {
    Brigade(BrigadeProcess),
    Native(NativeProcess),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ModelAction {
    Step(u8),
    /// A sender stops trying; its message stays in the journal for the next process.
    GiveUp(u8),
    Kill(u8),
    /// Ten seconds pass without any process touching the lock.
    LockGetsStale,
    /// All native processes die, brigade is notified, and a new reader starts.
    Restart,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ModelState {
    pub(crate) inbox: ModelInbox,
    pub(crate) lock: Option<ModelLock>,
    /// The process that holds the flock.
    pub(crate) flock: Option<u8>,
    pub(crate) journal: Ids,
    pub(crate) header: ModelHeader,
    /// The only temp file that matters: the header names it, or the holder of the flock is writing
    /// it.
    pub(crate) tmp: u8,
    pub(crate) processes: [ModelProcess; PROCESSES],
    /// The messages that the native reader has shown and pruned, in order.
    pub(crate) delivered: Ids,
    /// The messages that earlier native readers, now dead, have shown and pruned.
    pub(crate) delivered_before: Ids,
    /// The messages that native processes believe are in the inbox.
    pub(crate) native_sent: Ids,
    pub(crate) kills: u8,
    pub(crate) pauses: u8,
    pub(crate) restarts: u8,
    pub(crate) faults: u16,
}

impl ModelState {
    pub(crate) fn is_final(&self) -> bool {
        self.processes.iter().all(ModelProcess::is_done)
    }

    pub(crate) fn actions(&self, actions: &mut Vec<ModelAction>) {
        let alone = self.processes.iter().filter(|process| !process.is_done()).count() == 1;
        for (index, process) in (0..).zip(&self.processes) {
            match process {
                ModelProcess::Brigade(this) => {
                    if this.can_step(self, alone) {
                        actions.push(ModelAction::Step(index));
                    }
                    if this.can_give_up() {
                        actions.push(ModelAction::GiveUp(index));
                    }
                    // Kill only the holder of the flock. Killing another process has the same
                    // effect as `GiveUp`.
                    if self.kills > 0 && self.flock == Some(index) {
                        actions.push(ModelAction::Kill(index));
                    }
                }
                ModelProcess::Native(this) => {
                    if this.can_step(self) {
                        actions.push(ModelAction::Step(index));
                    }
                }
            }
        }
        if self.restarts > 0 && self.flock.is_none() {
            actions.push(ModelAction::Restart);
        }
        let fresh = self.lock.filter(|lock| !lock.stale);
        if fresh.is_some_and(|lock| self.pauses > 0 || self.fault_if_stale(lock.dir) == 0) {
            actions.push(ModelAction::LockGetsStale);
        }
    }

    pub(crate) fn next(&self, rules: &ProtocolRules, action: ModelAction) -> Self {
        let mut state = *self;
        match action {
            ModelAction::Step(index) => match state.processes[usize::from(index)] {
                ModelProcess::Brigade(this) => brigade::step(&mut state, rules, index, this),
                ModelProcess::Native(this) => native::step(&mut state, index, this),
            },
            ModelAction::GiveUp(index) => {
                if let ModelProcess::Brigade(this) = &mut state.processes[usize::from(index)] {
                    this.start_next_message();
                }
            }
            ModelAction::Kill(index) => {
                state.kills -= 1;
                state.flock = None;
                if let ModelProcess::Brigade(this) = &mut state.processes[usize::from(index)] {
                    *this = BrigadeProcess::flusher(this.last);
                }
            }
            ModelAction::LockGetsStale => {
                let lock = state.lock.as_mut().expect("only an existing lock can become stale");
                lock.stale = true;
                let fault = self.fault_if_stale(lock.dir);
                state.faults |= fault | fault::LOCK_STALE;
                state.pauses -= u8::from(fault != 0);
            }
            ModelAction::Restart => {
                state.restarts -= 1;
                for process in &mut state.processes {
                    if let ModelProcess::Native(this) = process {
                        *this = NativeProcess::finished();
                    }
                }
                merge::recover_after_natives_ended(&mut state, rules);
                state.processes[READER] = ModelProcess::Native(NativeProcess::reader(1));
                state.delivered_before = state.delivered_before.followed_by(state.delivered);
                state.delivered = Ids::default();
                // From here on, no message may be delivered twice, whatever faults happened earlier.
                if state.faults & fault::LOCK_STALE != 0 {
                    state.faults =
                        state.faults & !fault::LOCK_STALE | fault::LOCK_STALE_BEFORE_RESTART;
                }
            }
        }
        state.renumber();
        state
    }

    /// Returns the faults that the run contains if this lock becomes stale now. If a process still relies on the
    /// lock, that process was paused, which is a fault. If no process relies on the lock, returns 0.
    fn fault_if_stale(&self, dir: u8) -> u16 {
        self.processes.iter().fold(0, |faults, process| {
            faults
                | match process {
                    ModelProcess::Brigade(this) => this.fault_if_stale(dir),
                    ModelProcess::Native(this) if this.dir == dir => fault::NATIVE_PAUSED,
                    ModelProcess::Native(_) => 0,
                }
        })
    }

    /// Renumbers all identities in a fixed order, so that two states become equal if they differ
    /// only in these numbers.
    fn renumber(&mut self) {
        let mut dirs = Renumbering::default();
        let mut files = Renumbering::default();
        if let Some(lock) = &mut self.lock {
            dirs.renumber(&mut lock.dir);
        }
        dirs.renumber(&mut self.header.lock);
        files.renumber(&mut self.inbox.file);
        files.renumber(&mut self.header.ours);
        files.renumber(&mut self.header.tmp);
        for process in &mut self.processes {
            match process {
                ModelProcess::Brigade(this) => {
                    dirs.renumber(&mut this.dir);
                    dirs.renumber(&mut this.seen);
                    dirs.renumber(&mut this.next.lock);
                    files.renumber(&mut this.file);
                    files.renumber(&mut this.tmp);
                    files.renumber(&mut this.next.ours);
                    files.renumber(&mut this.next.tmp);
                }
                ModelProcess::Native(this) => {
                    dirs.renumber(&mut this.dir);
                    dirs.renumber(&mut this.seen);
                }
            }
        }
        // A temp file that no process or header refers to is irrelevant.
        self.tmp = files.known(self.tmp);
    }
}

impl ModelProcess {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Brigade(this) => format!("brigade {:?}", this.step),
            Self::Native(this) => format!("native {:?}", this.step),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Brigade(this) => this.is_done(),
            Self::Native(this) => this.is_done(),
        }
    }
}

/// Old identities, indexed by their new numbers.
#[derive(Default)]
struct Renumbering {
    old: [u8; 15],
    len: u8,
}

impl Renumbering {
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
