//! What a member's process says of itself, for those who ask how the member is.

use jiff::{SignedDuration, Timestamp};

use super::{Sight, Teammate};
use crate::driver::{End, Event, Usage};
use brigade_core::pulse::{self, BEAT, Pulse, State};
use brigade_core::roster::Activity;

/// What is known of the member's state beside its conversation.
#[derive(Debug, Default)]
pub(super) struct Vitals {
    /// What was said last.
    last: Option<Pulse>,
    /// When the agent was last heard.
    heard: Option<Timestamp>,
    used: Usage,
    /// The vendor takes no more, in its words.
    limited: Option<String>,
    /// It does not get through to its vendor, in its words.
    retries: Option<String>,
    /// Why the last turn failed, if it did.
    failed: Option<String>,
    /// Why the agent was given up, if it was.
    pub(super) given_up: Option<String>,
}

impl Vitals {
    pub(super) fn heard(&mut self, event: &Event, now: Timestamp) {
        self.heard = Some(now);
        match event {
            Event::TurnEnded(End::Failed(why)) => self.failed = Some(why.clone()),
            Event::TurnEnded(_) => self.failed = None,
            _ => {}
        }
        match event {
            Event::Ready { .. } => self.given_up = None,
            Event::Used(used) => self.used = *used,
            Event::Limited { why } | Event::TurnEnded(End::Limited(why)) => {
                self.limited = Some(why.clone());
            }
            Event::Retries { why } => self.retries = Some(why.clone()),
            Event::Said(_)
            | Event::ToolStarted { .. }
            | Event::ToolEnded { .. }
            | Event::Changed(_)
            | Event::Asks(_)
            | Event::TurnEnded(End::Done | End::Interrupted | End::Failed(_)) => {
                (self.limited, self.retries) = (None, None);
            }
            // That it is asked anew does not say that its vendor answers: some then try in silence.
            Event::TurnStarted
            | Event::Remembers { .. }
            | Event::RemembersIn { .. }
            | Event::Taken(_)
            | Event::NotTaken(_)
            | Event::AsksNoLonger(_)
            | Event::Broken { .. } => {}
        }
    }
}

impl<S: FnMut(Sight)> Teammate<S> {
    /// Says how the member is, if that is new or was not said for a while.
    pub(super) async fn beat(&mut self) {
        let state = self.state();
        let now = self.plan.seat.clock.now();
        let last = self.vitals.last.as_ref();
        let same = last.filter(|last| last.state == state);
        let beat = SignedDuration::try_from(BEAT).unwrap_or_default();
        if same.is_some_and(|last| now.duration_since(last.at) < beat) {
            return;
        }
        // How often its agent tried by now does not make it another turn.
        let is_working = |state: &State| matches!(state, State::Working { .. });
        let since = last
            .filter(|last| same.is_some() || (is_working(&last.state) && is_working(&state)))
            .map_or(now, |last| last.since);
        let pulse = Pulse {
            process: self.plan.process.clone(),
            host: self.plan.host.clone(),
            at: now,
            since,
            state,
            heard: self.vitals.heard,
            session: self.delivery.memory().session.clone(),
            tokens: (self.vitals.used.input, self.vitals.used.output),
            cost: self.vitals.used.cost,
            strain: self.plan.seat.store.strain(),
        };
        if let Err(error) = pulse::beat(&self.plan.seat, &pulse).await {
            // The next beat tries again.
            tracing::warn!(member = %self.plan.seat.name, %error, "its state cannot be written down");
        }
        self.vitals.last = Some(pulse);
    }

    fn state(&self) -> State {
        if let Some(why) = &self.vitals.given_up {
            return State::Failed { why: why.clone() };
        }
        if !self.ready {
            return State::Starting {};
        }
        if !self.asks.is_empty() {
            let mut requests: Vec<String> = self.asks.keys().cloned().collect();
            requests.sort();
            return State::Waiting { requests };
        }
        match (&self.vitals.limited, self.activity) {
            // In a turn or not: an agent may try again by itself for minutes.
            (Some(why), _) => State::Limited { why: why.clone() },
            (None, Some(Activity::Active)) => {
                State::Working { retries: self.vitals.retries.clone() }
            }
            _ => State::Idle { failed: self.vitals.failed.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_after(events: &[Event]) -> Option<String> {
        let mut vitals = Vitals::default();
        for event in events {
            vitals.heard(event, Timestamp::UNIX_EPOCH);
        }
        vitals.limited
    }

    #[test]
    fn a_failure_is_remembered_until_a_turn_ends_well() {
        let mut vitals = Vitals::default();
        let mut after = |event| {
            vitals.heard(&event, Timestamp::UNIX_EPOCH);
            vitals.failed.clone()
        };
        let failed = Event::TurnEnded(End::Failed("not logged in".to_owned()));
        assert_eq!(after(failed).as_deref(), Some("not logged in"));
        assert_eq!(after(Event::TurnStarted).as_deref(), Some("not logged in"));
        assert_eq!(after(Event::TurnEnded(End::Done)), None);
    }

    #[test]
    fn that_it_does_not_get_through_is_over_with_the_next_word() {
        let mut vitals = Vitals::default();
        let mut after = |event| {
            vitals.heard(&event, Timestamp::UNIX_EPOCH);
            vitals.retries.clone()
        };
        let why = || "Reconnecting... 2/5".to_owned();
        assert_eq!(after(Event::Retries { why: why() }), Some(why()));
        assert_eq!(after(Event::TurnStarted), Some(why()));
        assert_eq!(after(Event::Said("Here I am.".to_owned())), None);
    }

    #[test]
    fn a_limit_lasts_until_the_agent_gets_on() {
        let why = || "529 overloaded".to_owned();
        let limit = || Event::Limited { why: why() };
        let ended = Event::TurnEnded(End::Limited(why()));
        assert_eq!(limited_after(&[Event::TurnStarted, limit()]), Some(why()));
        assert_eq!(limited_after(&[limit(), Event::TurnStarted]), Some(why()));
        assert_eq!(limited_after(&[limit(), Event::Used(Usage::default())]), Some(why()));
        // What the agent's program says of its failure stands in the place of the model's words.
        assert_eq!(
            limited_after(&[limit(), Event::Said("API Error".to_owned()), ended]),
            Some(why())
        );
        for next in [
            Event::Said("Here I am.".to_owned()),
            Event::ToolEnded { id: "1".to_owned(), ok: true },
            Event::TurnEnded(End::Done),
            Event::TurnEnded(End::Failed("the model refused".to_owned())),
        ] {
            assert_eq!(limited_after(&[limit(), next.clone()]), None, "{next:?}");
        }
    }
}
