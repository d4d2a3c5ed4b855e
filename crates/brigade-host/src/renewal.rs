//! Restarts the processes of this host with new credentials, after the NATS server has revoked the old ones.
//!
//! The supervisor and the members read their credentials when they start. A connection that the server closed because of a
//! revocation cannot be opened again with them.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use crate::context::Context;
use crate::credentials_record::CredentialsRecord;
use crate::error::{HostError, Trouble};
use crate::host::Host;
use crate::process::send_signal;
use crate::progress::{Progress, ReportProgress};

/// How long the supervisor may take to end, and a new one to kill the processes of the members.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often to check whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// If the supervisor was started with credentials that cannot be used any more, replaces it with one that uses the current
/// credentials, and restarts the members of this host.
pub(crate) async fn renew(
    context: &Context,
    host: &Host,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let Some(servers) = context.location().nats() else { return Ok(()) };
    let current = host.credentials.as_deref().and_then(CredentialsRecord::of_file);
    let Some(current) = current else { return Ok(()) };
    let recorded = CredentialsRecord::read(&host.registry)?;
    // Credentials for another team are no replacement.
    let is_replaced =
        |recorded: &CredentialsRecord| recorded.team == current.team && recorded.id != current.id;
    let Some(recorded) = recorded.filter(is_replaced) else { return Ok(()) };
    if !recorded.is_obsolete(servers).await {
        return Ok(());
    }
    report(Progress::NewCredentials(current.file));
    // The old supervisor would start the members with the old credentials.
    end_supervisor(host).await?;
    let mut members = Vec::new();
    for team in host.registry.teams()? {
        for name in host.registry.members(&team)? {
            if host.member_process(&team, &name)?.is_some() {
                host.registry.request_restart(&team, &name)?;
                members.push((team.clone(), name));
            }
        }
    }
    if members.is_empty() {
        return Ok(());
    }
    host.ensure_supervisor().await?;
    let began = Instant::now();
    // A member that still waits for its restart is not ready, although its process runs.
    while members.iter().any(|(team, name)| host.registry.is_restart_requested(team, name))
        && began.elapsed() < TIMEOUT
    {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn end_supervisor(host: &Host) -> Result<(), HostError> {
    let began = Instant::now();
    while let Some(supervisor) = host.supervisor()? {
        let signal = if began.elapsed() < TIMEOUT { Signal::TERM } else { Signal::KILL };
        send_signal(&supervisor, signal);
        if began.elapsed() > TIMEOUT * 2 {
            let names = vec!["the supervisor".to_owned()];
            let why = format!("process {} does not end", supervisor.pid);
            return Err(HostError::failed(Trouble::StillRunning { names, why }));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
