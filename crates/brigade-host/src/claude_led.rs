//! Members that Claude Code started and that brigade drives.
//!
//! Claude Code runs `brigade teammate` in a pane for each of them. That process registers its member, so that the other
//! commands on this host find the member's process, and so that the person can answer the member's requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_core::authority::Role;
use brigade_core::mail;
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_core::signature::SigningKey;
use brigade_wire::name::{MemberName, TeamName};

use crate::Host;
use crate::claude_session::ClaudeSession;
use crate::error::{HostError, Trouble, failed};
use crate::process_lock::{self, ProcessLock};
use crate::registry::Registry;
use crate::spawn;
use crate::spec::{MemberPlace, MemberSpec, TeamSpec};

/// How long Claude Code may take to delete its team after it has closed the panes of its teammates. Measured: 60 ms.
const TEAM_DELETED_WITHIN: Duration = Duration::from_millis(500);

/// A registered member. The process that runs the member keeps this value.
#[derive(Debug)]
pub struct Registration {
    registry: Registry,
    team: TeamName,
    spec: MemberSpec,
    /// The key with which the person on this host signs messages to the member.
    pub key: SigningKey,
    _lock: ProcessLock,
}

/// Registers a member that Claude Code started in this process. Fails if another process runs a member of this name.
pub async fn register(
    host: &Host,
    team: &TeamName,
    name: MemberName,
    agent: String,
    cwd: PathBuf,
) -> Result<Registration, HostError> {
    let host = host.claude_led();
    let registry = host.registry.clone();
    remove_ended(&host, team)?;
    let spec = MemberSpec { place: MemberPlace::Pane, ..spawn::default_spec(name, agent, cwd) };
    if registry.team(team)?.is_none() {
        registry.put_team(&TeamSpec::new(team.clone(), spec.cwd.clone()))?;
    }
    registry.add_member(team, &spec)?;
    let name = &spec.name;
    let lock = process_lock::take(&registry.seat(team, name)).await;
    let Some(lock) = lock.map_err(|source| failed("lock the member", source))? else {
        let process = host.member_process(team, name)?.unwrap_or_default();
        let (name, team) = (name.to_string(), team.to_string());
        return Err(HostError::failed(Trouble::RunsAlready { name, team, pid: process.pid }));
    };
    let key = registry.keys(team).member_key(name).map_err(HostError::failed)?;
    registry.set_joined(team, name)?;
    Ok(Registration { registry, team: team.clone(), spec, key, _lock: lock })
}

/// Removes the members of a team whose processes have ended without removing them, for example after a kill.
pub fn remove_ended(host: &Host, team: &TeamName) -> Result<(), HostError> {
    let registry = &host.registry;
    for name in registry.members(team)? {
        if host.member_process(team, &name)?.is_none() {
            registry.remove_member(team, &name)?;
        }
    }
    Ok(())
}

/// Returns when the member joined its team, in milliseconds since 1970; `None` if it is not on the roster.
pub async fn joined_at(seat: &Seat) -> Result<Option<u64>, HostError> {
    let Some(config) = seat.find_config().await? else { return Ok(None) };
    Ok(seat.read(&config)?.member(seat.name.as_str()).and_then(|member| member.joined_at()))
}

/// Removes a member from its team, because its process is ending. In a team that Claude Code leads, first informs the lead.
///
/// Claude Code closes the panes of its teammates when its session ends. Then the member stays on the roster, so that the
/// team can be resumed as it was.
pub async fn leave(
    seat: &Seat,
    claude_dir: &Path,
    joined_at: Option<u64>,
    why: &str,
) -> Result<(), HostError> {
    if !seat.store.is_ours(&seat.team).await? {
        tokio::time::sleep(TEAM_DELETED_WITHIN).await;
        let Some(config) = seat.find_config().await? else { return Ok(()) };
        let team = seat.read(&config)?;
        if team.lead_process().is_some() && ClaudeSession::of_lead(claude_dir, &team).is_none() {
            return Ok(());
        }
    }
    if seat.role().await? != Some(Role::Teammate) {
        return Ok(());
    }
    inform_lead(seat, &format!("{} has left the team: {why}", seat.name)).await;
    match roster::leave_if_joined_at(seat, &seat.name, joined_at).await {
        // A later member has the name by now.
        Ok(_) | Err(RosterError::JoinedAgain { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends a text to a lead that is Claude Code. An error is only logged: the member ends in any case.
async fn inform_lead(seat: &Seat, text: &str) {
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

    /// Removes the member, because its process ends.
    pub fn remove(self) -> Result<(), HostError> {
        self.registry.remove_member(&self.team, &self.spec.name)?;
        if self.registry.members(&self.team)?.is_empty() {
            self.registry.remove_team(&self.team)?;
        }
        Ok(())
    }
}
