//! The requests of a team, and the answers to them.

use std::collections::HashMap;

use super::{MemberIndex, MessageKind, Millis};
use crate::store::event_log::RecordRef;

/// A request: a plan, a permission request, or a shutdown request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestEntry {
    /// The request id.
    pub id: String,
    /// The type of the request.
    pub kind: MessageKind,
    /// The member that made the request.
    pub from: MemberIndex,
    /// The member that must answer.
    pub to: MemberIndex,
    /// When the request was made.
    pub at: Millis,
    /// The position of the journal record that contains the request's text.
    pub record: RecordRef,
    /// The answer; `None` while the request is open.
    pub reply: Option<RequestAnswer>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestAnswer {
    /// The time of the answer.
    pub at: Millis,
    /// Whether the answer is yes.
    pub yes: bool,
    /// The decider, if recorded.
    pub decided_by: Option<String>,
    /// The reason, if the answer is no.
    pub reason: Option<String>,
}

/// All requests of the team.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLog {
    all: Vec<RequestEntry>,
    by_id: HashMap<String, Vec<usize>>,
    answered: usize,
}

impl RequestLog {
    pub(super) fn all(&self) -> &[RequestEntry] {
        &self.all
    }

    /// Returns the number of answered requests.
    pub(super) fn answered(&self) -> usize {
        self.answered
    }

    /// Adds a request. Returns whether it is new.
    pub(super) fn ask(&mut self, asked: RequestEntry) -> bool {
        let same = self.by_id.entry(asked.id.clone()).or_default();
        let request = |&index: &usize| self.all.get(index);
        if same
            .iter()
            .filter_map(request)
            .any(|other| other.from == asked.from && other.to == asked.to)
        {
            return false;
        }
        same.push(self.all.len());
        self.all.push(asked);
        true
    }

    /// Applies an answer to the open request that `asker` made with this id. Returns who made the request, and its
    /// type; `None` if there is no such open request.
    pub(super) fn answer(
        &mut self,
        id: &str,
        asker: Option<MemberIndex>,
        reply: RequestAnswer,
    ) -> Option<(MemberIndex, MessageKind)> {
        let indexes = self.by_id.get(id)?;
        let is_open = |index: &&usize| {
            self.all.get(**index).is_some_and(|asked| {
                asked.reply.is_none() && asker.is_none_or(|asker| asked.from == asker)
            })
        };
        let index = *indexes.iter().find(is_open)?;
        let asked = self.all.get_mut(index)?;
        asked.reply = Some(reply);
        self.answered += 1;
        Some((asked.from, asked.kind))
    }

    /// Closes the open requests of a member that left. Returns how many of them were plan or permission requests.
    pub(super) fn close_requests_of(&mut self, who: MemberIndex, at: Millis) -> usize {
        let mut open = 0;
        for asked in self.all.iter_mut().filter(|asked| asked.from == who && asked.reply.is_none())
        {
            let hand = Some("left".to_owned());
            asked.reply = Some(RequestAnswer { at, yes: false, decided_by: hand, reason: None });
            self.answered += 1;
            open += usize::from(asked.kind != MessageKind::ShutdownRequest);
        }
        open
    }
}
