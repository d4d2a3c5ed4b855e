//! When a member that is not there is started.

use std::time::Duration;

use crate::spec::Restart;

/// How long is waited before it is started a second time; before each one after, twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often in a row a member is started in vain before it is given up.
const TRIES: u32 = 5;
/// How long a start may take to be seen.
const START: Duration = Duration::from_secs(10);
/// Who ran for this long was not started in vain.
const RAN: Duration = Duration::from_secs(60);

/// What is to be done about a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Rest,
    /// Start it.
    Start,
    /// It will not be started again. Said once.
    GiveUp,
}

/// How a member was found. Times are those of one clock that only goes forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Found {
    /// It was not looked for yet.
    #[default]
    Not,
    /// It was started, and has not been seen.
    Starting(Duration),
    /// It is there.
    There(Duration),
    /// It is there no more.
    Gone(Duration),
    /// Nobody starts it any more.
    GivenUp,
}

/// The starts of one member.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    found: Found,
    /// How often in a row it was started and did not last.
    tries: u32,
}

impl Restarts {
    /// What is to be done now that the member is there, or is not.
    pub(crate) fn look(&mut self, is_there: bool, policy: Restart, now: Duration) -> Step {
        if is_there {
            match self.found {
                Found::There(since) if now.saturating_sub(since) >= RAN => self.tries = 0,
                Found::There(_) => {}
                _ => self.found = Found::There(now),
            }
            return Step::Rest;
        }
        match self.found {
            Found::Starting(at) if now.saturating_sub(at) < START => Step::Rest,
            Found::Starting(_) | Found::There(_) => {
                self.found = Found::Gone(now);
                self.look(is_there, policy, now)
            }
            Found::Gone(_) if policy == Restart::Never || self.tries >= TRIES => {
                self.found = Found::GivenUp;
                Step::GiveUp
            }
            Found::Gone(at) if now.saturating_sub(at) < self.wait() => Step::Rest,
            Found::Not | Found::Gone(_) => self.start(now),
            Found::GivenUp => Step::Rest,
        }
    }

    /// The process that was started has ended, seen or not.
    pub(crate) fn ended(&mut self, now: Duration) {
        if matches!(self.found, Found::Starting(_)) {
            self.found = Found::Gone(now);
        }
    }

    /// Those of a member that was given up before.
    pub(crate) fn given_up() -> Self {
        Self { found: Found::GivenUp, tries: 0 }
    }

    /// Whether it was not looked for yet.
    pub(crate) fn is_new(&self) -> bool {
        self.found == Found::Not
    }

    /// Whether nobody starts it any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.found == Found::GivenUp
    }

    fn start(&mut self, now: Duration) -> Step {
        self.found = Found::Starting(now);
        self.tries += 1;
        Step::Start
    }

    fn wait(&self) -> Duration {
        match self.tries {
            0 => Duration::ZERO,
            tries => FIRST_WAIT * 2u32.saturating_pow(tries - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Step::{GiveUp, Rest, Start};
    use super::*;

    /// At each second whether it is there, and what is to be done.
    fn check(policy: Restart, looks: &[(u64, bool, Step)]) {
        let mut restarts = Restarts::default();
        for &(second, is_there, step) in looks {
            let now = Duration::from_secs(second);
            assert_eq!(restarts.look(is_there, policy, now), step, "at {second} s");
        }
    }

    #[test]
    fn who_is_there_is_left_alone() {
        check(Restart::Always, &[(0, true, Rest), (500, true, Rest)]);
    }

    #[test]
    fn who_dies_early_waits_ever_longer_and_is_given_up() {
        let mut looks = vec![(0, false, Start), (1, true, Rest)];
        let mut at = 2;
        for wait in [1, 2, 4, 8] {
            looks.extend([
                (at, false, Rest),
                (at + wait - 1, false, Rest),
                (at + wait, false, Start),
            ]);
            looks.push((at + wait + 1, true, Rest));
            at += wait + 2;
        }
        looks.extend([(at, false, GiveUp), (at + 1000, false, Rest)]);
        check(Restart::Always, &looks);
    }

    #[test]
    fn who_lasted_is_started_again_at_once() {
        let looks = [(0, true, Rest), (70, true, Rest), (71, false, Start), (72, true, Rest)];
        check(Restart::Always, &looks);
    }

    #[test]
    fn a_start_that_is_never_seen_counts() {
        check(
            Restart::Always,
            &[(0, false, Start), (9, false, Rest), (10, false, Rest), (11, false, Start)],
        );
    }

    #[test]
    fn who_shall_not_come_back_does_not() {
        check(
            Restart::Never,
            &[(0, false, Start), (1, true, Rest), (2, false, GiveUp), (3, false, Rest)],
        );
    }
}
