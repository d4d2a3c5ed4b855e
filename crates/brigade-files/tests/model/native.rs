//! Processes of Claude Code 2.1.325 that use an inbox: a writer that appends, and a reader that
//! prunes the messages that it has shown.

use crate::ids::Ids;
use crate::state::{ModelLock, ModelProcess, ModelState, NEW, fault};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NativeStep {
    /// Reads the inbox without a lock and shows its messages. Only the reader does this.
    Show,
    Lock,
    /// Removes a lock that this process found stale.
    Steal,
    Read,
    Rename,
    Unlock,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NativeProcess {
    pub(crate) step: NativeStep,
    /// The message to append; `None` for the reader.
    message: Option<u8>,
    /// How many more times the reader will read.
    reads: u8,
    /// The lock directory that this process created.
    pub(crate) dir: u8,
    pub(crate) seen: u8,
    shown: Ids,
    read: Ids,
}

impl NativeProcess {
    pub(crate) fn writer(message: u8) -> Self {
        Self { step: NativeStep::Lock, message: Some(message), ..Self::finished() }
    }

    pub(crate) fn reader(reads: u8) -> Self {
        let empty = Ids::default();
        let step = if reads == 0 { NativeStep::Done } else { NativeStep::Show };
        Self { step, message: None, reads, dir: 0, seen: 0, shown: empty, read: empty }
    }

    pub(crate) fn finished() -> Self {
        Self::reader(0)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step == NativeStep::Done
    }

    pub(crate) fn can_step(&self, state: &ModelState) -> bool {
        match self.step {
            NativeStep::Done => false,
            NativeStep::Lock => state.lock.is_none_or(|lock| lock.stale),
            _ => true,
        }
    }
}

pub(crate) fn step(state: &mut ModelState, index: u8, mut this: NativeProcess) {
    match this.step {
        NativeStep::Show => {
            this.shown = state.inbox.ids;
            // If nothing was shown, there is nothing to prune.
            this.step = if this.shown.is_empty() { NativeStep::Done } else { NativeStep::Lock };
        }
        NativeStep::Lock => match state.lock {
            None => {
                this.dir = NEW;
                this.seen = 0;
                state.lock = Some(ModelLock { dir: NEW, stale: false, by_brigade: false });
                this.step = NativeStep::Read;
            }
            Some(lock) => {
                this.seen = lock.dir;
                this.step = NativeStep::Steal;
            }
        },
        NativeStep::Steal => {
            if state.lock.is_some_and(|lock| lock.dir != this.seen) {
                state.faults |= fault::NATIVE_REMOVED_WRONG;
            }
            remove_lock(state, fault::NATIVE_STOLE_FROM_NATIVE);
            this.seen = 0;
            this.step = NativeStep::Lock;
        }
        NativeStep::Read => {
            this.read = state.inbox.ids;
            this.step = NativeStep::Rename;
        }
        NativeStep::Rename => {
            state.inbox.file = NEW;
            state.inbox.ids = this.read;
            if let Some(message) = this.message {
                state.inbox.ids.push(message);
                state.native_sent.push(message);
            } else {
                state.inbox.ids = this.read.filtered(|id| !this.shown.contains(id));
                let pruned = this.read.filtered(|id| this.shown.contains(id));
                state.delivered = state.delivered.followed_by(pruned);
            }
            this.read = Ids::default();
            this.shown = Ids::default();
            this.step = NativeStep::Unlock;
        }
        NativeStep::Unlock => {
            // A native process does not check whose lock it removes.
            if state.lock.is_some_and(|lock| lock.dir == this.dir) {
                state.lock = None;
            } else {
                remove_lock(state, fault::NATIVE_RELEASED_NATIVE);
            }
            this = match this.message {
                Some(_) => NativeProcess::finished(),
                None => NativeProcess::reader(this.reads - 1),
            };
        }
        NativeStep::Done => unreachable!("a process that is done takes no step"),
    }
    state.processes[usize::from(index)] = ModelProcess::Native(this);
}

fn remove_lock(state: &mut ModelState, from_native: u16) {
    if let Some(lock) = state.lock.take() {
        state.faults |= if lock.by_brigade { 0 } else { from_native };
    }
}
