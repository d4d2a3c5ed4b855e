//! A member of a team: its roster entry, its current activity and its history.

use brigade_wire::name::MemberName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MemberIndex, Millis, TurnOutcome, WorkEvent};
use crate::store::event_log::RecordRef;

/// A member of a team, or another name that occurred in the events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberView {
    /// The member's index.
    pub index: MemberIndex,
    /// The member's name.
    pub name: Box<str>,
    /// The member's roster entry; `None` if the member is not on the roster.
    pub entry: Option<MemberDetails>,
    /// When the member joined.
    pub joined: Option<Millis>,
    /// When the member left.
    pub left: Option<Millis>,
    /// The number of unread messages in the member's inbox, by the rule of [`unread`](crate::unread).
    pub unread: usize,
    /// The position of the journal record that contains the agent's last text.
    pub last_text: Option<RecordRef>,
    /// The number of tokens that the member's model has read and written.
    pub tokens: (u64, u64),
    /// The cost of the member's tokens in US dollars, if the agent reports it.
    pub cost: Option<f64>,
    /// The last problem; `None` if a turn has started since then.
    pub trouble: Option<Box<str>>,
    /// The work events of the member's agent.
    pub work: Vec<WorkRef>,
    /// The numbers of the messages that the member sent or received.
    pub messages: Vec<u32>,
    /// The periods in which the member was busy, in order. Between these periods, the member was idle.
    pub busy_spans: Vec<BusySpan>,
    in_turn: bool,
    limited: bool,
    starting: bool,
    open_requests: i32,
    since: Option<Millis>,
    /// Whether the member's own process reports work events. If not, the activity comes from the roster entry.
    reports_work: bool,
}

/// A member's roster entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MemberDetails {
    /// The kind of agent: `codex`, `general-purpose`, …
    pub agent_type: Option<String>,
    /// The member's model.
    pub model: Option<String>,
    /// The member's color.
    pub color: Option<String>,
    /// The member's working directory.
    pub cwd: Option<String>,
    /// How and where the member runs: `tmux`, `in-process`, …
    pub backend_type: Option<String>,
    /// The tmux pane in which the member runs.
    pub tmux_pane_id: Option<String>,
    /// Whether the member is in a turn, if the roster entry records it.
    pub is_active: Option<bool>,
}

/// A work event of a member's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkRef {
    /// When the event happened.
    pub at: Millis,
    /// The position of the event's journal record.
    pub record: RecordRef,
}

/// A member's current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberActivity {
    /// The member's agent is being started.
    Starting,
    /// The member is in a turn.
    Working,
    /// The member waits for an answer to a request.
    Waiting,
    /// The vendor's rate limit has stopped the member.
    Limited,
    /// The member is idle.
    Idle,
    /// The activity is unknown, because nothing reports it.
    Unknown,
    /// The member is no longer on the team.
    Gone,
}

/// The activity of a member during a busy period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BusyKind {
    /// The member is in a turn.
    Working,
    /// The member waits for an answer to a request.
    Waiting,
    /// The vendor's rate limit has stopped the member.
    Limited,
}

/// A period of time in which a member was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusySpan {
    /// When the period began.
    pub from: Millis,
    /// When the period ended; `None` if it has not ended yet.
    pub to: Option<Millis>,
    /// The member's activity during the period.
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

    /// Returns the name as a [`MemberName`], if the name is valid.
    pub fn member_name(&self) -> Option<MemberName> {
        self.name.parse().ok()
    }

    /// Returns the member's current activity.
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

    /// Returns when the current activity began.
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

    /// Starts a new period if the member's activity has changed. Call this after every change.
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

    /// Adds `more` to the number of open requests. `more` is negative when requests were answered.
    pub(super) fn add_open_requests(&mut self, at: Millis, more: i32) {
        let before = self.activity();
        self.open_requests = (self.open_requests + more).max(0);
        self.update_periods(at, before);
    }

    /// Applies an idle notification from the member.
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
        // Usage reports and trouble events do not end a rate limit. Any other event shows that it is over.
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
