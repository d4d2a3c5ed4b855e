//! Starts and stops links in the background.

use std::time::Duration;

use brigade_wire::name::TeamName;
use rustix::process::Signal;
use tokio::time::Instant;

use super::run::{self, LinkOptions};
use crate::context::Context;
use crate::error::{ErrorKind, HostError, Trouble};
use crate::host::Host;
use crate::link_registry::{LinkCondition, LinkFiles, LinkReport, LinkSpec, all_files, list};
use crate::process::send_signal;
use crate::progress::{Progress, ReportProgress};

/// How often to check whether a link has started or stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// After this time, the command reports what it waits for.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long a link may take for its first synchronization.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a link may take to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A link that runs in the background.
#[derive(Clone, Debug)]
pub struct StartedLink {
    /// Whether the link was started by this call. False if it was running before.
    pub new: bool,
    /// The state of the link.
    pub report: LinkReport,
}

/// Starts a link in the background for each team, and waits until each has made its first synchronization.
pub async fn start(
    context: &Context,
    options: &LinkOptions,
    report: ReportProgress<'_>,
) -> Result<Vec<StartedLink>, HostError> {
    // Connect here first, so that the person sees why that fails.
    let store = options.servers.open(false, options.wait, report).await?;
    let teams = run::teams_to_link(options, &store).await?;
    if teams.is_empty() {
        let error = HostError::new(ErrorKind::Nothing, Trouble::NoTeamOnServer);
        return Err(error.hint("name a team of this host: `brigade link TEAM`"));
    }
    let mut started = Vec::new();
    for team in teams {
        run::check_known(context, &options.servers, &store, &team).await?;
        started.push(start_one(context, options, &team, report).await?);
    }
    Ok(started)
}

async fn start_one(
    context: &Context,
    options: &LinkOptions,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<StartedLink, HostError> {
    let host = context.files_host()?;
    let files = run::files(context, options, team)?;
    let (is_running, is_expected) = (files.process()?.is_some(), files.is_expected());
    if is_running && !is_expected {
        let error = HostError::failed(Trouble::LinkedAlready { team: team.to_string() });
        return Err(error.hint(format!("`brigade link --stop {team}` ends that link")));
    }
    let spec = LinkSpec {
        team: team.clone(),
        files: host.registry.key(),
        servers: options.servers.servers.clone(),
        creds: options.servers.creds.clone(),
        ca: options.servers.ca.clone(),
        client: options.servers.client.clone(),
        host: options.host.clone(),
    };
    if is_running && files.spec()?.is_some_and(|running| running != spec) {
        // The running link has other settings.
        end(&files, team).await?;
    }
    let new = files.process()?.is_none();
    if new {
        files.remove()?;
        files.put_spec(&spec)?;
    }
    let started = until_synchronized(&host, &files, report).await;
    if started.is_err() && new {
        // The person sees the reason now, and nothing stays behind.
        end(&files, team).await?;
    }
    Ok(StartedLink { new, report: started? })
}

async fn until_synchronized(
    host: &Host,
    files: &LinkFiles,
    report: ReportProgress<'_>,
) -> Result<LinkReport, HostError> {
    let began = Instant::now();
    let mut is_reported = false;
    let team = files.team.to_string();
    loop {
        host.ensure_supervisor().await?;
        let link = files.report(&host.registry.key())?;
        let Some(link) = link else {
            return Err(HostError::failed(Trouble::LinkEnded { team }));
        };
        match link.state {
            LinkCondition::Connected => return Ok(link),
            LinkCondition::Failed => {
                let why = link.why.unwrap_or_default();
                return Err(HostError::failed(Trouble::LinkFailed { team, why }));
            }
            _ if began.elapsed() > START_TIMEOUT => {
                let why = link.why.unwrap_or_else(|| "it does not synchronize".to_owned());
                let error = HostError::failed(Trouble::LinkFailed { team, why });
                return Err(error.hint(format!(
                    "`brigade link {} --foreground` shows what it does",
                    files.team
                )));
            }
            _ => {}
        }
        if began.elapsed() > SLOW_AFTER && !std::mem::replace(&mut is_reported, true) {
            report(Progress::LinkStarts(files.team.clone(), link.servers));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Ends the links of a team on this host, in the background and in the foreground. Returns when their processes have
/// ended.
pub async fn stop(context: &Context, team: &TeamName) -> Result<(), HostError> {
    let host = context.files_host()?;
    let key = host.registry.key();
    let mut was_linked = false;
    for files in all_files(&host.registry)?.into_iter().filter(|files| files.team == *team) {
        if files.report(&key)?.is_some() {
            was_linked = true;
            end(&files, team).await?;
        }
    }
    if !was_linked {
        let error = HostError::failed(Trouble::NotLinked { team: team.to_string() });
        let linked: Vec<String> =
            list(&host.registry)?.iter().map(|link| link.team.to_string()).collect();
        return Err(match linked.as_slice() {
            [] => error.hint("no team of this host is linked"),
            linked => error.hint(format!("linked teams: {}", linked.join(", "))),
        });
    }
    host.until_supervisor_ends().await
}

/// Ends one link and removes its files.
async fn end(files: &LinkFiles, team: &TeamName) -> Result<(), HostError> {
    // Withdraw the link first, so that the supervisor does not start it again.
    files.withdraw()?;
    let began = Instant::now();
    let mut signal = Signal::TERM;
    while let Some(process) = files.process()? {
        send_signal(&process, signal);
        if began.elapsed() > STOP_TIMEOUT * 2 {
            let names = vec![format!("the link of team {team}")];
            let why = format!("process {} does not end", process.pid);
            return Err(HostError::failed(Trouble::StillRunning { names, why }));
        }
        if began.elapsed() > STOP_TIMEOUT {
            signal = Signal::KILL;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    files.remove()
}
