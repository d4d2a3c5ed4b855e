//! Somebody on a team: what it is, what it does, and what it did when.

use brigade_wire::name::MemberName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{At, Did, Ending, Who};
use crate::event_log::Spot;

/// Somebody on a team, or somebody who was heard of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Person {
    /// Which one.
    pub who: Who,
    /// Its name.
    pub name: Box<str>,
    /// Its entry on the roster, while it has one.
    pub entry: Option<Entry>,
    /// When it joined.
    pub joined: Option<At>,
    /// When it left.
    pub left: Option<At>,
    /// How many messages it has not read.
    pub unread: usize,
    /// Where its last words stand.
    pub said: Option<Spot>,
    /// Tokens its model read and wrote.
    pub tokens: (u64, u64),
    /// What they cost in US dollars, where its agent says.
    pub cost: Option<f64>,
    /// What went wrong last, in words, while it matters.
    pub trouble: Option<Box<str>>,
    /// What its agent did.
    pub acts: Vec<Act>,
    /// The messages it wrote or was written, by number.
    pub letters: Vec<u32>,
    /// When it was at what, first to last; between two it had nothing to do.
    pub stretches: Vec<Stretch>,
    in_turn: bool,
    limited: bool,
    starting: bool,
    open: i32,
    since: Option<At>,
    /// Whether its own process says what it does; until then the roster is believed.
    speaks: bool,
}

/// An entry of the roster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Entry {
    /// What it is: `codex`, `general-purpose`, …
    pub agent_type: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its colour.
    pub color: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// Where it runs.
    pub backend_type: Option<String>,
    /// The pane it runs in.
    pub tmux_pane_id: Option<String>,
    /// Whether it is in a turn, where that is said.
    pub is_active: Option<bool>,
}

/// Something its agent did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Act {
    /// When.
    pub at: At,
    /// Where it stands.
    pub spot: Spot,
}

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Its agent is being started.
    Starting,
    /// It is in a turn.
    Working,
    /// It waits for an answer to a request.
    Waiting,
    /// Its vendor takes no more for now.
    Limited,
    /// It has nothing to do.
    Idle,
    /// Nothing was heard of that.
    Unknown,
    /// It is not on the team any more.
    Gone,
}

/// What a stretch of time was spent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// In a turn.
    Working,
    /// Waiting for an answer.
    Waiting,
    /// Limited by its vendor.
    Limited,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stretch {
    /// From when.
    pub from: At,
    /// Until when; `None` if it is not over.
    pub to: Option<At>,
    /// Spent with what.
    pub span: Span,
}

impl Person {
    pub(super) fn new(who: Who, name: &str) -> Self {
        Self {
            who,
            name: name.into(),
            entry: None,
            joined: None,
            left: None,
            unread: 0,
            said: None,
            tokens: (0, 0),
            cost: None,
            trouble: None,
            acts: Vec::new(),
            letters: Vec::new(),
            stretches: Vec::new(),
            in_turn: false,
            limited: false,
            starting: false,
            open: 0,
            since: None,
            speaks: false,
        }
    }

    /// Its name, if an inbox can be made of it.
    pub fn member_name(&self) -> Option<MemberName> {
        self.name.parse().ok()
    }

    /// What it does.
    pub fn doing(&self) -> Doing {
        let is_known =
            self.speaks || self.entry.as_ref().is_some_and(|entry| entry.is_active.is_some());
        match self.span() {
            _ if self.entry.is_none() => Doing::Gone,
            Some(Span::Waiting) => Doing::Waiting,
            Some(Span::Limited) => Doing::Limited,
            Some(Span::Working) => Doing::Working,
            None if self.starting => Doing::Starting,
            None if is_known => Doing::Idle,
            None => Doing::Unknown,
        }
    }

    /// Since when it does that.
    pub fn since(&self) -> Option<At> {
        self.since
    }

    fn span(&self) -> Option<Span> {
        if self.entry.is_none() {
            None
        } else if self.limited {
            Some(Span::Limited)
        } else if self.open > 0 {
            Some(Span::Waiting)
        } else {
            self.in_turn.then_some(Span::Working)
        }
    }

    /// Something changed; a new stretch begins if it now does something else.
    fn settle(&mut self, at: At, before: Doing) {
        let now = self.span();
        let open = self.stretches.last_mut().filter(|stretch| stretch.to.is_none());
        if open.as_ref().map(|stretch| stretch.span) != now {
            if let Some(open) = open {
                open.to = Some(at);
            }
            if let Some(span) = now {
                self.stretches.push(Stretch { from: at, to: None, span });
            }
        }
        if self.doing() != before || self.since.is_none() {
            self.since = Some(at);
        }
    }

    pub(super) fn enter(&mut self, at: At, member: &RawValue, joined: bool) {
        let before = self.doing();
        let entry: Entry = serde_json::from_str(member.get()).unwrap_or_default();
        if joined || self.entry.is_none() {
            self.joined = Some(at);
            self.left = None;
            (self.in_turn, self.limited, self.open, self.speaks) = (false, false, 0, false);
        }
        if !self.speaks {
            self.in_turn = entry.is_active == Some(true);
        }
        self.entry = Some(entry);
        self.settle(at, before);
    }

    pub(super) fn leave(&mut self, at: At) {
        let before = self.doing();
        if self.entry.take().is_some() {
            self.left = Some(at);
        }
        (self.in_turn, self.limited, self.open) = (false, false, 0);
        self.settle(at, before);
    }

    /// It asked for something, or was answered.
    pub(super) fn asks(&mut self, at: At, more: i32) {
        let before = self.doing();
        self.open = (self.open + more).max(0);
        self.settle(at, before);
    }

    /// It said that it has nothing to do.
    pub(super) fn ended_turn(&mut self, at: At) {
        if !self.speaks {
            let before = self.doing();
            self.in_turn = false;
            self.settle(at, before);
        }
    }

    pub(super) fn worked(&mut self, at: At, spot: Spot, act: &Did) {
        let before = self.doing();
        self.speaks = true;
        if !matches!(act, Did::Used { .. }) {
            self.acts.push(Act { at, spot });
        }
        // Whatever an agent does shows that its vendor takes something again.
        self.limited =
            matches!(act, Did::Limited { .. } | Did::TurnEnded { end: Ending::Limited, .. })
                || (self.limited && matches!(act, Did::Used { .. } | Did::Trouble { .. }));
        match act {
            Did::Started {} => {
                (self.starting, self.in_turn) = (true, false);
            }
            Did::Ready {} => self.starting = false,
            Did::TurnStarted {} => {
                (self.starting, self.in_turn) = (false, true);
                self.trouble = None;
            }
            Did::Said { .. } => self.said = Some(spot),
            Did::ToolStarted { .. } | Did::ToolEnded { .. } | Did::Changed { .. } => {}
            Did::Limited { why } | Did::Trouble { why } => self.trouble = Some(why.as_str().into()),
            Did::Used { input, output, cost } => {
                self.tokens = (*input, *output);
                self.cost = cost.or(self.cost);
            }
            Did::TurnEnded { end, why } => {
                (self.starting, self.in_turn) = (false, false);
                self.trouble = match end {
                    Ending::Done | Ending::Interrupted => None,
                    Ending::Failed | Ending::Limited => why.as_deref().map(Into::into),
                };
            }
        }
        self.settle(at, before);
    }
}
