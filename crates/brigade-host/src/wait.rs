//! Waits until members are ready, and reports progress.

use std::collections::HashMap;
use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use tokio::time::Instant;

use crate::error::HostError;
use crate::progress::{Progress, ReportProgress};
use crate::{Host, state};

/// How often to check whether the members are ready.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a member may take to become ready. This is long enough for an agent that can resume its session only
/// at the start of the next minute.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// How long the supervisor may take to start a member.
const STARTS_WITHIN: Duration = Duration::from_secs(2);

/// Waits until each of these members is ready, has failed or has taken too long. Returns the members that are not
/// ready, each with the reason.
pub async fn until_ready(
    host: &Host,
    lead: &Seat,
    names: &[MemberName],
    report: ReportProgress<'_>,
) -> Result<Vec<(MemberName, String)>, HostError> {
    let mut seen: HashMap<&MemberName, Liveness> = HashMap::new();
    let began = Instant::now();
    loop {
        let is_late = began.elapsed() > READY_WITHIN;
        // Start the supervisor if necessary: a supervisor that found no team a moment ago may have exited since.
        host.ensure_supervisor().await?;
        let mut must_wait = false;
        let mut failed = Vec::new();
        for name in names {
            // A member that is no longer in the registry has left the team.
            if host.registry.member(&lead.team, name)?.is_none() {
                continue;
            }
            let (process, _, judged) = state::liveness(host, lead, name).await?;
            let is_lost = state::is_lost(host, lead, name, process.is_some(), judged.liveness);
            let is_starting =
                matches!(judged.liveness, Liveness::Starting | Liveness::Dead) && !is_lost;
            must_wait |= is_starting && !is_late;
            if is_lost || (is_starting && is_late) {
                failed.push((name.clone(), judged.evidence.clone()));
            }
            // Do not report the death of the member's previous process while a new process is being started.
            let is_previous = is_starting && judged.liveness == Liveness::Dead;
            if is_previous && !seen.contains_key(name) && began.elapsed() < STARTS_WITHIN {
                continue;
            }
            if seen.insert(name, judged.liveness) != Some(judged.liveness) {
                let (liveness, evidence) = (judged.liveness, judged.evidence);
                report(Progress::Member { name: name.clone(), liveness, evidence });
            }
        }
        if !must_wait {
            return Ok(failed);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
