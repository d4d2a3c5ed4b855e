//! Claude Code 2.1.325 at its own inbox: a writer that appends, a reader that prunes what it showed.

use crate::ids::Ids;
use crate::world::{Lock, NEW, Process, World, fault};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum At {
    /// The reader looks without a lock.
    Show,
    Lock,
    /// Removes a lock that it saw to be stale.
    Steal,
    Read,
    Rename,
    Unlock,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Native {
    pub(crate) at: At,
    /// The message to append; the reader has none.
    message: Option<u8>,
    /// How often the reader will look once more.
    rounds: u8,
    /// The lock directory it made.
    pub(crate) dir: u8,
    pub(crate) seen: u8,
    shown: Ids,
    read: Ids,
}

impl Native {
    pub(crate) fn writer(message: u8) -> Self {
        let empty = Ids::default();
        Self {
            at: At::Lock,
            message: Some(message),
            rounds: 0,
            dir: 0,
            seen: 0,
            shown: empty,
            read: empty,
        }
    }

    pub(crate) fn reader(rounds: u8) -> Self {
        let empty = Ids::default();
        let at = if rounds == 0 { At::Done } else { At::Show };
        Self { at, message: None, rounds, dir: 0, seen: 0, shown: empty, read: empty }
    }

    pub(crate) fn absent() -> Self {
        Self::reader(0)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    pub(crate) fn can_step(&self, world: &World) -> bool {
        match self.at {
            At::Done => false,
            At::Lock => world.lock.is_none_or(|lock| lock.stale),
            _ => true,
        }
    }
}

pub(crate) fn step(world: &mut World, index: u8, mut me: Native) {
    match me.at {
        At::Show => {
            me.shown = world.inbox.ids;
            // With nothing shown there is nothing to prune.
            me.at = if me.shown.is_empty() { At::Done } else { At::Lock };
        }
        At::Lock => match world.lock {
            None => {
                me.dir = NEW;
                me.seen = 0;
                world.lock = Some(Lock { dir: NEW, stale: false, by_brigade: false });
                me.at = At::Read;
            }
            Some(lock) => {
                me.seen = lock.dir;
                me.at = At::Steal;
            }
        },
        At::Steal => {
            if world.lock.is_some_and(|lock| lock.dir != me.seen) {
                world.faults |= fault::NATIVE_TOOK_WRONG;
            }
            remove_lock(world, fault::NATIVE_ROBBED_NATIVE);
            me.seen = 0;
            me.at = At::Lock;
        }
        At::Read => {
            me.read = world.inbox.ids;
            me.at = At::Rename;
        }
        At::Rename => {
            world.inbox.file = NEW;
            world.inbox.ids = me.read;
            if let Some(message) = me.message {
                world.inbox.ids.push(message);
                world.native_sent.push(message);
            } else {
                world.inbox.ids = me.read.filtered(|id| !me.shown.has(id));
                let pruned = me.read.filtered(|id| me.shown.has(id));
                world.delivered = world.delivered.followed_by(pruned);
            }
            me.read = Ids::default();
            me.shown = Ids::default();
            me.at = At::Unlock;
        }
        At::Unlock => {
            // It does not look whose lock it removes.
            if world.lock.is_some_and(|lock| lock.dir == me.dir) {
                world.lock = None;
            } else {
                remove_lock(world, fault::NATIVE_FREED_NATIVE);
            }
            me = match me.message {
                Some(_) => Native::absent(),
                None => Native::reader(me.rounds - 1),
            };
        }
        At::Done => unreachable!("a process that is done takes no step"),
    }
    world.processes[usize::from(index)] = Process::Native(me);
}

fn remove_lock(world: &mut World, from_native: u16) {
    if let Some(lock) = world.lock.take() {
        world.faults |= if lock.by_brigade { 0 } else { from_native };
    }
}
