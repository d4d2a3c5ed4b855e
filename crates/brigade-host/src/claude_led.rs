//! Members that Claude Code started and that brigade drives.
//!
//! Claude Code runs `brigade teammate` in a pane for each of them. That process registers its member, so that the other
//! commands on this host find the member's process, and so that the person can answer the member's requests.
//!
//! When Claude Code's session ends, the process stays, without its pane and without its agent. When the session is resumed,
//! the member joins the team of the session again, with the session of its agent, its tasks and its unread mail. Members that
//! `brigade spawn` added to the team wait in the same way.

mod followed_lead;
mod parting;
mod person;
mod rejoin;
mod resume;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::signature::SigningKey;
use brigade_wire::name::{MemberName, TeamName};
use rustix::process::Signal;

pub use self::followed_lead::FollowedLead;
pub use self::parting::Parting;
pub use self::person::sending_seat;
pub use self::rejoin::{FoundLead, Rejoined, find_lead, wait_for_lead};
pub use self::resume::{ResumedSession, resume_members};
pub(crate) use self::resume::{driven_spec, is_driven};

use crate::Host;
use crate::error::{HostError, Trouble, failed};
use crate::process::send_signal;
use crate::process_lock::{self, ProcessLock};
use crate::registry::create_dir;
use crate::spec::{MemberPlace, MemberSpec, TeamSpec};

/// How long an earlier process of a member may take to end after SIGTERM.
const EARLIER_ENDS_WITHIN: Duration = Duration::from_secs(8);

/// A registered member. The process that runs the member keeps this value.
#[derive(Debug)]
pub struct Registration {
    host: Host,
    team: TeamName,
    spec: MemberSpec,
    /// The key with which the person on this host signs messages to the member.
    pub key: SigningKey,
    _lock: ProcessLock,
}

/// Registers a member that Claude Code started in this process. If an earlier process of the same member still runs, ends
/// it: after a kill, a resumed lead may start a member of the same name again.
pub async fn register(
    host: &Host,
    team: &TeamName,
    spec: MemberSpec,
) -> Result<Registration, HostError> {
    let host = host.claude_led();
    let lock = lock_member(&host, team, &spec.name).await?;
    let registry = &host.registry;
    if registry.team(team)?.is_none() {
        registry.put_team(&TeamSpec::new(team.clone(), spec.cwd.clone()))?;
    }
    registry.put_member(team, &spec)?;
    registry.remove_gone(team, &spec.name)?;
    let key = registry.keys(team).member_key(&spec.name).map_err(HostError::failed)?;
    registry.set_joined(team, &spec.name)?;
    Ok(Registration { team: team.clone(), spec, key, _lock: lock, host })
}

/// Registers a member that is registered already, and whose process has ended. Returns `None` if its process runs.
pub async fn register_again(
    host: &Host,
    team: &TeamName,
    spec: MemberSpec,
) -> Result<Option<Registration>, HostError> {
    let host = host.claude_led();
    let Some(lock) = take_lock(&host, team, &spec.name).await? else { return Ok(None) };
    let key = host.registry.keys(team).member_key(&spec.name).map_err(HostError::failed)?;
    Ok(Some(Registration { team: team.clone(), spec, key, _lock: lock, host }))
}

/// Registers a member that brigade started, and whose lead's session has ended, among those that Claude Code started. The
/// member waits for its lead like them, and the supervisor no longer restarts it.
pub async fn register_late_joiner(
    host: &Host,
    team: &TeamName,
    spec: MemberSpec,
    followed: FollowedLead,
) -> Result<Registration, HostError> {
    let name = spec.name.clone();
    let registration =
        register(host, team, MemberSpec { place: MemberPlace::Pane, ..spec }).await?;
    registration.put_followed_lead(&FollowedLead { waits: true, ..followed })?;
    remove_member(host, team, &name)?;
    Ok(registration)
}

/// Takes the lock of a member. If an earlier process of the member holds the lock, ends that process.
async fn lock_member(
    host: &Host,
    team: &TeamName,
    name: &MemberName,
) -> Result<ProcessLock, HostError> {
    let began = tokio::time::Instant::now();
    let mut earlier = None;
    loop {
        // The earlier process may have removed the folder.
        create_dir(&host.registry.member_dir(team, name))?;
        if let Some(lock) = take_lock(host, team, name).await? {
            return Ok(lock);
        }
        if let Some(process) = host.member_process(team, name)? {
            // Repeat the signal: the process may not listen for signals at the moment.
            send_signal(&process, Signal::TERM);
            earlier = Some(process);
        }
        if began.elapsed() > EARLIER_ENDS_WITHIN {
            let pid = earlier.unwrap_or_default().pid;
            let (name, team) = (name.to_string(), team.to_string());
            return Err(HostError::failed(Trouble::RunsAlready { name, team, pid }));
        }
    }
}

async fn take_lock(
    host: &Host,
    team: &TeamName,
    name: &MemberName,
) -> Result<Option<ProcessLock>, HostError> {
    match process_lock::take(&host.registry.seat(team, name)).await {
        // An earlier process of the member is removing the folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        taken => taken.map_err(|source| failed("lock the member", source)),
    }
}

/// Sends a text to a lead that is Claude Code. An error is only logged: the member ends in any case.
pub async fn inform_lead(seat: &Seat, text: &str) {
    let sent = async {
        if seat.store.is_ours(&seat.team).await? {
            return Ok(());
        }
        let config = seat.config().await?;
        let lead = seat.read(&config)?.lead().and_then(|lead| lead.name()?.parse().ok());
        if let Some(lead) = lead {
            mail::send_protocol(seat, &lead, text).await?;
        }
        Ok::<(), HostError>(())
    };
    if let Err(error) = sent.await {
        tracing::warn!(team = %seat.team, member = %seat.name, %error, "cannot inform the lead");
    }
}

impl Registration {
    /// Returns the settings of the member.
    pub fn spec(&self) -> &MemberSpec {
        &self.spec
    }

    /// Returns the member's team.
    pub fn team(&self) -> &TeamName {
        &self.team
    }

    /// Returns the path of the member's log, for a member without a terminal.
    pub fn log(&self) -> PathBuf {
        self.host.registry.log(&self.team, &self.spec.name)
    }

    /// Returns the member's folder in the registry.
    pub fn folder(&self) -> PathBuf {
        self.host.registry.member_dir(&self.team, &self.spec.name)
    }

    /// Returns whether a person has paused the member.
    pub fn is_paused(&self) -> bool {
        self.host.registry.is_paused(&self.team, &self.spec.name)
    }

    /// Removes the member, because it has left its team.
    pub fn remove(self) -> Result<(), HostError> {
        remove_member(&self.host, &self.team, &self.spec.name)
    }
}

/// Removes a member of a team that Claude Code leads or led from the registry, and its team if that has no other members.
pub(crate) fn remove_member(
    host: &Host,
    team: &TeamName,
    name: &MemberName,
) -> Result<(), HostError> {
    host.registry.remove_member(team, name)?;
    host.registry.remove_team_without_members(team)
}
