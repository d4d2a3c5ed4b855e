//! What the mailbox promises, and in which runs. A law is broken by a world for which it is true.

use crate::explore::Law;
use crate::world::{World, fault};

/// The older and newer message of each sender.
pub(crate) const SENDERS: [[u8; 2]; 2] = [[1, 2], [3, 4]];

/// Natives broke the lock among themselves, which no brigade process can see.
const UNSEEN: u16 = ROBBED | FREED;
const ROBBED: u16 = fault::NATIVE_ROBBED_NATIVE;
const FREED: u16 = fault::NATIVE_FREED_NATIVE;

/// The four ways to lose a native message. Two are the natives' own: oversleeping with the lock, and
/// taking a stale one that is no longer there. Two are ours, and each is one gap between two calls:
/// a pause of ten seconds before the rename, and a lock that changes hands as we take it away.
const NATIVE_EXCUSED: u16 =
    fault::NATIVE_LATE | fault::NATIVE_TOOK_WRONG | fault::LATE_RENAME | fault::TOOK_WRONG;

/// What holds in every run, killed processes among them.
pub(crate) const LAWS: [(&str, Law); 5] = [
    ("lost", |world| unless(world, UNSEEN | fault::TOOK_WRONG) && lost(world)),
    ("native lost", |world| unless(world, NATIVE_EXCUSED) && native_lost(world)),
    ("doubled", |world| unless(world, fault::AGED) && doubled(world)),
    ("stands twice", stands_twice),
    ("disordered", |world| unless(world, fault::AGED | fault::AGED_BEFORE) && disordered(world)),
];

/// The laws with one excuse left out, which a pause alone breaks.
pub(crate) const CORNERS: [(&str, Law); 6] = [
    ("natives rob each other", |world| unless(world, fault::TOOK_WRONG | FREED) && lost(world)),
    ("a native overslept", |world| native_lost_but_for(world, fault::NATIVE_LATE)),
    ("a native took a wrong lock", |world| native_lost_but_for(world, fault::NATIVE_TOOK_WRONG)),
    ("a pause before the rename", |world| native_lost_but_for(world, fault::LATE_RENAME)),
    ("a wrong lock taken", |world| native_lost_but_for(world, fault::TOOK_WRONG)),
    ("put back after a steal", |world| unless(world, UNSEEN) && doubled(world)),
];

/// The same, for which somebody must be killed too.
pub(crate) const CORNERS_OF_KILLS: [(&str, Law); 2] = [
    ("natives free each other", |world| unless(world, fault::TOOK_WRONG | ROBBED) && lost(world)),
    ("a killed process took a wrong lock", |world| unless(world, UNSEEN) && lost(world)),
];

fn native_lost_but_for(world: &World, fault: u16) -> bool {
    unless(world, NATIVE_EXCUSED & !fault) && native_lost(world)
}

/// Without a kill, brigade's messages outlast a wrong lock taken, too.
pub(crate) fn lost_without_kill(world: &World) -> bool {
    unless(world, UNSEEN) && lost(world)
}

fn unless(world: &World, faults: u16) -> bool {
    world.faults & faults == 0
}

fn everywhere(world: &World, id: u8) -> usize {
    world.delivered.count(id) + world.inbox.ids.count(id)
}

fn is_nowhere(world: &World, id: u8) -> bool {
    everywhere(world, id) == 0 && !world.delivered_before.has(id)
}

/// A message whose sender was told that it is sent is neither in the inbox nor was it delivered.
fn lost(world: &World) -> bool {
    world.is_final() && world.journal.iter().any(|id| is_nowhere(world, id))
}

/// The same of a native message.
fn native_lost(world: &World) -> bool {
    world.is_final() && world.native_sent.iter().any(|id| is_nowhere(world, id))
}

/// A message was delivered and still stands in the inbox, or was delivered twice.
fn doubled(world: &World) -> bool {
    world.journal.iter().chain(world.native_sent.iter()).any(|id| everywhere(world, id) > 1)
}

fn stands_twice(world: &World) -> bool {
    world.inbox.ids.iter().any(|id| world.inbox.ids.count(id) > 1)
}

/// A sender's newer message comes before its older one.
fn disordered(world: &World) -> bool {
    let order = world.delivered.followed_by(world.inbox.ids);
    SENDERS.iter().any(|&[older, newer]| {
        let place = |id| order.iter().position(|other| other == id);
        let overtakes = |newer| match place(older) {
            Some(older) => newer < older,
            None => !world.delivered_before.has(older),
        };
        place(newer).is_some_and(overtakes)
    })
}
