//! What was asked of somebody, and what the answer was.

use std::collections::HashMap;

use super::{At, Kind, Who};
use crate::event_log::Spot;

/// A request: a plan, a leave, or that somebody stops.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Who asks.
    pub from: Who,
    /// Whom.
    pub to: Who,
    /// When.
    pub at: At,
    /// Where its words stand.
    pub spot: Spot,
    /// The answer, if there was one.
    pub reply: Option<Reply>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// When it was given.
    pub at: At,
    /// Whether it was yes.
    pub yes: bool,
    /// By whose hand, where that was written down.
    pub hand: Option<String>,
    /// Why not.
    pub reason: Option<String>,
}

/// All requests.
#[derive(Clone, Debug, Default)]
pub(super) struct AllAsked {
    all: Vec<Asked>,
    by_id: HashMap<String, Vec<usize>>,
    answered: usize,
}

impl AllAsked {
    pub(super) fn all(&self) -> &[Asked] {
        &self.all
    }

    /// How many of them were answered.
    pub(super) fn answered(&self) -> usize {
        self.answered
    }

    /// One more; whether it is new.
    pub(super) fn ask(&mut self, asked: Asked) -> bool {
        let same = self.by_id.entry(asked.id.clone()).or_default();
        let of = |&place: &usize| self.all.get(place);
        if same.iter().filter_map(of).any(|other| other.from == asked.from && other.to == asked.to)
        {
            return false;
        }
        same.push(self.all.len());
        self.all.push(asked);
        true
    }

    /// The answer to the request of that id by `asker`; who had asked what, if this is the first answer.
    pub(super) fn answer(
        &mut self,
        id: &str,
        asker: Option<Who>,
        reply: Reply,
    ) -> Option<(Who, Kind)> {
        let places = self.by_id.get(id)?;
        let is_it = |place: &&usize| {
            self.all.get(**place).is_some_and(|asked| {
                asked.reply.is_none() && asker.is_none_or(|asker| asked.from == asker)
            })
        };
        let place = *places.iter().find(is_it)?;
        let asked = self.all.get_mut(place)?;
        asked.reply = Some(reply);
        self.answered += 1;
        Some((asked.from, asked.kind))
    }

    /// Somebody left: what it asked for is asked no more. How many plans and leaves that were.
    pub(super) fn drop_of(&mut self, who: Who, at: At) -> usize {
        let mut open = 0;
        for asked in self.all.iter_mut().filter(|asked| asked.from == who && asked.reply.is_none())
        {
            let hand = Some("left".to_owned());
            asked.reply = Some(Reply { at, yes: false, hand, reason: None });
            self.answered += 1;
            open += usize::from(asked.kind != Kind::ShutdownRequest);
        }
        open
    }
}
