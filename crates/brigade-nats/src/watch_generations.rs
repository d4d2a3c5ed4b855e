//! Remembers which mailboxes the watches of this process hear, so that a cached mailbox is trusted only while a watch
//! adds its new messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use brigade_wire::name::{MemberName, TeamName};

/// The mailboxes that a watch hears.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WatchedMailboxes {
    pub(crate) team: TeamName,
    /// The member whose mailbox the watch hears; `None` if it hears all mailboxes of the team.
    pub(crate) member: Option<MemberName>,
}

/// The running watches. Each watch has a generation number, which changes when the watch may have missed a message.
/// A cache that was filled in an older generation may be incomplete. No two watches have the same number.
#[derive(Debug, Default)]
pub(crate) struct WatchGenerations(Mutex<(u64, HashMap<WatchedMailboxes, u64>)>);

impl WatchGenerations {
    /// Returns the current generation of a watch that hears this mailbox; `None` if there is no such watch.
    pub(crate) fn now(&self, team: &TeamName, member: &MemberName) -> Option<u64> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of =
            |member| generations.1.get(&WatchedMailboxes { team: team.clone(), member }).copied();
        of(Some(member.clone())).or_else(|| of(None))
    }

    /// Starts a new generation of a watch.
    pub(crate) fn begin(&self, scope: &WatchedMailboxes) -> u64 {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.0 += 1;
        let generation = generations.0;
        generations.1.insert(scope.clone(), generation);
        generation
    }

    /// Forgets a watch that has ended, unless another watch has replaced it.
    pub(crate) fn end(&self, scope: &WatchedMailboxes, generation: u64) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.1.get(scope) == Some(&generation) {
            generations.1.remove(scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_of_one_mailbox_vouches_for_no_other() {
        let generations = WatchGenerations::default();
        let team: TeamName = "demo".parse().unwrap();
        let [alice, bob]: [MemberName; 2] = ["alice", "bob"].map(|name| name.parse().unwrap());
        let now = |member| generations.now(&team, member);
        let own = WatchedMailboxes { team: team.clone(), member: Some(alice.clone()) };
        let first = generations.begin(&own);
        assert_eq!((now(&alice), now(&bob)), (Some(first), None));
        let all = WatchedMailboxes { team: team.clone(), member: None };
        let second = generations.begin(&all);
        assert_eq!((now(&alice), now(&bob)), (Some(first), Some(second)));
        generations.end(&own, first);
        assert_eq!((now(&alice), now(&bob)), (Some(second), Some(second)));
        generations.end(&all, first);
        assert_eq!(now(&bob), Some(second), "an older watch has ended");
    }
}
