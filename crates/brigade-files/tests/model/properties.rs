//! The properties that the mailbox guarantees, and the runs to which they apply. Each check returns
//! true if a state violates its property.

use crate::explore::Property;
use crate::state::{ModelState, fault};

/// The older and newer message of each sender.
pub(crate) const SENDERS: [[u8; 2]; 2] = [[1, 2], [3, 4]];

/// Faults in which a native process takes or releases another native process's lock. No brigade
/// process can see these faults.
const NATIVE_LOCK_ERRORS: u16 = STOLEN | RELEASED;
const STOLEN: u16 = fault::NATIVE_STOLE_FROM_NATIVE;
const RELEASED: u16 = fault::NATIVE_RELEASED_NATIVE;

/// The four ways to lose a native message. Two are faults of native processes: being paused while
/// holding the lock, and removing the lock that replaced a stale lock. Two are faults of brigade,
/// and each happens between two system calls: a pause of ten seconds before the rename, and the
/// removal of a lock that another process has just acquired.
const NATIVE_EXCEPTIONS: u16 = fault::NATIVE_PAUSED
    | fault::NATIVE_REMOVED_WRONG
    | fault::PAUSED_BEFORE_RENAME
    | fault::REMOVED_WRONG;

/// Properties that hold in every run, including runs with killed processes.
pub(crate) const PROPERTIES: [(&str, Property); 5] = [
    ("message lost", |state| {
        has_none_of(state, NATIVE_LOCK_ERRORS | fault::REMOVED_WRONG) && lost(state)
    }),
    ("native message lost", |state| has_none_of(state, NATIVE_EXCEPTIONS) && native_lost(state)),
    ("delivered twice", |state| has_none_of(state, fault::LOCK_STALE) && delivered_twice(state)),
    ("twice in the inbox", duplicated_in_inbox),
    ("out of order", |state| {
        has_none_of(state, fault::LOCK_STALE | fault::LOCK_STALE_BEFORE_RESTART)
            && out_of_order(state)
    }),
];

/// Properties with one exception left out. Each of these properties is violated in some run with a pause.
pub(crate) const EXCEPTIONS: [(&str, Property); 6] = [
    ("a native steals from a native", |state| {
        has_none_of(state, fault::REMOVED_WRONG | RELEASED) && lost(state)
    }),
    ("a native is paused with the lock", |state| native_lost_except(state, fault::NATIVE_PAUSED)),
    ("a native removes a wrong lock", |state| {
        native_lost_except(state, fault::NATIVE_REMOVED_WRONG)
    }),
    ("a pause before the rename", |state| native_lost_except(state, fault::PAUSED_BEFORE_RENAME)),
    ("brigade removes a wrong lock", |state| native_lost_except(state, fault::REMOVED_WRONG)),
    ("restored after a steal", |state| {
        has_none_of(state, NATIVE_LOCK_ERRORS) && delivered_twice(state)
    }),
];

/// Properties with one exception left out. Each of these properties is violated in some run with a
/// pause and a kill.
pub(crate) const EXCEPTIONS_WITH_KILLS: [(&str, Property); 2] = [
    ("a native releases the lock of a native", |state| {
        has_none_of(state, fault::REMOVED_WRONG | STOLEN) && lost(state)
    }),
    ("a killed process removed a wrong lock", |state| {
        has_none_of(state, NATIVE_LOCK_ERRORS) && lost(state)
    }),
];

fn native_lost_except(state: &ModelState, fault: u16) -> bool {
    has_none_of(state, NATIVE_EXCEPTIONS & !fault) && native_lost(state)
}

/// A stricter check for runs without kills. In these runs, brigade's messages survive even if a
/// process removes the wrong lock.
pub(crate) fn lost_without_kill(state: &ModelState) -> bool {
    has_none_of(state, NATIVE_LOCK_ERRORS) && lost(state)
}

fn has_none_of(state: &ModelState, faults: u16) -> bool {
    state.faults & faults == 0
}

fn total_count(state: &ModelState, id: u8) -> usize {
    state.delivered.count(id) + state.inbox.ids.count(id)
}

fn is_missing(state: &ModelState, id: u8) -> bool {
    total_count(state, id) == 0 && !state.delivered_before.contains(id)
}

/// Returns whether an acknowledged message is neither in the inbox nor delivered.
fn lost(state: &ModelState) -> bool {
    state.is_final() && state.journal.iter().any(|id| is_missing(state, id))
}

/// Returns whether a native message is neither in the inbox nor delivered.
fn native_lost(state: &ModelState) -> bool {
    state.is_final() && state.native_sent.iter().any(|id| is_missing(state, id))
}

/// Returns whether a message was delivered twice, or was delivered and is still in the inbox.
fn delivered_twice(state: &ModelState) -> bool {
    state.journal.iter().chain(state.native_sent.iter()).any(|id| total_count(state, id) > 1)
}

fn duplicated_in_inbox(state: &ModelState) -> bool {
    state.inbox.ids.iter().any(|id| state.inbox.ids.count(id) > 1)
}

/// Returns whether a sender's newer message comes before its older one.
fn out_of_order(state: &ModelState) -> bool {
    let order = state.delivered.followed_by(state.inbox.ids);
    SENDERS.iter().any(|&[older, newer]| {
        let place = |id| order.iter().position(|other| other == id);
        let overtakes = |newer| match place(older) {
            Some(older) => newer < older,
            None => !state.delivered_before.contains(older),
        };
        place(newer).is_some_and(overtakes)
    })
}
