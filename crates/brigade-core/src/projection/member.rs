//! A member of a team: what it is, what it is doing, and what it did when.

use brigade_wire::name::MemberName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MemberIndex, Millis, TurnOutcome, WorkEvent};
use crate::store::event_log::RecordRef;

/// A member of a team, or another name that occurred in the events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberView {
    /// Its index.
    pub index: MemberIndex,
    /// Its name.
    pub name: Box<str>,
    /// Its entry on the roster, while it has one.
    pub entry: Option<MemberDetails>,
    /// When it joined.
    pub joined: Option<Millis>,
    /// When it left.
    pub left: Option<Millis>,
    /// Number of unread messages.
    pub unread: usize,
    /// Position of the record with its last text.
    pub last_text: Option<RecordRef>,
    /// Tokens its model read and wrote.
    pub tokens: (u64, u64),
    /// Their cost in US dollars, if its agent reports it.
    pub cost: Option<f64>,
    /// The last problem, while it is relevant.
    pub trouble: Option<Box<str>>,
    /// The work events of its agent.
    pub work: Vec<WorkRef>,
    /// The messages it sent or received, by number.
    pub messages: Vec<u32>,
    /// The periods in which it was busy, in order; it was idle between them.
    pub busy_spans: Vec<BusySpan>,
    in_turn: bool,
    limited: bool,
    starting: bool,
    open_requests: i32,
    since: Option<Millis>,
    /// Whether its own process reports what it does. Until then the roster entry counts.
    reports_work: bool,
}

/// An entry of the roster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MemberDetails {
    /// The kind of agent: `codex`, `general-purpose`, …
    pub agent_type: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its color.
    pub color: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Where it runs.
    pub backend_type: Option<String>,
    /// The tmux pane it runs in.
    pub tmux_pane_id: Option<String>,
    /// Whether it is in a turn, if recorded.
    pub is_active: Option<bool>,
}

/// A work event of a member's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkRef {
    /// When it happened.
    pub at: Millis,
    /// Position of the record.
    pub record: RecordRef,
}

/// A member's current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberActivity {
    /// Its agent is being started.
    Starting,
    /// In a turn.
    Working,
    /// Waiting for an answer to a request.
    Waiting,
    /// Stopped by the vendor's rate limit.
    Limited,
    /// Idle.
    Idle,
    /// Not reported.
    Unknown,
    /// No longer on the team.
    Gone,
}

/// The activity during a busy period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BusyKind {
    /// In a turn.
    Working,
    /// Waiting for an answer.
    Waiting,
    /// Limited by its vendor.
    Limited,
}

/// A period of time in which a member was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusySpan {
    /// The start.
    pub from: Millis,
    /// The end; `None` if it is still going on.
    pub to: Option<Millis>,
    /// The activity.
    pub kind: BusyKind,
}

impl MemberView {
    pub(super) fn new(who: MemberIndex, name: &str) -> Self {
        Self {
            index: who,
            name: name.into(),
            entry: None,
            joined: None,
            left: None,
            unread: 0,
            last_text: None,
            tokens: (0, 0),
            cost: None,
            trouble: None,
            work: Vec::new(),
            messages: Vec::new(),
            busy_spans: Vec::new(),
            in_turn: false,
            limited: false,
            starting: false,
            open_requests: 0,
            since: None,
            reports_work: false,
        }
    }

    /// Its name, if it is a valid member name.
    pub fn member_name(&self) -> Option<MemberName> {
        self.name.parse().ok()
    }

    /// The member's current activity.
    pub fn activity(&self) -> MemberActivity {
        let is_known =
            self.reports_work || self.entry.as_ref().is_some_and(|entry| entry.is_active.is_some());
        match self.current_span() {
            _ if self.entry.is_none() => MemberActivity::Gone,
            Some(BusyKind::Waiting) => MemberActivity::Waiting,
            Some(BusyKind::Limited) => MemberActivity::Limited,
            Some(BusyKind::Working) => MemberActivity::Working,
            None if self.starting => MemberActivity::Starting,
            None if is_known => MemberActivity::Idle,
            None => MemberActivity::Unknown,
        }
    }

    /// When the current activity began.
    pub fn since(&self) -> Option<Millis> {
        self.since
    }

    fn current_span(&self) -> Option<BusyKind> {
        if self.entry.is_none() {
            None
        } else if self.limited {
            Some(BusyKind::Limited)
        } else if self.open_requests > 0 {
            Some(BusyKind::Waiting)
        } else {
            self.in_turn.then_some(BusyKind::Working)
        }
    }

    /// Call after a change: starts a new period if the member is now doing something else.
    fn update_periods(&mut self, at: Millis, before: MemberActivity) {
        let now = self.current_span();
        let open = self.busy_spans.last_mut().filter(|stretch| stretch.to.is_none());
        if open.as_ref().map(|stretch| stretch.kind) != now {
            if let Some(open) = open {
                open.to = Some(at);
            }
            if let Some(span) = now {
                self.busy_spans.push(BusySpan { from: at, to: None, kind: span });
            }
        }
        if self.activity() != before || self.since.is_none() {
            self.since = Some(at);
        }
    }

    pub(super) fn apply_entry(&mut self, at: Millis, member: &RawValue, joined: bool) {
        let before = self.activity();
        let entry: MemberDetails = serde_json::from_str(member.get()).unwrap_or_default();
        if joined || self.entry.is_none() {
            self.joined = Some(at);
            self.left = None;
            (self.in_turn, self.limited, self.open_requests, self.reports_work) =
                (false, false, 0, false);
        }
        if !self.reports_work {
            self.in_turn = entry.is_active == Some(true);
        }
        self.entry = Some(entry);
        self.update_periods(at, before);
    }

    pub(super) fn apply_left(&mut self, at: Millis) {
        let before = self.activity();
        if self.entry.take().is_some() {
            self.left = Some(at);
        }
        (self.in_turn, self.limited, self.open_requests) = (false, false, 0);
        self.update_periods(at, before);
    }

    /// Adds to the number of open requests; negative when requests were answered.
    pub(super) fn add_open_requests(&mut self, at: Millis, more: i32) {
        let before = self.activity();
        self.open_requests = (self.open_requests + more).max(0);
        self.update_periods(at, before);
    }

    /// Applies an idle notification.
    pub(super) fn apply_idle(&mut self, at: Millis) {
        if !self.reports_work {
            let before = self.activity();
            self.in_turn = false;
            self.update_periods(at, before);
        }
    }

    pub(super) fn apply_work(&mut self, at: Millis, spot: RecordRef, act: &WorkEvent) {
        let before = self.activity();
        self.reports_work = true;
        if !matches!(act, WorkEvent::Used { .. }) {
            self.work.push(WorkRef { at, record: spot });
        }
        // Any other activity of the agent shows that the limit is over.
        self.limited = matches!(
            act,
            WorkEvent::Limited { .. } | WorkEvent::TurnEnded { end: TurnOutcome::Limited, .. }
        ) || (self.limited
            && matches!(act, WorkEvent::Used { .. } | WorkEvent::Trouble { .. }));
        match act {
            WorkEvent::Started {} => {
                (self.starting, self.in_turn) = (true, false);
            }
            WorkEvent::Ready {} => self.starting = false,
            WorkEvent::TurnStarted {} => {
                (self.starting, self.in_turn) = (false, true);
                self.trouble = None;
            }
            WorkEvent::Said { .. } => self.last_text = Some(spot),
            WorkEvent::ToolStarted { .. }
            | WorkEvent::ToolEnded { .. }
            | WorkEvent::Changed { .. } => {}
            WorkEvent::Limited { why } | WorkEvent::Trouble { why } => {
                self.trouble = Some(why.as_str().into());
            }
            WorkEvent::Used { input, output, cost } => {
                self.tokens = (*input, *output);
                self.cost = cost.or(self.cost);
            }
            WorkEvent::TurnEnded { end, why } => {
                (self.starting, self.in_turn) = (false, false);
                self.trouble = match end {
                    TurnOutcome::Done | TurnOutcome::Interrupted => None,
                    TurnOutcome::Failed | TurnOutcome::Limited => why.as_deref().map(Into::into),
                };
            }
        }
        self.update_periods(at, before);
    }
}
