//! The questions of an agent that wait for their answer.

use std::collections::BTreeMap;

use super::AskId;

/// Open questions, each with what is needed to answer it.
#[derive(Debug)]
pub(super) struct Asks<T> {
    last: u64,
    open: BTreeMap<AskId, T>,
}

impl<T> Asks<T> {
    pub(super) fn new() -> Self {
        Self { last: 0, open: BTreeMap::new() }
    }

    /// A new question.
    pub(super) fn open(&mut self, how: T) -> AskId {
        self.last += 1;
        let id = AskId(self.last);
        self.open.insert(id, how);
        id
    }

    /// A question that is answered now; none if it is open no longer.
    pub(super) fn close(&mut self, id: AskId) -> Option<T> {
        self.open.remove(&id)
    }

    /// A question the agent itself calls off.
    pub(super) fn close_where(&mut self, is: impl Fn(&T) -> bool) -> Option<(AskId, T)> {
        let id = self.open.iter().find(|(_, how)| is(how)).map(|(id, _)| *id)?;
        self.open.remove_entry(&id)
    }

    /// All that are open: the turn they belong to is over.
    pub(super) fn close_all(&mut self) -> BTreeMap<AskId, T> {
        std::mem::take(&mut self.open)
    }
}
