//! Records the pulse of a native teammate. The brigade process that runs the member does this, because Claude Code
//! reports only one thing on the roster: whether it is in a turn.

use std::convert::Infallible;
use std::time::Duration;

use brigade_core::pulse::{self, Pulse, REPORT_INTERVAL, ReportedState};
use brigade_core::seat::Seat;
use brigade_wire::team::Team;
use tokio::time::Instant;

use crate::process;

/// How often to check whether the teammate is in a turn.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Records the member's pulse until the returned future is dropped. Retries a failed write at the next poll.
pub(crate) async fn beat(seat: &Seat, host: &str, session: &str) -> Infallible {
    let now = || seat.clock.now();
    let mut pulse = Pulse {
        process: process::current(),
        host: host.to_owned(),
        at: now(),
        state: ReportedState::Starting {},
        since: now(),
        heard: None,
        session: Some(session.to_owned()),
        tokens: (0, 0),
        cost: None,
        strain: None,
    };
    let mut recorded = None;
    loop {
        let state = state(seat).await;
        let changed = recorded.is_none() || state != pulse.state;
        if changed {
            pulse.since = now();
            pulse.heard = Some(pulse.since);
        }
        if changed
            || recorded.is_some_and(|recorded: Instant| recorded.elapsed() >= REPORT_INTERVAL)
        {
            pulse = Pulse { state, at: now(), strain: seat.store.retry_stats(), ..pulse };
            match pulse::report(seat, &pulse).await {
                Ok(()) => recorded = Some(Instant::now()),
                Err(error) => tracing::warn!(team = %seat.team, %error, "cannot record the pulse"),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn state(seat: &Seat) -> ReportedState {
    let config = seat.find_config().await.ok().flatten();
    let active = config.and_then(|config| {
        let team = Team::read(&config.bytes).ok()?;
        team.member(seat.name.as_str())?.is_active()
    });
    if active == Some(true) {
        ReportedState::Working { retries: None }
    } else {
        ReportedState::Idle { failed: None, paused: false }
    }
}
