//! Waits until members are ready, and reports progress.

use std::collections::HashMap;
use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use tokio::time::Instant;

use crate::error::{HostError, Trouble};
use crate::progress::{Progress, ReportProgress};
use crate::{Host, state};

/// How often to check whether the members are ready.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a member may take to become ready. This is long enough for an agent that can resume its session only
/// at the start of the next minute.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// How long the process of a member that has left its team may take to end.
const LEAVES_WITHIN: Duration = Duration::from_secs(30);

/// A member that the supervisor cannot start for this long counts as not started.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// How long the supervisor may take to start a member.
const STARTS_WITHIN: Duration = Duration::from_secs(2);

/// If the member has left its team but its process is still ending, waits until the member is removed from this host. Only
/// then can a new member of this name be added.
pub async fn until_removed(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let began = Instant::now();
    let mut is_reported = false;
    while state::has_left(host, lead, name).await? {
        // The supervisor removes a member that has left when its process has ended.
        host.ensure_supervisor().await?;
        let process = host.member_process(&lead.team, name)?;
        let ending = process.as_ref().map(|process| format!("process {}", process.pid));
        let ending = ending.unwrap_or_else(|| "its process".to_owned());
        if began.elapsed() > LEAVES_WITHIN {
            let why = format!("it has left the team, but {ending} has not ended");
            let names = vec![name.to_string()];
            let error = HostError::failed(Trouble::StillRunning { names, why });
            return Err(error.hint(format!("`brigade stop {name} --now` kills it")));
        }
        if !is_reported && process.is_some() {
            is_reported = true;
            let evidence = format!("left the team; waiting for {ending} to end");
            let liveness = Liveness::Dead;
            report(Progress::Member { name: name.clone(), liveness, evidence });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

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
            if host.registry.member(&lead.team, name)?.is_none() {
                failed.push((name.clone(), "it has left the team".to_owned()));
                continue;
            }
            let (process, _, judged) = state::liveness(host, lead, name).await?;
            let is_lost = state::is_lost(host, lead, name, process.is_some(), judged.liveness);
            let is_starting =
                matches!(judged.liveness, Liveness::Starting | Liveness::Dead) && !is_lost;
            // The supervisor keeps trying, but a person should not have to wait for it.
            let is_stuck = is_starting
                && began.elapsed() > STUCK_AFTER
                && process.is_none()
                && host.registry.problem(&lead.team, name).is_some();
            must_wait |= is_starting && !is_late && !is_stuck;
            if is_lost || is_stuck || (is_starting && is_late) {
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
