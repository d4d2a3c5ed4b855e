//! Waiting until members are there, and telling how it goes.

use std::collections::HashMap;
use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use tokio::time::Instant;

use crate::error::HostError;
use crate::progress::{Progress, Report};
use crate::{Host, state};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);

/// How long a member may take to be ready. An agent that has to wait for the next minute of the clock to go
/// on with its session is given the time.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// How long until one may expect to see that it was started at all.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// Waits until each of these members is ready, has failed or takes too long; those that are not there, and
/// why.
pub async fn until_there(
    host: &Host,
    lead: &Seat,
    names: &[MemberName],
    report: Report<'_>,
) -> Result<Vec<(MemberName, String)>, HostError> {
    let mut seen: HashMap<&MemberName, Liveness> = HashMap::new();
    let began = Instant::now();
    loop {
        let is_late = began.elapsed() > READY_WITHIN;
        // It ends when no team is up, and may just have been about to.
        host.supervised().await?;
        let mut waits = false;
        let mut failed = Vec::new();
        for name in names {
            // Gone from the folder, it has left already.
            if host.registry.member(&lead.team, name)?.is_none() {
                continue;
            }
            let (plays, _, judged) = state::liveness(host, lead, name).await?;
            let is_lost = state::is_lost(host, lead, name, plays.is_some(), judged.liveness);
            let is_coming =
                matches!(judged.liveness, Liveness::Starting | Liveness::Dead) && !is_lost;
            waits |= is_coming && !is_late;
            if is_lost || (is_coming && is_late) {
                failed.push((name.clone(), judged.evidence.clone()));
            }
            // That somebody was dead is no news of who is being started in its place.
            let is_before = is_coming && judged.liveness == Liveness::Dead;
            if is_before && !seen.contains_key(name) && began.elapsed() < BEGINS_WITHIN {
                continue;
            }
            if seen.insert(name, judged.liveness) != Some(judged.liveness) {
                let (liveness, evidence) = (judged.liveness, judged.evidence);
                report(Progress::Member { name: name.clone(), liveness, evidence });
            }
        }
        if !waits {
            return Ok(failed);
        }
        tokio::time::sleep(LOOK).await;
    }
}
