//! An agent's permission requests that are not answered yet.

use std::collections::BTreeMap;

use super::AskId;

/// Unanswered permission requests, each with the data needed to answer it.
#[derive(Debug)]
pub(super) struct OpenAsks<T> {
    last: u64,
    open: BTreeMap<AskId, T>,
}

impl<T> OpenAsks<T> {
    pub(super) fn new() -> Self {
        Self { last: 0, open: BTreeMap::new() }
    }

    /// Adds a request and returns the id assigned to it.
    pub(super) fn open(&mut self, data: T) -> AskId {
        self.last += 1;
        let id = AskId(self.last);
        self.open.insert(id, data);
        id
    }

    /// Removes a request that is about to be answered. Returns `None` if the request is no longer open.
    pub(super) fn close(&mut self, id: AskId) -> Option<T> {
        self.open.remove(&id)
    }

    /// Removes a request that the agent withdrew.
    pub(super) fn close_where(&mut self, matches: impl Fn(&T) -> bool) -> Option<(AskId, T)> {
        let id = self.open.iter().find(|(_, data)| matches(data)).map(|(id, _)| *id)?;
        self.open.remove_entry(&id)
    }

    /// Removes all requests, because their turn is over.
    pub(super) fn close_all(&mut self) -> BTreeMap<AskId, T> {
        std::mem::take(&mut self.open)
    }
}
