//! Tracks a member's state and publishes it as the member's pulse.

use jiff::{SignedDuration, Timestamp};

use super::{TeammateEvent, TeammateLoop};
use crate::driver::{AgentEvent, TurnEnd, Usage};
use brigade_core::pulse::{self, Pulse, REPORT_INTERVAL, ReportedState};
use brigade_core::roster::Activity;

/// The agent's state, which the member's pulse reports.
#[derive(Debug, Default)]
pub(super) struct Vitals {
    /// The last pulse that was published.
    last: Option<Pulse>,
    /// When the agent last reported an event.
    last_event: Option<Timestamp>,
    used: Usage,
    /// The vendor's rate or usage limit that was hit, as the agent reported it.
    limited: Option<String>,
    /// Why the agent retries its request to the vendor, as the agent reported it.
    retries: Option<String>,
    /// Why the last turn failed; `None` if it did not fail.
    failed: Option<String>,
    /// Why the agent was marked as failed; `None` if it is not marked as failed.
    pub(super) failure: Option<String>,
}

impl Vitals {
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
            AgentEvent::Limited { why } | AgentEvent::TurnEnded(TurnEnd::Limited(why)) => {
                self.limited = Some(why.clone());
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

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Publishes the member's pulse if the state changed or the last pulse is older than [`REPORT_INTERVAL`].
    pub(super) async fn beat(&mut self) {
        let state = self.state();
        let now = self.config.seat.clock.now();
        let last = self.vitals.last.as_ref();
        let same = last.filter(|last| last.state == state);
        let beat = SignedDuration::try_from(REPORT_INTERVAL).unwrap_or_default();
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
        if !self.ready {
            return ReportedState::Starting {};
        }
        if !self.asks.is_empty() {
            let mut requests: Vec<String> = self.asks.keys().cloned().collect();
            requests.sort();
            return ReportedState::Waiting { requests };
        }
        match (&self.vitals.limited, self.activity) {
            // Report a limit even during a turn, because an agent may retry for minutes within a turn.
            (Some(why), _) => ReportedState::Limited { why: why.clone() },
            (None, Some(Activity::Active)) => {
                ReportedState::Working { retries: self.vitals.retries.clone() }
            }
            _ => ReportedState::Idle { failed: self.vitals.failed.clone() },
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
        vitals.limited
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
            AgentEvent::ToolEnded { id: "1".to_owned(), ok: true },
            AgentEvent::TurnEnded(TurnEnd::Done),
            AgentEvent::TurnEnded(TurnEnd::Failed("the model refused".to_owned())),
        ] {
            assert_eq!(limited_after(&[limit(), next.clone()]), None, "{next:?}");
        }
    }
}
