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

/// The parties of a request, as its answer names them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestParties {
    /// The type of the request.
    pub(super) kind: MessageKind,
    /// The member that made the request.
    pub(super) asker: MemberIndex,
    /// The member that answered; `None` if the asking member withdrew the request.
    pub(super) answerer: Option<MemberIndex>,
}

impl RequestParties {
    /// Returns whether these members may answer the request: only the member that was asked can.
    fn answer(&self, asked: &RequestEntry) -> bool {
        asked.from == self.asker && self.answerer.is_none_or(|answerer| asked.to == answerer)
    }
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

    /// Applies an answer to an open request with this id. Returns who made the request, and its type; `None` if no
    /// open request matches.
    pub(super) fn answer(
        &mut self,
        id: &str,
        parties: RequestParties,
        reply: RequestAnswer,
    ) -> Option<(MemberIndex, MessageKind)> {
        let indexes = self.by_id.get(id)?;
        let is_open = |index: &&usize| {
            self.all.get(**index).is_some_and(|asked| {
                asked.reply.is_none() && asked.kind == parties.kind && parties.answer(asked)
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
