//! How a native teammate is, told by the process that plays it: Claude Code itself says on the roster
//! whether it is in a turn.

use std::convert::Infallible;
use std::time::Duration;

use brigade_core::pulse::{self, BEAT, Pulse, State};
use brigade_core::seat::Seat;
use brigade_wire::team::Team;
use tokio::time::Instant;

use crate::process;

/// How often it is looked whether it is in a turn.
const LOOK: Duration = Duration::from_secs(1);

/// Tells how the seat's program is, for as long as this is waited for. What cannot be told now is told
/// the next time.
pub(crate) async fn beat(seat: &Seat, host: &str, session: &str) -> Infallible {
    let now = || seat.clock.now();
    let mut pulse = Pulse {
        process: process::this(),
        host: host.to_owned(),
        at: now(),
        state: State::Starting {},
        since: now(),
        heard: None,
        session: Some(session.to_owned()),
        tokens: (0, 0),
        cost: None,
        strain: None,
    };
    let mut told = None;
    loop {
        let state = state(seat).await;
        let changed = told.is_none() || state != pulse.state;
        if changed {
            pulse.since = now();
            pulse.heard = Some(pulse.since);
        }
        if changed || told.is_some_and(|told: Instant| told.elapsed() >= BEAT) {
            pulse = Pulse { state, at: now(), strain: seat.store.strain(), ..pulse };
            match pulse::beat(seat, &pulse).await {
                Ok(()) => told = Some(Instant::now()),
                Err(error) => tracing::warn!(team = %seat.team, %error, "no pulse"),
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn state(seat: &Seat) -> State {
    let config = seat.store.team(&seat.team).await.ok().flatten();
    let active = config.and_then(|config| {
        let team = Team::read(&config.bytes).ok()?;
        team.member(seat.name.as_str())?.is_active()
    });
    if active == Some(true) {
        State::Working { retries: None }
    } else {
        State::Idle { failed: None }
    }
}
