//! Decides when to start a member whose process is not running.

use std::time::Duration;

use crate::spec::Restart;

/// The delay before a member's second start. The delay doubles with each further start.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// How many consecutive starts may fail before the member is marked as failed.
const MAX_STARTS: u32 = 5;
/// How long a new process may take to acquire the member's lock.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process has to run to count as started successfully.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The supervisor's next step for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartStep {
    /// Do nothing.
    Wait,
    /// Start the member.
    Start,
    /// Mark the member as failed and do not start it again. This step is returned once per member.
    Fail,
}

/// The state of a member's process. All times are from the same monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RestartState {
    /// The process was not checked yet.
    #[default]
    Unchecked,
    /// The process was started at this time, and does not hold the member's lock yet.
    Starting(Duration),
    /// The process has been running since this time.
    Running(Duration),
    /// The process ended at this time.
    Ended(Duration),
    /// The member was marked as failed and is not started again.
    Failed,
}

/// The restart history of one member.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    state: RestartState,
    /// The number of starts since a process of the member last ran for at least [`STABLE_AFTER`].
    starts: u32,
}

impl Restarts {
    /// Returns what to do about the member, given whether its process is running.
    pub(crate) fn step(&mut self, is_running: bool, policy: Restart, now: Duration) -> RestartStep {
        if is_running {
            match self.state {
                RestartState::Running(since) if now.saturating_sub(since) >= STABLE_AFTER => {
                    self.starts = 0;
                }
                RestartState::Running(_) => {}
                _ => self.state = RestartState::Running(now),
            }
            return RestartStep::Wait;
        }
        match self.state {
            RestartState::Starting(at) if now.saturating_sub(at) < START_TIMEOUT => {
                RestartStep::Wait
            }
            RestartState::Starting(_) | RestartState::Running(_) => {
                // The process may have ended before it was checked again.
                if matches!(self.state, RestartState::Running(since) if now.saturating_sub(since) >= STABLE_AFTER)
                {
                    self.starts = 0;
                }
                self.state = RestartState::Ended(now);
                self.step(is_running, policy, now)
            }
            RestartState::Ended(_) if policy == Restart::Never || self.starts >= MAX_STARTS => {
                self.state = RestartState::Failed;
                RestartStep::Fail
            }
            RestartState::Ended(at) if now.saturating_sub(at) < self.delay() => RestartStep::Wait,
            RestartState::Unchecked | RestartState::Ended(_) => self.start(now),
            RestartState::Failed => RestartStep::Wait,
        }
    }

    /// Records that a newly started process has ended, even if it never acquired the member's lock.
    pub(crate) fn ended(&mut self, now: Duration) {
        if matches!(self.state, RestartState::Starting(_)) {
            self.state = RestartState::Ended(now);
        }
    }

    /// Creates the restart history of a member that an earlier supervisor marked as failed.
    pub(crate) fn failed() -> Self {
        Self { state: RestartState::Failed, starts: 0 }
    }

    /// Returns true until the member is checked for the first time.
    pub(crate) fn is_new(&self) -> bool {
        self.state == RestartState::Unchecked
    }

    /// Returns whether the member was marked as failed and is not started again.
    pub(crate) fn is_failed(&self) -> bool {
        self.state == RestartState::Failed
    }

    fn start(&mut self, now: Duration) -> RestartStep {
        self.state = RestartState::Starting(now);
        self.starts += 1;
        RestartStep::Start
    }

    fn delay(&self) -> Duration {
        match self.starts {
            0 => Duration::ZERO,
            starts => FIRST_DELAY * 2u32.saturating_pow(starts - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RestartStep::{Fail, Start, Wait};
    use super::*;

    /// Checks each observation: the time in seconds, whether the process is running, and the expected step.
    fn check(policy: Restart, observations: &[(u64, bool, RestartStep)]) {
        let mut restarts = Restarts::default();
        for &(second, is_running, step) in observations {
            let now = Duration::from_secs(second);
            assert_eq!(restarts.step(is_running, policy, now), step, "at {second} s");
        }
    }

    #[test]
    fn a_running_member_is_not_started() {
        check(Restart::Always, &[(0, true, Wait), (500, true, Wait)]);
    }

    #[test]
    fn a_member_that_dies_early_is_restarted_with_growing_delays_and_then_failed() {
        let mut observations = vec![(0, false, Start), (1, true, Wait)];
        let mut at = 2;
        for delay in [1, 2, 4, 8] {
            observations.extend([
                (at, false, Wait),
                (at + delay - 1, false, Wait),
                (at + delay, false, Start),
            ]);
            observations.push((at + delay + 1, true, Wait));
            at += delay + 2;
        }
        observations.extend([(at, false, Fail), (at + 1000, false, Wait)]);
        check(Restart::Always, &observations);
    }

    #[test]
    fn a_member_that_ran_long_is_restarted_immediately() {
        let observations =
            [(0, true, Wait), (70, true, Wait), (71, false, Start), (72, true, Wait)];
        check(Restart::Always, &observations);
    }

    #[test]
    fn a_start_without_a_running_process_counts() {
        check(
            Restart::Always,
            &[(0, false, Start), (9, false, Wait), (10, false, Wait), (11, false, Start)],
        );
    }

    #[test]
    fn a_member_with_restart_never_is_not_restarted() {
        check(
            Restart::Never,
            &[(0, false, Start), (1, true, Wait), (2, false, Fail), (3, false, Wait)],
        );
    }
}
