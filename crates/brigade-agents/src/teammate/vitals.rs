//! Tracks a member's state and publishes it as the member's pulse.

use jiff::{SignedDuration, Timestamp};

use super::{TeammateEvent, TeammateLoop};
use crate::driver::{AgentEvent, TurnEnd, Usage, UsageRestarts};
use brigade_core::pulse::{self, Pulse, ReportedState};

/// How long a limit that ended a turn is reported.
const LIMIT_SHOWN: SignedDuration = SignedDuration::from_mins(5);

/// The agent's state, which the member's pulse reports.
#[derive(Debug, Default)]
pub(super) struct Vitals {
    /// The last pulse that was published.
    last: Option<Pulse>,
    /// When the agent last reported an event.
    last_event: Option<Timestamp>,
    /// The usage in this conversation.
    used: Usage,
    /// The usage before the agent's current process was started.
    used_before: Usage,
    /// The counts that the agent's current process began at zero.
    usage_restarts: UsageRestarts,
    /// The vendor's rate or usage limit that was hit.
    limited: Option<Limit>,
    /// Why the agent retries its request to the vendor, as the agent reported it.
    retries: Option<String>,
    /// Why the last turn failed; `None` if it did not fail.
    failed: Option<String>,
    /// Why the agent was marked as failed; `None` if it is not marked as failed.
    pub(super) failure: Option<String>,
}

/// A vendor's rate or usage limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    /// The agent's message about the limit.
    why: String,
    /// When the limit ended the agent's turn. `None` while the agent retries within a turn.
    ended_turn: Option<Timestamp>,
}

impl Vitals {
    /// Returns the state of an agent that continues a session, given the last pulse of its member.
    pub(super) fn continued(last: Option<&Pulse>, session: Option<&str>) -> Self {
        let last = last.filter(|last| session.is_some() && last.session.as_deref() == session);
        let used = last.map(|last| {
            let (input, output) = last.tokens;
            Usage { input, output, cost: last.cost, cached: 0 }
        });
        Self { used: used.unwrap_or_default(), ..Self::default() }
    }

    /// Handles the start of a process of the agent.
    pub(super) fn begin_process(&mut self, is_resumed: bool, usage_restarts: UsageRestarts) {
        if !is_resumed {
            self.used = Usage::default();
        }
        (self.used_before, self.usage_restarts) = (self.used, usage_restarts);
    }

    /// Adds the usage of earlier processes to the usage that the agent's current process reports.
    pub(super) fn with_earlier_usage(&self, event: AgentEvent) -> AgentEvent {
        match event {
            AgentEvent::Used(used) => {
                AgentEvent::Used(used.with_earlier(self.used_before, self.usage_restarts))
            }
            event => event,
        }
    }

    pub(super) fn on_event(&mut self, event: &AgentEvent, now: Timestamp) {
        self.last_event = Some(now);
        match event {
            AgentEvent::TurnEnded(TurnEnd::Failed(why)) => self.failed = Some(why.clone()),
            AgentEvent::TurnEnded(_) => self.failed = None,
            _ => {}
        }
        match event {
            AgentEvent::Ready { .. } => self.failure = None,
            AgentEvent::Used(used) => self.used = *used,
            AgentEvent::Limited { why } => {
                self.limited = Some(Limit { why: why.clone(), ended_turn: None });
            }
            AgentEvent::TurnEnded(TurnEnd::Limited(why)) => {
                self.limited = Some(Limit { why: why.clone(), ended_turn: Some(now) });
            }
            // The limit ended an earlier turn. The new turn shows whether the limit still applies.
            AgentEvent::TurnStarted if self.limited.as_ref().is_some_and(Limit::is_past) => {
                self.limited = None;
            }
            AgentEvent::Retries { why } => self.retries = Some(why.clone()),
            AgentEvent::Said(_)
            | AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolEnded { .. }
            | AgentEvent::Changed(_)
            | AgentEvent::Asks(_)
            | AgentEvent::TurnEnded(TurnEnd::Done | TurnEnd::Interrupted | TurnEnd::Failed(_)) => {
                (self.limited, self.retries) = (None, None);
            }
            // The start of a turn does not prove that the agent can reach the vendor again, because some agents do
            // not report their retries.
            AgentEvent::TurnStarted
            | AgentEvent::Remembers { .. }
            | AgentEvent::RemembersIn { .. }
            | AgentEvent::Taken(_)
            | AgentEvent::NotTaken(_)
            | AgentEvent::AsksNoLonger(_)
            | AgentEvent::Broken { .. } => {}
        }
    }
}

impl Limit {
    /// Returns whether the turn that hit the limit is over.
    fn is_past(&self) -> bool {
        self.ended_turn.is_some()
    }

    /// Returns whether the limit ended a turn so long ago that it may be over.
    fn is_old(&self, now: Timestamp) -> bool {
        self.ended_turn.is_some_and(|ended| now.duration_since(ended) > LIMIT_SHOWN)
    }
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Publishes the member's pulse if the state changed or the last pulse is too old.
    pub(super) async fn beat(&mut self) {
        let state = self.state();
        let now = self.config.seat.clock.now();
        let last = self.vitals.last.as_ref();
        let same = last.filter(|last| last.state == state);
        let interval = self.config.seat.store.pulse_interval();
        let beat = SignedDuration::try_from(interval).unwrap_or_default();
        if same.is_some_and(|last| now.duration_since(last.at) < beat) {
            return;
        }
        // If the member was already working, keep the start time, even if the reason for retries has changed.
        let is_working = |state: &ReportedState| matches!(state, ReportedState::Working { .. });
        let since = last
            .filter(|last| same.is_some() || (is_working(&last.state) && is_working(&state)))
            .map_or(now, |last| last.since);
        let pulse = Pulse {
            process: self.config.process.clone(),
            host: self.config.host.clone(),
            at: now,
            since,
            state,
            heard: self.vitals.last_event,
            session: self.delivery.saved().session.clone(),
            tokens: (self.vitals.used.input, self.vitals.used.output),
            cost: self.vitals.used.cost,
            strain: self.config.seat.store.retry_stats(),
        };
        if let Err(error) = pulse::report(&self.config.seat, &pulse).await {
            // The next call publishes a newer pulse anyway.
            tracing::warn!(member = %self.config.seat.name, %error, "cannot publish the member's state");
        }
        self.vitals.last = Some(pulse);
    }

    fn state(&self) -> ReportedState {
        if let Some(why) = &self.vitals.failure {
            return ReportedState::Failed { why: why.clone() };
        }
        if self.handed_over {
            return ReportedState::HandedOver {};
        }
        if !self.ready {
            return ReportedState::Starting {};
        }
        let unsent = self.unsent.why_not_asked();
        if !self.asks.is_empty() || unsent.is_some() {
            let mut requests: Vec<String> = self.asks.keys().cloned().collect();
            requests.sort();
            return ReportedState::Waiting { requests, unsent };
        }
        let now = self.config.seat.clock.now();
        match (&self.vitals.limited, self.in_turn) {
            // No event reports the end of this limit. After a while, it is only the reason why the last turn failed.
            (Some(limit), _) if limit.is_old(now) => {
                ReportedState::Idle { failed: Some(limit.why.clone()), paused: self.paused }
            }
            // Report a limit even during a turn, because an agent may retry for minutes within a turn.
            (Some(limit), _) => ReportedState::Limited { why: limit.why.clone() },
            (None, true) => ReportedState::Working { retries: self.vitals.retries.clone() },
            (None, false) => {
                ReportedState::Idle { failed: self.vitals.failed.clone(), paused: self.paused }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_after(events: &[AgentEvent]) -> Option<String> {
        let mut vitals = Vitals::default();
        for event in events {
            vitals.on_event(event, Timestamp::UNIX_EPOCH);
        }
        vitals.limited.map(|limit| limit.why)
    }

    /// B7: a member stayed "rate-limited" after the limit was over.
    #[test]
    fn b7_a_limit_that_ended_a_turn_is_over_with_the_next_turn_or_after_a_while() {
        let ended = AgentEvent::TurnEnded(TurnEnd::Limited("429".to_owned()));
        assert_eq!(limited_after(std::slice::from_ref(&ended)).as_deref(), Some("429"));
        assert_eq!(limited_after(&[ended, AgentEvent::TurnStarted]), None);
        let ended = Timestamp::UNIX_EPOCH;
        let limit = Limit { why: "429".to_owned(), ended_turn: Some(ended) };
        assert!(!limit.is_old(ended + SignedDuration::from_mins(4)));
        assert!(limit.is_old(ended + SignedDuration::from_mins(6)));
        // While an agent retries within its turn, its next output ends the limit.
        let retrying = Limit { ended_turn: None, ..limit };
        assert!(!retrying.is_old(ended + SignedDuration::from_hours(9)));
    }

    /// B8: token counts began at zero again when the agent's program or the member's process was restarted.
    #[test]
    fn b8_usage_continues_after_a_restart() {
        let usage = |input, output, cost| Usage { input, output, cached: 0, cost };
        let restarts = UsageRestarts { tokens: true, cost: true };
        let mut vitals = Vitals::default();
        let used = |vitals: &mut Vitals, usage| {
            let event = vitals.with_earlier_usage(AgentEvent::Used(usage));
            vitals.on_event(&event, Timestamp::UNIX_EPOCH);
            vitals.used
        };
        vitals.begin_process(false, restarts);
        used(&mut vitals, usage(10, 1, Some(0.5)));
        assert_eq!(used(&mut vitals, usage(100, 10, Some(1.0))), usage(100, 10, Some(1.0)));
        // The agent's program is restarted.
        vitals.begin_process(true, restarts);
        assert_eq!(used(&mut vitals, usage(5, 1, Some(0.5))), usage(105, 11, Some(1.5)));
        assert_eq!(used(&mut vitals, usage(7, 2, Some(0.5))), usage(107, 12, Some(1.5)));
        // An agent that counts the whole session.
        vitals.begin_process(true, UsageRestarts::default());
        assert_eq!(used(&mut vitals, usage(120, 20, None)), usage(120, 20, Some(1.5)));
        // A new session.
        vitals.begin_process(false, restarts);
        assert_eq!(used(&mut vitals, usage(3, 1, None)), usage(3, 1, None));
    }

    /// B8: the member's process reads the usage from the last pulse of the same session.
    #[test]
    fn b8_a_new_process_continues_the_usage_of_its_session() {
        let pulse: Pulse = serde_json::from_value(serde_json::json!({
            "process": { "pid": 7, "began": "1" },
            "at": "2026-11-15T12:00:00Z",
            "state": { "idle": {} },
            "since": "2026-11-15T12:00:00Z",
            "session": "s1",
            "tokens": [100, 10],
            "cost": 1.5,
        }))
        .unwrap();
        let used = |session| Vitals::continued(Some(&pulse), session).used;
        let expected = Usage { input: 100, output: 10, cached: 0, cost: Some(1.5) };
        assert_eq!(used(Some("s1")), expected);
        assert_eq!((used(Some("s2")), used(None)), (Usage::default(), Usage::default()));
    }

    #[test]
    fn a_failure_is_remembered_until_a_turn_ends_well() {
        let mut vitals = Vitals::default();
        let mut after = |event| {
            vitals.on_event(&event, Timestamp::UNIX_EPOCH);
            vitals.failed.clone()
        };
        let failed = AgentEvent::TurnEnded(TurnEnd::Failed("not logged in".to_owned()));
        assert_eq!(after(failed).as_deref(), Some("not logged in"));
        assert_eq!(after(AgentEvent::TurnStarted).as_deref(), Some("not logged in"));
        assert_eq!(after(AgentEvent::TurnEnded(TurnEnd::Done)), None);
    }

    #[test]
    fn retrying_ends_with_the_next_output() {
        let mut vitals = Vitals::default();
        let mut after = |event| {
            vitals.on_event(&event, Timestamp::UNIX_EPOCH);
            vitals.retries.clone()
        };
        let why = || "Reconnecting... 2/5".to_owned();
        assert_eq!(after(AgentEvent::Retries { why: why() }), Some(why()));
        assert_eq!(after(AgentEvent::TurnStarted), Some(why()));
        assert_eq!(after(AgentEvent::Said("Here I am.".to_owned())), None);
    }

    #[test]
    fn a_limit_lasts_until_the_agent_makes_progress() {
        let why = || "529 overloaded".to_owned();
        let limit = || AgentEvent::Limited { why: why() };
        let ended = AgentEvent::TurnEnded(TurnEnd::Limited(why()));
        assert_eq!(limited_after(&[AgentEvent::TurnStarted, limit()]), Some(why()));
        assert_eq!(limited_after(&[limit(), AgentEvent::TurnStarted]), Some(why()));
        assert_eq!(limited_after(&[limit(), AgentEvent::Used(Usage::default())]), Some(why()));
        // Claude Code reports a vendor's error as text of the model.
        assert_eq!(
            limited_after(&[limit(), AgentEvent::Said("API Error".to_owned()), ended]),
            Some(why())
        );
        for next in [
            AgentEvent::Said("Here I am.".to_owned()),
            AgentEvent::ToolEnded { id: "1".to_owned(), ok: true, why: String::new() },
            AgentEvent::TurnEnded(TurnEnd::Done),
            AgentEvent::TurnEnded(TurnEnd::Failed("the model refused".to_owned())),
        ] {
            assert_eq!(limited_after(&[limit(), next.clone()]), None, "{next:?}");
        }
    }
}
